"""Laying down packs: what lands where, what is refused, links to earlier packs, switching and going back."""

import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from english import raises
from skep.adapters.packs import laying
from skep.adapters.packs.laying import RECORD
from skep.adapters.packs.store import PackStore
from skep.core.errors import StorageError, UpdateError
from small_disks import filled, small_disk
from small_packs import make_pack, make_wheel, tree

TORCH = {"torch/__init__.py": b"x = 1\n", "torch/lib/libtorch.so": b"\x7fELF" * 500, "torch-1.0.dist-info/RECORD": b""}


@pytest.fixture
def store(tmp_path):
    store = PackStore(tmp_path / "packs")
    with store.changing():
        yield store


@pytest.fixture
def wheels(tmp_path):
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


@pytest.fixture
def lay(store, wheels):
    """Lays a pack down from the wheels and what is laid down already."""

    def run(pack, told=lambda *_: None):
        return store.lay(pack, store.sources(pack), lambda wheel: wheels / wheel.file, told)

    return run


def test_the_files_of_all_wheels_lie_in_one_folder(store, wheels, lay):
    torch = make_wheel(wheels, "torch", TORCH)
    hivemind = make_wheel(wheels, "hivemind", {"hivemind/p2pd": (b"#!/bin/sh\n", 0o755), "hivemind/a.py": b"a"})
    pack = make_pack("cpu", torch, hivemind)
    folder = lay(pack)
    assert folder == store.place(pack) == store.root / "laid" / f"cpu-{pack.digest[:12]}"
    assert tree(folder) == {
        **{path: (content, False) for path, content in TORCH.items()},
        "hivemind/p2pd": (b"#!/bin/sh\n", True),
        "hivemind/a.py": (b"a", False),
    }
    assert store.laid() == [folder]
    assert store.damaged(folder) == []
    assert store.size(folder) == pack.unpacked
    assert store.root.stat().st_mode & 0o077 == 0


def test_progress_ends_at_the_whole(wheels, lay):
    pack = make_pack("cpu", make_wheel(wheels, "torch", TORCH), make_wheel(wheels, "numpy", {"numpy.py": b"n" * 99}))
    said = []
    lay(pack, lambda done, total: said.append((done, total)))
    assert [done for done, _ in said] == sorted(done for done, _ in said)
    assert said[-1] == (pack.unpacked, pack.unpacked)


