"""Joins that fail, and one that succeeds with only one live seed, with a real practice swarm."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from english import in_english
from failing_joins import DEAD, Joins, mute
from manifests import changed
from refusals import Homes, make_past
from skep.adapters.storage import signing
from skep.host.practice.swarm import PracticeFolder
from terminals import JOIN_SECONDS, Running, count_of, is_event, skep, wait_until

SIDE_BY_SIDE = 2
"""Each join loads the training stack; one does so twice at the same time, for text and for JSON."""


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    return make_past(tmp_path_factory.mktemp("past"))


class Practice:
    """A practice swarm, and changed versions of its manifest, signed with its key."""

    def __init__(self, folder, trainer):
        self.folder, self.trainer = folder, trainer
        self.served = folder.served

    def publish(self, place, **changes):
        manifest = place / "changed.json"
        manifest.write_text(json.dumps(changed(json.loads(self.folder.manifest.read_bytes()), **changes)))
        signing.sign_manifest(manifest, self.folder.key)
        return str(manifest)

    def seeds(self):
        return json.loads(self.folder.manifest.read_bytes())["peers"]


@pytest.fixture(scope="module")
def practice(tmp_path_factory):
    running = Running(tmp_path_factory.mktemp("practice"), "practice", "--peers", "1")
    running.wait_for(lambda event: "manifest" in event, JOIN_SECONDS)
    wait_until(lambda: count_of(running, "p2pd") == 2, JOIN_SECONDS)
    trainer = next(p for p in running.family() if "skep.worker.main" in " ".join(p.cmdline()))
    trainer.suspend()  # saves processor time until a test needs it as a peer
    yield Practice(PracticeFolder(running.home / "practice"), trainer)
    family = running.family()
    trainer.resume()
    running.finish()
    assert not psutil.wait_procs(family, 5)[1]


JOINS = [name for name in vars(Joins) if not name.startswith("_")]


@pytest.fixture(scope="module")
def joins(practice, past, tmp_path_factory):
    """The results of all joins, which run at the same time, since they mostly wait."""
    cases = Joins(practice, past, tmp_path_factory.mktemp("joins"))
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return {name: pool.submit(getattr(cases, name)) for name in JOINS}


@pytest.mark.parametrize("name", JOINS)
def test_a_join_that_cannot_work_ends_soon_with_its_reason(joins, name):
    joins[name].result()


# --- a swarm that can be joined


@pytest.fixture(scope="module")
def running(practice, past, tmp_path_factory):
    """A run in the practice swarm, joined by the only live seed, in a home whose path is too long for a socket."""
    practice.trainer.resume()
    folder = tmp_path_factory.mktemp("running")
    home = folder / ("long" * 50)
    shutil.copytree(past, home)
    with mute() as silent_peer:
        running = Running(home, "join", practice.publish(folder, peers=[DEAD, silent_peer, *practice.seeds()]))
        try:
            running.wait_for(is_event("joined"), JOIN_SECONDS)
            yield running
        finally:
            code = running.finish()
    assert code == 0


def test_one_seed_alive_is_enough(running):
    assert not running.named("problem")


def test_other_terminals_reach_a_home_with_a_long_path(running):
    assert skep(running.home, "status")[1]["running"]


def test_a_second_skep_in_one_home_is_refused_and_the_first_goes_on(running, practice, tmp_path):
    told = Homes(running.home, running.home).told("join", practice.publish(tmp_path), code=1)
    assert f"process {running.process.pid}" in in_english(told.title)
    assert skep(running.home, "status")[1]["phase"] == "training"
