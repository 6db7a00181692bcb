"""What `make bench-packs` counts: bytes that a client asks for although they are on its disk, by real downloads."""

import random

import pytest
from faults import packs
from faults.pack_server import WHEEL, pack_server

from skep.adapters.net.web import Patience, Stop, Stopped, Web
from skep.adapters.packs.obtaining import obtain
from skep.adapters.packs.store import PackStore
from skep.adapters.packs.wheelhouse import Wheelhouse
from skep.core.packs import wheel_target
from skep.core.project.addresses import Reach
from small_packs import make_pack, make_wheel

MANY = 3_000_000
WEB = Web(Patience(), Stop(), Reach.ANY)


@pytest.fixture
def wheel(tmp_path):
    (tmp_path / "repository/targets/wheels").mkdir(parents=True)
    made = make_wheel(tmp_path, "torch", {"torch/data.bin": random.Random(1).randbytes(MANY)})
    (tmp_path / made.file).rename(tmp_path / "repository/targets" / wheel_target(made))
    return made


@pytest.fixture
def store(tmp_path):
    return PackStore(tmp_path / "packs")


@pytest.fixture
def server(tmp_path, store):
    with pack_server(tmp_path / "repository", 0) as served:
        served.packs, served.rate = store.root, 1e9
        yield served


@pytest.fixture
def get(server, wheel):
    address = f"{server.address}/{WHEEL}{wheel.sha256}.whl"
    return lambda house, wheel, told: house.fetch(wheel, address, WEB, told)


def test_a_wheel_that_is_laid_down_and_asked_for_again_is_counted(server, store, wheel, get):
    with store.changing():
        obtain(store, make_pack("cpu", wheel), get, keep_free=0, fetched=lambda *_: None, laid=lambda *_: None)
    assert [(each.again, each.sent) for each in server.asked] == [(0, wheel.size)]
    get(Wheelhouse(store.fetched_folder), wheel, lambda _: None)
    assert (server.asked[1].verified, server.asked[1].again) == (True, wheel.size)
    get(Wheelhouse(store.fetched_folder), wheel, lambda _: None)
    assert server.asked[2].again == wheel.size, "now it is a verified wheel that is not laid down, too"


def test_a_partial_download_that_is_continued_is_not_counted_and_one_that_begins_anew_is(server, store, wheel, get):
    def stopped(have):
        if have:
            raise Stopped

    house = Wheelhouse(store.fetched_folder)
    with pytest.raises(Stopped):
        get(house, wheel, stopped)
    (part,) = store.fetched_folder.iterdir()
    kept = part.read_bytes()
    assert kept
    with pytest.raises(Stopped):
        get(house, wheel, stopped)
    assert (server.asked[1].start, server.asked[1].again) == (len(kept), 0)
    with WEB.get(f"{server.address}/{WHEEL}{wheel.sha256}.whl", None):
        pass
    assert (server.asked[2].verified, server.asked[2].again) == (False, server.asked[2].had)
    assert server.asked[2].had >= len(kept)


GOOD = {
    "kind": "full disk",
    "stage": "laying",
    "said": ["No space left."],
    "on": "asked again",
    "broken": [],
    "left": [],
}
GOOD |= {"twice_verified": 0, "twice_come": 0}


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({}, None),
        ({"said": []}, "ended without a sentence"),
        ({"on": "started again"}, "the app ended without being killed"),
        ({"broken": ["cpu-1/torch/lib.so"]}, "broken files of packs"),
        ({"twice_verified": 5}, "verified bytes fetched twice"),
        ({"left": ["skep -m skep.worker.trial"]}, "processes left 5 s after a kill"),
    ],
)
def test_what_an_interruption_must_not_do_misses_its_target(wrong, name):
    missed = [each.name for each in packs.judged([GOOD, GOOD | wrong]) if each.missed]
    assert missed == ([name] if name else [])
