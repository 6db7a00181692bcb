"""Fetching and laying down packs from a real web server with faults, and from a process that is killed at random."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from urllib3.util import Retry

from english import raises
from skep.adapters.net.web import Patience, Stop, Stopped, Web
from skep.adapters.packs.laying import read_record
from skep.adapters.packs.obtaining import obtain, plan
from skep.adapters.packs.store import PackStore
from skep.adapters.packs.wheelhouse import Wheelhouse
from skep.core.errors import StorageError, UpdateError
from skep.core.project.addresses import Reach
from small_disks import small_disk
from small_packs import make_pack, make_wheel, tree
from web_of_faults import FaultyServer, endless, missing, ranged, status, whole

QUICK = Patience(connect_seconds=5, read_seconds=5, retry=Retry(2, backoff_factor=0.01))


@pytest.fixture
def server():
    with FaultyServer() as server:
        yield server


@pytest.fixture
def store(tmp_path):
    return PackStore(tmp_path / "packs")


@pytest.fixture
def wheels(tmp_path):
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


class Fetch:
    """Obtains packs from the server; `fetched` and `laid` are the progress."""

    def __init__(self, server, store):
        self.server, self.store, self.fetched, self.laid = server, store, [], []
        self.web = Web(QUICK, Stop(), Reach.ANY)

    def serve(self, folder, *wheels):
        for wheel in wheels:
            self.server.scripts[wheel.sha256] = [ranged((folder / wheel.file).read_bytes())]

    def get(self, house, wheel, told):
        house.fetch(wheel, f"{self.server.address}/{wheel.sha256}", self.web, told)

    def __call__(self, pack, keep_free=0, fetched=None):
        with self.store.changing():
            heard = fetched or (lambda *now: self.fetched.append(now))
            return obtain(
                self.store, pack, self.get, keep_free=keep_free, fetched=heard, laid=lambda *now: self.laid.append(now)
            )


@pytest.fixture
def fetch(server, store):
    return Fetch(server, store)


def big(folder, name, size=400_000, version="1.0"):
    """A wheel whose bytes do not compress."""
    return make_wheel(folder, name, {f"{name}/data.bin": random.Random(f"{name}{version}").randbytes(size)}, version)


def test_a_pack_is_fetched_and_laid_down(fetch, wheels, store):
    torch, numpy = big(wheels, "torch"), big(wheels, "numpy", 1000)
    fetch.serve(wheels, torch, numpy)
    pack = make_pack("cpu", torch, numpy)
    folder = fetch(pack)
    assert set(tree(folder)) == {"torch/data.bin", "numpy/data.bin"}
    assert fetch.fetched[-1] == (pack.to_fetch, pack.to_fetch)
    assert [done for done, _ in fetch.fetched] == sorted(done for done, _ in fetch.fetched)
    assert fetch.laid[-1] == (pack.unpacked, pack.unpacked)
    assert list(store.fetched_folder.iterdir()) == []  # the wheels take no space beside their files
    assert fetch(pack) == folder
    assert len(fetch.server.asked) == 2


def test_an_update_fetches_only_what_has_changed(fetch, wheels, store):
    torch, old, new = big(wheels, "torch"), big(wheels, "hivemind"), big(wheels, "hivemind", version="1.1")
    fetch.serve(wheels, torch, old, new)
    fetch(make_pack("cpu", torch, old))
    fetch.server.asked.clear()
    updated = make_pack("cpu", torch, new)
    with store.changing():
        todo = plan(store, updated)
    assert (todo.to_fetch, todo.to_unpack) == (new.size, new.unpacked)
    fetch(updated)
    assert [name for name, _ in fetch.server.asked] == [new.sha256]


def test_a_download_that_breaks_off_is_continued(fetch, wheels):
    torch = big(wheels, "torch")
    raw = (wheels / torch.file).read_bytes()
    fetch.server.scripts[torch.sha256] = [ranged(raw, 100_000), ranged(raw, 50_000), ranged(raw)]
    fetch(make_pack("cpu", torch))
    starts = [int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0 for _, asked in fetch.server.asked]
    assert starts == [0, 100_000, 150_000]


def test_what_came_is_kept_for_the_next_time(fetch, wheels, store):
    torch, numpy = big(wheels, "torch"), big(wheels, "numpy")
    raw = (wheels / torch.file).read_bytes()
    fetch.serve(wheels, numpy)
    fetch.server.scripts[torch.sha256] = [ranged(raw, 100_000), missing]
    pack = make_pack("cpu", numpy, torch)
    with raises(UpdateError, match=r"^torch-1.0-py3-none-any.whl of the compute pack could not be fetched: .*404"):
        fetch(pack)
    assert store.laid() == []
    with store.changing():
        assert plan(store, pack).to_fetch == torch.size - 100_000
    fetch.server.scripts[torch.sha256] = [ranged(raw)]
    fetch.server.asked.clear()
    fetch.fetched.clear()
    fetch(pack)
    assert fetch.server.asked == [(torch.sha256, "bytes=100000-")]
    assert fetch.fetched[0] == (0, torch.size - 100_000)
    assert fetch.fetched[-1] == (torch.size - 100_000, torch.size - 100_000)


def test_a_server_that_ignores_ranges_sends_all_again(fetch, wheels, store):
    torch = big(wheels, "torch")
    raw = (wheels / torch.file).read_bytes()
    fetch.server.scripts[torch.sha256] = [ranged(raw, 100_000), whole(raw)]
    fetch(make_pack("cpu", torch))
    assert store.is_whole(make_pack("cpu", torch))


def flipped(raw):
    return raw[:2000] + bytes([raw[2000] ^ 1]) + raw[2001:]


WRONG = {
    "another byte": lambda raw: [ranged(flipped(raw))],
    "shorter": lambda raw: [ranged(raw[:-1])],
    "longer": lambda raw: [ranged(raw + b"x")],
    "without an end": lambda _: [endless],
    "another wheel": lambda raw: [ranged(raw[::-1])],
}
LACKING = {
    "an error": lambda _: [status(503)],
    "nothing": lambda _: [missing],
}


@pytest.mark.parametrize("kind", [*(pytest.param(kind, marks=pytest.mark.way_in) for kind in WRONG), *LACKING])
def test_a_wheel_that_is_not_what_the_list_states_is_refused_in_words(fetch, wheels, store, kind):
    torch = big(wheels, "torch")
    raw = (wheels / torch.file).read_bytes()
    fetch.server.scripts[torch.sha256] = (WRONG | LACKING)[kind](raw)
    with raises(UpdateError, match=r"^torch-1.0-py3-none-any.whl of the compute pack could not be fetched: "):
        fetch(make_pack("cpu", torch))
    assert store.laid() == []
    assert not Wheelhouse(store.fetched_folder).has(torch)
    assert sum(path.stat().st_size for path in store.fetched_folder.iterdir()) == 0
    fetch.serve(wheels, torch)
    fetch(make_pack("cpu", torch))


def test_a_wrong_earlier_part_is_fetched_again(fetch, wheels, store):
    torch = big(wheels, "torch")
    fetch.serve(wheels, torch)
    store.fetched_folder.mkdir(parents=True)
    (store.fetched_folder / f"{torch.sha256}.whl.part").write_bytes(b"wrong")
    fetch(make_pack("cpu", torch))
    assert [asked for _, asked in fetch.server.asked] == ["bytes=5-", None]


def test_a_damaged_fetched_wheel_is_fetched_again(fetch, wheels, store):
    torch = big(wheels, "torch")
    fetch.serve(wheels, torch)
    store.fetched_folder.mkdir(parents=True)
    (store.fetched_folder / f"{torch.sha256}.whl").write_bytes(bytes(torch.size))
    fetch(make_pack("cpu", torch))
    assert len(fetch.server.asked) == 1


def test_a_damaged_pack_is_mended_with_its_own_files(fetch, wheels, store):
    torch, numpy = big(wheels, "torch"), big(wheels, "numpy")
    fetch.serve(wheels, torch, numpy)
    pack = make_pack("cpu", torch, numpy)
    folder = fetch(pack)
    store.use(folder)
    (folder / "numpy/data.bin").write_bytes(b"")
    fetch.server.asked.clear()
    assert fetch(pack) == folder == store.current
    assert store.is_whole(pack)
    assert [name for name, _ in fetch.server.asked] == [numpy.sha256]


def test_a_plan_to_be_shown_compares_sizes_only_and_deletes_nothing(fetch, wheels, store):
    torch, numpy = big(wheels, "torch"), big(wheels, "numpy")
    fetch.serve(wheels, torch, numpy)
    pack = make_pack("cpu", torch, numpy)
    folder = fetch(pack)
    (folder / "torch/data.bin").write_bytes(bytes(400_000))
    other = make_pack("other", torch, numpy, big(wheels, "more"))
    kept = store.fetched_folder / f"{other.wheels[2].sha256}.whl"
    kept.write_bytes(bytes(other.wheels[2].size))
    assert store.is_whole(pack, hashed=False)
    assert not store.is_whole(pack)
    assert plan(store, other, hashed=False).to_fetch == 0
    assert kept.exists()
    (folder / "numpy/data.bin").write_bytes(b"short")
    assert plan(store, other, hashed=False).to_fetch == numpy.size
    assert not store.is_whole(pack, hashed=False)
    assert plan(store, other).to_fetch == torch.size + numpy.size + other.wheels[2].size
    assert not kept.exists()


@pytest.mark.way_in
def test_a_wheel_from_a_file_is_verified(wheels, store):
    torch = big(wheels, "torch")
    house = Wheelhouse(store.fetched_folder)
    assert add(house, torch, wheels) == house.path(torch)
    assert house.has(torch)
    house.remove(torch)
    raw = (wheels / torch.file).read_bytes()
    for wrong in (raw[:-1], raw + b"x", flipped(raw), b""):
        (wheels / torch.file).write_bytes(wrong)
        with raises(UpdateError, match="is not what its list states, so it was deleted"):
            add(house, torch, wheels)
        assert not house.has(torch)
        assert [path.stat().st_size for path in store.fetched_folder.iterdir()] == [0]


def add(house, wheel, wheels):
    with (wheels / wheel.file).open("rb") as file:
        return house.add(wheel, file)


def test_stopping_keeps_what_came(fetch, wheels, store):
    torch = big(wheels, "torch")
    fetch.serve(wheels, torch)

    def told(done, _total):
        if done:
            raise Stopped

    with pytest.raises(Stopped):
        fetch(make_pack("cpu", torch), fetched=told)
    assert list(store.fetched_folder.iterdir())
    assert store.laid() == []


def test_too_little_space_is_said_before_anything_is_fetched(fetch, wheels, store):
    torch = big(wheels, "torch")
    fetch.serve(wheels, torch)
    with raises(StorageError, match="There is not enough space for the compute pack"):
        fetch(make_pack("cpu", torch), keep_free=10**15)
    assert fetch.server.asked == []


def test_a_disk_that_fills_up_meanwhile_is_said_and_continued_later(server, wheels, tmp_path):
    torch = big(wheels, "torch")
    with small_disk(tmp_path / "small", 600):
        fetch = Fetch(server, PackStore(tmp_path / "small" / "packs"))
        fetch.serve(wheels, torch)
        fetch.store.check_room = lambda *_: None
        (tmp_path / "small/ballast").write_bytes(bytes(350_000))
        with raises(StorageError, match=r"Compute packs cannot be stored in .*: No space left on device"):
            fetch(make_pack("cpu", torch))
        have = (fetch.store.fetched_folder / f"{torch.sha256}.whl.part").stat().st_size
        assert 0 < have < torch.size
        subprocess.run(["mount", "-o", "remount,size=4m", tmp_path / "small"], check=True)
        fetch(make_pack("cpu", torch))
        assert fetch.server.asked[-1] == (torch.sha256, f"bytes={have}-")


def test_wheels_that_no_list_names_any_more_are_removed(store, wheels):
    house = Wheelhouse(store.fetched_folder)
    kept, gone = big(wheels, "torch"), big(wheels, "numpy")
    for wheel in (kept, gone):
        add(house, wheel, wheels)
    (store.fetched_folder / f"{'0' * 64}.whl.part").write_bytes(b"12345")
    assert house.tidy(keep={kept.sha256}) == gone.size + 5
    assert [path.name for path in store.fetched_folder.iterdir()] == [house.path(kept).name]


OBTAIN = """
import sys
from pathlib import Path
import msgspec
from skep.adapters.net.web import Patience, Stop, Web
from skep.adapters.packs.laying import read_record
from skep.adapters.packs.obtaining import obtain
from skep.adapters.packs.store import PackStore
from skep.core.packs import Pack
from skep.core.project.addresses import Reach
root, address, *packs = sys.argv[1:]
store, web = PackStore(Path(root)), Web(Patience(), Stop(), Reach.ANY)
def get(house, wheel, told):
    house.fetch(wheel, f"{address}/{wheel.sha256}", web, told)
