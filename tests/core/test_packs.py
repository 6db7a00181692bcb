"""Lists of compute packs: what is read, what is refused, and which files of a wheel are laid down."""

import msgspec
import pytest

from english import raises
from skep.core import packs
from skep.core.errors import UpdateError
from skep.core.packs import Pack, PackKind, PackList, Wheel

TORCH = Wheel("torch", "2.13.0", "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl", "a" * 64, 100, 300)
NUMPY = Wheel("numpy", "2.3.5", "numpy-2.3.5-cp311-cp311-manylinux_2_27_x86_64.whl", "b" * 64, 10, 30)
CPU = Pack(
    "cpu", PackKind.CPU, "2.13.0", (TORCH, NUMPY), left_out=("torch/test/*", "*.a"), kept=("torch/test/keep.py",)
)


def test_a_list_is_written_and_read_alike():
    known = PackList((CPU, msgspec.structs.replace(CPU, name="other")))
    assert packs.read_packs(packs.write_packs(known)) == known
    assert packs.write_packs(known) == packs.write_packs(packs.read_packs(packs.write_packs(known)))


def test_the_names_in_the_repository():
    assert packs.list_name("linux", "x86_64", "cp311") == "packs-linux-x86_64-cp311.json"
    assert packs.wheel_target(TORCH) == f"wheels/{'a' * 64}.whl"


def test_a_pack_s_sizes_are_those_of_its_wheels():
    assert (CPU.to_fetch, CPU.unpacked) == (110, 330)


def test_the_digest_is_of_what_is_laid_down():
    renamed = msgspec.structs.replace(CPU, name="x", driver=(5,), cards=("8.6",))
    assert renamed.digest == CPU.digest
    for change in ({"wheels": (TORCH,)}, {"left_out": ()}, {"kept": ()}):
        assert msgspec.structs.replace(CPU, **change).digest != CPU.digest


def test_patterns_say_what_is_laid_down():
    assert CPU.is_laid("torch/__init__.py")
    assert CPU.is_laid("torch/test/keep.py")
    assert not CPU.is_laid("torch/test/other.py")
    assert not CPU.is_laid("torch/lib/libx.a")


BAD = [
    pytest.param({"name": "../up"}, marks=pytest.mark.way_in),
    {"name": "Up"},
    {"kind": "tpu"},
    {"wheels": []},
    {"driver": [-1]},
    {"cards": ["8.6;rm"]},
    {"extra": 1},
    *({"wheels": [{**msgspec.to_builtins(TORCH), **change}]} for change in (
        {"sha256": "A" * 64}, {"sha256": "a"}, {"file": "x.zip"}, {"size": 0}, {"size": packs.LARGEST_BYTES + 1},
        {"unpacked": 0}, {"more": 1},
    )),
    *(pytest.param({"wheels": [{**msgspec.to_builtins(TORCH), **change}]}, marks=pytest.mark.way_in) for change in (
        {"file": "../x.whl"}, {"name": "a/b"}, {"version": "../1"},
    )),
]  # fmt: skip


@pytest.mark.parametrize("change", BAD)
def test_what_no_publisher_writes_is_refused(change):
    body = msgspec.to_builtins(CPU) | change
    with raises(UpdateError, match="cannot be used"):
        packs.read_packs(msgspec.json.encode({"packs": [body]}))


@pytest.mark.parametrize("raw", [b"", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"packs": 5}', b"{"])
def test_what_is_no_list_is_refused(raw):
    with raises(UpdateError, match="cannot be used"):
        packs.read_packs(raw)


def test_a_list_that_is_too_long_is_refused():
    with raises(UpdateError, match="too long"):
        packs.read_packs(b" " * (packs.LIST_LIMIT + 1))


def test_a_name_that_stands_twice_is_refused():
    twice = msgspec.structs.replace(CPU, wheels=(TORCH, TORCH))
    for known in (PackList((CPU, CPU)), PackList((twice,))):
        with raises(UpdateError, match="a name twice"):
            packs.read_packs(packs.write_packs(known))
