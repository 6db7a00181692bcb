"""Compute packs are built from lock files by pip, byte by byte as locked, and refused in words where they cannot be."""

import hashlib
import io
import os
import re
import sys
import tarfile
import zipfile

import inventory
import msgspec
import pack_locks
import packs
import pytest
from pack_locks import Lock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from skep.core.packs import PackKind, list_name, read_packs, wheel_target

HERE = ("linux", packs.platform.machine(), f"cp{sys.version_info.major}{sys.version_info.minor}")
LIST = list_name(*HERE)
SETUP = "from setuptools import setup\nsetup(name='varint', version='2.0', py_modules=['varint'])\n"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """The only place that pip knows: a folder."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    make_wheel(folder, "torch", "9.0+cpu", {"torch/__init__.py": "", "torch/include/a.h": "x" * 500}, ["helper>=1"])
    make_wheel(folder, "torch", "9.0", {"torch/__init__.py": "", "torch/lib/cuda.so": "elf"}, ["helper>=1"])
    make_wheel(folder, "helper", "1.5", {"helper.py": "", "helper-1.5.data/scripts/help": "#!"}, ["six", "triton"])
    make_wheel(folder, "helper", "1.7", {"helper.py": ""})
    for light_or_unused in ("six", "triton"):
        make_wheel(folder, light_or_unused, "1.0", {f"{light_or_unused}.py": ""})
    make_source(folder)
    return folder


@pytest.fixture
def places(tmp_path):
    locks = tmp_path / "locks"
    locks.mkdir()
    declare(locks, "cpu")
    pins = tmp_path / "constraints.txt"
    pins.write_text("helper<1.7\n")
    return packs.Places(locks, pins, tmp_path / "kept", tmp_path / "dist" / "packs")


def declare(locks, name, torch="9.0+cpu", kind=PackKind.CPU, **facts):
    system, machine, python = HERE
    pack_locks.write(name, Lock(kind, system, machine, python, torch, "For a test.", **facts), locks)


def make_wheel(folder, name, version, files, needs=(), licence=True):
    notes = f"{name}-{version}.dist-info"
    needed = "".join(f"Requires-Dist: {each}\n" for each in needs)
    described = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nLicense: MIT\n{needed}"
    tag = "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        texts = {f"{notes}/licenses/LICENSE": "Do as you like."} if licence else {}
        for path, content in {**files, f"{notes}/METADATA": described, f"{notes}/WHEEL": tag, **texts}.items():
            archive.writestr(zipfile.ZipInfo(path), content)
        archive.writestr(zipfile.ZipInfo(f"{notes}/RECORD"), "")
    return made


def make_source(folder):
    with tarfile.open(folder / "varint-2.0.tar.gz", "w:gz") as archive:
        for path, content in (
            ("setup.py", SETUP),
            ("varint.py", ""),
            ("PKG-INFO", "Metadata-Version: 2.1\nName: varint\nVersion: 2.0\n"),
        ):
            member = tarfile.TarInfo(f"varint-2.0/{path}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))


def lock(places, name="cpu"):
    pack_locks.write(name, packs.make_lock(name, places, ["varint"]), places.locks)


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_pack_is_locked_and_built_twice_to_the_same_bytes(index, places):
    lock(places)
    first_lock = (places.locks / "cpu.toml").read_bytes()
    packs.build(["cpu"], places)
    first = content(places.to)
    [pack] = read_packs(first[LIST]).packs
    # the frozen programs have six, and nothing loads triton; 9.0+cpu is another torch than 9.0
    assert [(each.name, each.version) for each in pack.wheels] == [
        ("helper", "1.5"),
        ("torch", "9.0+cpu"),
        ("varint", "2.0"),
    ]
    assert (pack.name, pack.kind, pack.torch, pack.cards) == ("cpu", PackKind.CPU, "9.0+cpu", ())
    assert (pack.left_out, pack.kept) == (inventory.PRUNED, inventory.KEPT)
    for wheel in pack.wheels:
        raw = first[wheel_target(wheel)]
        assert (hashlib.sha256(raw).hexdigest(), len(raw)) == (wheel.sha256, wheel.size)
        with zipfile.ZipFile(io.BytesIO(raw)) as opened:
            laid = sum(
                each.file_size
                for each in opened.infolist()
                if pack.is_laid(each.filename) and "scripts" not in each.filename
            )
        assert wheel.unpacked == laid
    assert set(first) == {LIST, "cpu.md", *(wheel_target(wheel) for wheel in pack.wheels)}
    # once more, with nothing of the first: the wheel of varint is built again
    for folder in (places.kept, places.to):
        packs.shutil.rmtree(folder)
    packs.build(["cpu"], places)
    assert content(places.to) == first
    packs.shutil.rmtree(places.kept)
    lock(places)
    assert (places.locks / "cpu.toml").read_bytes() == first_lock


def test_licences_and_sizes_are_listed(index, places):
    lock(places)
    packs.build(["cpu"], places)
    rows = (places.to / "cpu.md").read_text().splitlines()
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| torch", "| varint", "| helper", "| all of it"]
    assert re.fullmatch(r"\| torch \| 9\.0\+cpu \| MIT \| 0\.0 \| 0\.0 \|", rows[2])


def test_what_was_fetched_is_not_fetched_again(index, places):
    lock(places)
    packs.shutil.rmtree(index)
    packs.build(["cpu"], places)
    assert (places.to / LIST).exists()


@pytest.mark.way_in
def test_another_file_of_the_same_version_is_refused_and_what_was_built_stays(index, places):
    lock(places)
    packs.build(["cpu"], places)
    built = content(places.to)
    packs.shutil.rmtree(places.kept)
    make_wheel(index, "helper", "1.5", {"helper.py": "evil = True"}, ["six", "triton"])
    with pytest.raises(ValueError, match=r"pip cannot fetch cpu: THESE PACKAGES DO NOT MATCH THE HASHES"):
        packs.build(["cpu"], places)
    assert content(places.to) == built


@pytest.mark.way_in
def test_a_source_that_builds_another_wheel_is_refused(index, places):
    lock(places)
    locked = pack_locks.read("cpu", places.locks)
    changed = [msgspec.structs.replace(each, sha256="0" * 64) if each.source_sha256 else each for each in locked.wheel]
    pack_locks.write("cpu", msgspec.structs.replace(locked, wheel=tuple(changed)), places.locks)
    with pytest.raises(ValueError, match=r"varint-2\.0-py3-none-any\.whl of cpu cannot be had as locked"):
        packs.build(["cpu"], places)
    assert not places.to.exists()


def test_a_pack_that_is_not_locked_is_refused_and_among_all_left_out_in_words(index, places, capsys):
    lock(places)
    declare(places.locks, "rocm", "9.0+rocm7", PackKind.ROCM, index="https://wheels.example.org/rocm7")
    reason = "rocm is not locked: make packs PACK=rocm LOCK=1 locks it on a linux computer that reaches https://wheels.example.org/rocm7"
    with pytest.raises(ValueError, match="not locked") as caught:
        packs.build(["rocm"], places)
    assert str(caught.value) == reason
    packs.build([], places, all_of_them=True)
    assert f"Left out: {reason}." in capsys.readouterr().out
    assert [pack.name for pack in read_packs((places.to / LIST).read_bytes()).packs] == ["cpu"]


def test_an_index_without_the_wheels_is_told_and_nothing_is_locked(index, places):
    declare(places.locks, "rocm", "9.0+rocm7", PackKind.ROCM, index="https://wheels.example.org/rocm7")
    with pytest.raises(
        ValueError,
        match=r"pip cannot fetch rocm, also not from https://wheels\S+: Could not find a version that satisfies the requirement torch===9\.0\+rocm7",
    ):
        lock(places, "rocm")
    assert not pack_locks.read("rocm", places.locks).wheel


def test_a_pack_for_another_computer_is_not_locked_here(index, places):
    pack_locks.write("mps", Lock(PackKind.MPS, "darwin", "arm64", "cp311", "9.0", "For a test."), places.locks)
    with pytest.raises(ValueError, match=r"mps is locked on darwin arm64 cp311, and this is"):
        lock(places, "mps")


@pytest.mark.parametrize(
    ("kind", "flags", "cards"),
    [
        (PackKind.CUDA, "sm_75 sm_86 sm_120 compute_120", ("7.5", "8.6", "12.0")),
        (PackKind.ROCM, "gfx90a gfx1100 gfx1100", ("gfx90a", "gfx1100")),
    ],
)
def test_a_pack_for_gpus_has_the_cards_that_its_torch_has_code_for(index, places, kind, flags, cards):
    code = f"class _C:\n    _cuda_getArchFlags = staticmethod(lambda: {flags!r})\n"
    make_wheel(index, "torch", "9.1", {"torch/__init__.py": code}, ["helper"])
    declare(places.locks, "gpu", "9.1", kind, driver=(580,))
    lock(places, "gpu")
    packs.build(["gpu"], places)
    [pack] = read_packs((places.to / LIST).read_bytes()).packs
    assert (pack.cards, pack.driver) == (cards, (580,))


def test_torchs_usual_build_is_not_replaced_by_one_of_another_kind(index, places):
    declare(places.locks, "mps", "9.0", PackKind.MPS)
    lock(places, "mps")
    versions = {each.name: each.version for each in pack_locks.read("mps", places.locks).wheel}
    assert versions["torch"] == "9.0"


def test_a_torch_that_names_no_card_makes_no_pack_for_gpus(index, places):
    declare(places.locks, "gpu", "9.0", PackKind.CUDA)
    with pytest.raises(ValueError, match=r"torch 9\.0 does not say which cards it has code for: AttributeError"):
        lock(places, "gpu")


@pytest.mark.parametrize(
    ("files", "licence", "words"),
    [
        ({"start.pth": "import os"}, True, r"helper-1\.6-py3-none-any\.whl has start\.pth, which a pack does not read"),
        ({"helper-1.6.data/purelib/start.pth": "import os"}, True, "has start.pth"),
        ({"helper.py": ""}, False, "no licence comes with helper"),
    ],
)
def test_what_no_pack_may_have_is_refused(index, places, files, licence, words):
    make_wheel(index, "helper", "1.6", files, licence=licence)
    lock(places)
    with pytest.raises((ValueError, packs.licences.Lacking), match=words):
        packs.build(["cpu"], places)
    assert not places.to.exists()


def test_the_program_says_in_a_sentence_why_it_built_nothing(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["packs.py", "tpu"])
    assert packs.main() == 2
    assert (
        "No packs were built: there is no pack tpu: cpu, cuda-12, cuda-13, mps, rocm are declared"
        in capsys.readouterr().err
    )


# --- the lock files of this repository


@pytest.mark.parametrize("name", pack_locks.names())
def test_a_lock_file_is_as_it_is_written(name):
    file = pack_locks.FOLDER / f"{name}.toml"
    assert pack_locks.text(pack_locks.read(name)) == file.read_text()


@pytest.mark.parametrize("name", pack_locks.names())
def test_a_lock_has_torch_and_only_wheels_for_its_python_that_the_programs_lack(name):
    locked = pack_locks.read(name)
    if not locked.wheel:
        pytest.skip("declared, not locked")
    versions = {wheel.name: wheel.version for wheel in locked.wheel}
    assert versions["torch"] == locked.torch
    assert not {*inventory.light(), *packs.UNUSED} & versions.keys()
    for wheel in locked.wheel:
        _, _, _, tags = parse_wheel_filename(wheel.file)
        assert any(tag.interpreter in (locked.python, "py3") or tag.abi == "abi3" for tag in tags)
    assert bool(locked.cards) == (locked.kind in (PackKind.CUDA, PackKind.ROCM))


def test_the_packs_have_what_the_training_stack_needs_in_the_pinned_versions():
    needed = inventory.trees().keys()
    pinned = [Requirement(line) for line in packs.CONSTRAINTS.read_text().splitlines() if not line.startswith("#")]
    locked = {name: pack_locks.read(name) for name in pack_locks.names()}
    for name, each in locked.items():
        if each.wheel and each.for_whom[0] == "linux":
            versions = {wheel.name: wheel.version for wheel in each.wheel}
            assert not {tree for tree in needed if not tree.startswith("nvidia-")} - versions.keys(), name
            assert not [
                str(pin)
                for pin in pinned
                if canonicalize_name(pin.name) in versions
                and not pin.specifier.contains(versions[canonicalize_name(pin.name)])
            ]
    assert locked["cpu"].wheel