def say(*_):
    # long enough that the pipe is full after some: the process cannot end before its lines are read
    print("going on".ljust(400), flush=True)
for pack in packs:
    with store.changing():
        store.use(obtain(store, msgspec.json.decode(pack, type=Pack), get, keep_free=0, fetched=say, laid=say))
        store.tidy()
print("done", flush=True)
"""


def slowly(raw, log, wheel):
    """Supports Range, and notes the first byte of each answer with the wheel's hash."""

    def act(handler):
        asked = handler.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        log.append((wheel, start))
        extra = {"Content_Range": f"bytes {start}-{len(raw) - 1}/{len(raw)}"} if asked else {}
        handler.head(206 if asked else 200, Content_Length=len(raw) - start, **extra)
        for at in range(start, len(raw), 8192):
            handler.wfile.write(raw[at : at + 8192])
            time.sleep(0.005)

    return act


def test_killed_at_random_it_never_has_a_broken_pack_and_fetches_nothing_verified_twice(server, wheels, store):
    shared = [big(wheels, f"shared{number}", 150_000) for number in range(3)]
    many = make_wheel(wheels, "many", {f"many/{number}.py": os.urandom(200) for number in range(1500)})
    first = make_pack("first", *shared, big(wheels, "own", 300_000), many)
    second = make_pack("second", *shared, big(wheels, "own", 300_000, version="2.0"), many)
    raw = {wheel.sha256: (wheels / wheel.file).read_bytes() for wheel in (*first.wheels, *second.wheels)}
    chance = random.Random(1)
    amid_laying, incoming, parts = 0, set(), {}
    runs = itertools.product((1, 2), (*["time"] * 5, *["lines"] * 4, "to the end"))
    for run, (number, how) in enumerate(runs):
        # addresses of their own, so that what a killed process still asked for is not counted here
        log = []
        server.scripts |= {f"{run}/{sha256}": [slowly(raw[sha256], log, sha256)] for sha256 in raw}
        verified = whole_wheels(store)
        packs = [msgspec.json.encode(pack).decode() for pack in (first, second)[:number]]
        process = subprocess.Popen(
            [sys.executable, "-c", OBTAIN, store.root, f"{server.address}/{run}", *packs], stdout=subprocess.PIPE
        )
        assert process.stdout.readline()
        if how == "time":  # most of it goes into fetching
            time.sleep(chance.uniform(0, 0.15))
        elif how == "lines":  # most of them are about files that were laid down
            for _ in range(chance.randrange(1200)):
                assert process.stdout.readline()
        if how != "to the end":
            process.send_signal(signal.SIGKILL)
        process.stdout.read()
        process.stdout.close()
        assert process.wait(60) == (0 if how == "to the end" else -signal.SIGKILL)
        # every wheel that was asked for was asked from the first byte that was not on disk, and none that was verified
        for wheel, start in first_asked(log).items():
            assert wheel not in verified
            assert start == parts.get(wheel, 0)
        parts = part_sizes(store)
        now = {path.stat().st_ctime_ns for path in store.root.glob("laid/.incoming-*")}
        amid_laying, incoming = amid_laying + len(now - incoming), incoming | now
        for folder in store.laid():
            assert store.damaged(folder) == []
    assert 4 <= amid_laying <= 16
    assert store.current == store.place(second)
    assert store.is_whole(first)
    assert store.is_whole(second)
    assert store.previous == store.place(first)
    assert sorted(path.name for path in (store.root / "laid").iterdir()) == sorted(
        path.name for path in (store.place(first), store.place(second))
    )


def first_asked(log):
    """The first byte that was asked for in a run, by wheel; each wheel is asked for once in it."""
    asked = dict(log)
    assert len(asked) == len(log)
    return asked


def whole_wheels(store):
    """Hashes of the wheels that are verified: fetched as a whole, or laid down."""
    laid = [read_record(folder) for folder in store.laid()]
    return {path.stem for path in Path(store.fetched_folder).glob("*.whl")} | {
        sha256 for record in laid for sha256 in record.wheels
    }


def part_sizes(store):
    """By hash, the bytes of each wheel that has come but is not whole."""
    return {path.name.partition(".")[0]: path.stat().st_size for path in Path(store.fetched_folder).glob("*.whl.part")}