def test_a_program_finds_its_modules_there(store, wheels, lay):
    folder = lay(make_pack("cpu", make_wheel(wheels, "torch", TORCH)))
    found = "import sys; sys.path.insert(0, sys.argv[1]); import torch; print(torch.x, torch.__file__)"
    done = subprocess.run([sys.executable, "-c", found, folder], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.split() == ["1", f"{folder}/torch/__init__.py"]
    assert store.damaged(folder) == []  # what Python compiled there is no damage


def test_only_what_the_pack_keeps_is_laid_down(wheels, lay):
    torch = make_wheel(wheels, "torch", TORCH | {"torch/test/a.py": b"t", "torch/test/b.py": b"b"})
    folder = lay(make_pack("cpu", torch, left_out=("torch/test/*",), kept=("*/b.py",)))
    assert set(tree(folder)) == {*TORCH, "torch/test/b.py"}


def test_members_beside_site_packages_are_left(wheels, lay):
    torch = make_wheel(
        wheels,
        "torch",
        {
            "torch-1.0.data/purelib/pure.py": b"p",
            "torch-1.0.data/platlib/deep/plat.py": b"q",
            "torch-1.0.data/scripts/torchrun": b"s",
            "torch-1.0.data/purelib": b"odd",
        },
    )
    assert set(tree(lay(make_pack("cpu", torch)))) == {"pure.py", "deep/plat.py"}


HOSTILE = [
    {"../outside.py": b"x"},
    {"/tmp/outside.py": b"x"},
    {"torch/../../outside.py": b"x"},
    {"torch/./a.py": b"x"},
    {"torch//a.py": b"x"},
    {"torch\\..\\outside.py": b"x"},
    {"C:/outside.py": b"x"},
    {"torch/link": (b"/etc/passwd", stat.S_IFLNK | 0o777)},
    {"torch/pipe": (b"", stat.S_IFIFO | 0o644)},
    {RECORD: b"{}"},
]


@pytest.mark.way_in
@pytest.mark.parametrize("files", HOSTILE, ids=lambda files: next(iter(files)))
def test_what_no_wheel_holds_is_refused(store, wheels, lay, tmp_path, files):
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    pack = make_pack("cpu", make_wheel(wheels, "torch", {**TORCH, **files}))
    with raises(UpdateError, match=r"torch-1.0-py3-none-any.whl of the compute pack contains .*, so it was refused"):
        lay(pack)
    assert store.laid() == []
    left = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert left == {wheels / pack.wheels[0].file}


@pytest.mark.way_in
def test_a_file_that_stands_twice_in_a_wheel_is_refused(store, wheels, lay):
    torch = make_wheel(wheels, "torch", TORCH)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(wheels / torch.file, "a") as archive:
        archive.writestr("torch/__init__.py", b"other")
    with raises(UpdateError, match="contains torch/__init__.py"):
        lay(make_pack("cpu", torch))
    assert store.laid() == []


@pytest.mark.way_in
def test_a_wheel_larger_than_its_list_states_is_refused(store, wheels, lay):
    torch = make_wheel(wheels, "torch", {"torch/bomb": bytes(5_000_000)}, unpacked=4_999_999)
    assert torch.size < 10_000
    with raises(UpdateError, match="is larger than its list states"):
        lay(make_pack("cpu", torch))
    assert store.laid() == []
    assert sum(path.stat().st_size for path in store.root.rglob("*") if path.is_file()) < 5_000_000


@pytest.mark.parametrize("spoil", ["cut", "flip", "none"])
def test_a_damaged_archive_is_refused_in_words(store, wheels, lay, spoil):
    torch = make_wheel(wheels, "torch", {"torch/a.bin": bytes(range(256)) * 100})
    raw = (wheels / torch.file).read_bytes()
    (wheels / torch.file).write_bytes(
        {"cut": raw[:-30], "flip": raw[:60] + bytes([raw[60] ^ 255]) + raw[61:], "none": b""}[spoil]
    )
    with raises(UpdateError, match="is damaged"):
        lay(make_pack("cpu", torch))
    assert store.laid() == []


def test_a_file_where_a_folder_is_needed_is_refused_in_words(store, wheels, lay):
    pack = make_pack("cpu", make_wheel(wheels, "torch", {"torch": b"file"}), make_wheel(wheels, "more", TORCH))
    with raises(StorageError, match="cannot be stored"):
        lay(pack)
    assert store.laid() == []


def test_wheels_of_an_earlier_pack_are_linked(store, wheels, lay):
    torch = make_wheel(wheels, "torch", TORCH)
    old = make_pack("cpu", torch, make_wheel(wheels, "hivemind", {"hivemind/p2pd": (b"old", 0o755)}))
    first = lay(old)
    hivemind = make_wheel(wheels, "hivemind", {"hivemind/p2pd": (b"new", 0o755)}, version="1.1")
    new = make_pack("cpu", torch, hivemind)
    assert set(store.sources(new)) == {torch.sha256}
    (wheels / torch.file).unlink()
    second = lay(new)
    assert tree(second)["hivemind/p2pd"] == (b"new", True)
    assert tree(first)["hivemind/p2pd"] == (b"old", True)
    assert (first / "torch/lib/libtorch.so").samefile(second / "torch/lib/libtorch.so")
    assert store.damaged(first) == store.damaged(second) == []
    # and again from the one that was linked
    store.remove(first)
    third = lay(make_pack("other", torch))
    assert (third / "torch/lib/libtorch.so").samefile(second / "torch/lib/libtorch.so")


def test_a_damaged_wheel_is_not_linked(store, wheels, lay):
    torch, numpy = make_wheel(wheels, "torch", TORCH), make_wheel(wheels, "numpy", {"numpy.py": b"n"})
    pack = make_pack("cpu", torch, numpy)
    folder = lay(pack)
    library = folder / "torch/lib/libtorch.so"
    library.write_bytes(library.read_bytes()[:-1] + b"?")
    assert store.damaged(folder) == ["torch/lib/libtorch.so"]
    assert not store.is_whole(pack)
    assert set(store.sources(pack)) == {numpy.sha256}
    assert lay(pack) == folder
    assert store.is_whole(pack)
    (folder / "numpy.py").unlink()
    assert store.damaged(folder) == ["numpy.py"]
    for damage in (b"{", b'{"pack": "\xff"}', b'{"x":' + b"[" * 100_000):
        (folder / RECORD).write_bytes(damage)
        assert store.damaged(folder) == [RECORD]
    assert store.sources(pack) == {}


def test_a_wheel_whose_left_out_files_are_wanted_now_is_not_linked(store, wheels, lay):
    torch = make_wheel(wheels, "torch", TORCH)
    lay(make_pack("cpu", torch, left_out=("*.so",)))
    assert store.sources(make_pack("cpu", torch)) == {}
    assert set(store.sources(make_pack("cpu", torch, left_out=("*.so", "*.py")))) == {torch.sha256}
    fewer = lay(make_pack("cpu", torch, left_out=("*.so", "*.py")))
    assert set(tree(fewer)) == {"torch-1.0.dist-info/RECORD"}


def test_the_same_file_in_two_wheels_is_laid_down_once(store, wheels, lay):
    one = make_wheel(wheels, "one", {"nvidia/__init__.py": b"", "nvidia/one.so": b"1", "LICENSE": b"one"})
    two = make_wheel(wheels, "two", {"nvidia/__init__.py": b"", "nvidia/two.so": b"2", "LICENSE": b"two"})
    pack = make_pack("cuda-13.0", one, two)
    folder = lay(pack)
    assert tree(folder) == {
        "nvidia/__init__.py": (b"", False),
        "nvidia/one.so": (b"1", False),
        "nvidia/two.so": (b"2", False),
        "LICENSE": (b"one", False),
    }
    assert store.damaged(folder) == []
    # the second wheel's own file is not there, so that the wheel alone cannot be linked
    assert set(store.sources(make_pack("other", two))) == set()
    alike = make_pack("other", one, two, left_out=("LICENSE",))
    assert set(store.sources(alike)) == {one.sha256, two.sha256}
    assert "LICENSE" not in tree(lay(alike))


def test_the_current_pack_is_switched_and_the_previous_one_kept(store, wheels, lay):
    assert (store.current, store.previous) == (None, None)
    first, second, third = (lay(make_pack(name, make_wheel(wheels, name, {f"{name}.py": b""}))) for name in "abc")
    store.use(first)
    assert (store.current, store.previous) == (first, None)
    store.use(second)
    store.use(second)
    assert (store.current, store.previous) == (second, first)
    assert store.go_back() == first
    assert (store.current, store.previous) == (first, second)
    store.tidy()
    assert store.laid() == [first, second]
    assert not third.exists()
    store.remove(second)
    with raises(UpdateError, match="no previous compute pack"):
        store.go_back()
    store.remove(first)
    assert (store.current, store.laid()) == (None, [])
    assert {path.name for path in store.root.iterdir()} == {"laid", ".lock"}


def test_an_interruption_between_the_two_links_leaves_no_previous_pack(store, wheels, lay):
    folder = lay(make_pack("cpu", make_wheel(wheels, "torch", TORCH)))
    store.use(folder)
    (store.root / "previous").symlink_to((store.root / "current").readlink())
    assert (store.current, store.previous) == (folder, None)


def test_sizes_count_each_file_once(store, wheels, lay):
    torch = make_wheel(wheels, "torch", {"torch.so": b"t" * 1000})
    first = lay(make_pack("a", torch, make_wheel(wheels, "one", {"one.py": b"1" * 10})))
    second = lay(make_pack("b", torch, make_wheel(wheels, "two", {"two.py": b"2" * 20})))
    records = sum((folder / RECORD).stat().st_size for folder in (first, second))
    assert store.alone(second) == 20 + (second / RECORD).stat().st_size
    assert (store.size(first), store.size(second)) == (1010, 1020)
    before = store.bytes()
    assert 1030 + records <= before < 1030 + records + 200  # the lock's holder too
    expected = store.alone(second)
    store.remove(second)
    assert before - store.bytes() == expected
    assert store.alone(first) > 1000


def test_the_link_names_no_other_folder(store, wheels, lay, tmp_path):
    folder = lay(make_pack("cpu", make_wheel(wheels, "torch", TORCH)))
    for target in ("laid/..", "laid/absent", "/etc", "laid/.incoming-x"):
        (store.root / "laid/.incoming-x").mkdir(exist_ok=True)
        (store.root / "current").unlink(missing_ok=True)
        (store.root / "current").symlink_to(target)
        assert store.current is None
    store.use(folder)
    assert store.current == folder


def test_leftovers_of_an_interruption_are_removed(store, wheels, lay):
    folder = lay(make_pack("cpu", make_wheel(wheels, "torch", TORCH)))
    store.use(folder)
    (store.root / "laid/.incoming-x/torch").mkdir(parents=True)
    (store.root / "laid/.dying-y/torch").mkdir(parents=True)
    (store.root / ".link-current").symlink_to("laid/x")
    store.tidy()
    assert {path.name for path in (store.root / "laid").iterdir()} == {folder.name}
    assert {path.name for path in store.root.iterdir()} == {"laid", "current", ".lock"}


def test_a_pack_that_was_about_to_be_replaced_is_put_back(store, wheels, lay):
    folder = lay(make_pack("cpu", make_wheel(wheels, "torch", TORCH)))
    store.use(folder)
    folder.rename(folder.with_name(f".dying-{folder.name}"))
    assert store.current is None
    store.tidy()
    assert store.current == folder
    assert store.damaged(folder) == []


def test_an_exception_from_progress_changes_nothing(store, wheels, lay):
    class Stopped(Exception):
        pass

    def told(done, _total):
        if done:
            raise Stopped

    with pytest.raises(Stopped):
        lay(make_pack("cpu", make_wheel(wheels, "torch", TORCH)), told)
    assert list((store.root / "laid").iterdir()) == []


def test_one_process_changes_the_packs(store, tmp_path):
    with raises(UpdateError, match="by another skep already"), PackStore(store.root).changing():
        pass
    elsewhere = PackStore(tmp_path / "file")
    (tmp_path / "file").write_text("")
    with raises(StorageError, match="cannot be stored in"), elsewhere.changing():
        pass


def test_space_that_must_stay_free_is_respected(store):
    store.check_room(1, 0)
    with raises(StorageError, match=r"not enough space for the compute pack: .* 1000000.0 GB must stay free"):
        store.check_room(1, 10**15)
    with raises(StorageError, match="1000000.0 GB are needed"):
        store.check_room(10**15, 0)


def test_a_full_disk_leaves_no_part_of_a_pack(tmp_path, wheels):
    pack = make_pack("cpu", make_wheel(wheels, "torch", {"torch/lib.so": bytes(300_000)}))
    with small_disk(tmp_path / "small", 200):
        store = PackStore(tmp_path / "small" / "packs")
        with store.changing():
            with raises(StorageError, match=r"cannot be stored in .*No space left"):
                store.lay(pack, {}, lambda wheel: wheels / wheel.file)
            assert list((store.root / "laid").iterdir()) == []
            fits = make_pack("cpu", make_wheel(wheels, "small", {"a.py": b"a"}))
            folder = store.lay(fits, {}, lambda wheel: wheels / wheel.file)
            with filled(tmp_path / "small"):
                store.use(folder)  # a link takes no space
            assert store.current == folder


def test_the_record_says_what_was_laid_down(wheels, lay):
    pack = make_pack("cpu", make_wheel(wheels, "torch", TORCH))
    record = laying.read_record(lay(pack))
    assert record is not None
    assert record.pack == pack
    assert record.wheels[pack.wheels[0].sha256].files["torch/lib/libtorch.so"].size == 2000
    assert laying.read_record(Path("/nonexistent")) is None
