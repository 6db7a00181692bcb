"""A practice swarm for all tests of a file, and a computer that sleeps while others are tested."""

import contextlib

import psutil
import pytest

from sleeper import Sleeper
from terminals import JOIN_SECONDS, Running, count_of, wait_until

FALLS_ASLEEP = "test_a_computer_falls_asleep_in_the_middle_of_training"
WAKES_UP = "test_a_minute_later_it_is_back_in_the_swarm_and_its_ledger_agrees"
MEANWHILE = "test_cli_verbs.py"


def pytest_collection_modifyitems(items):
    """Sleep takes its minute: what needs neither a swarm nor a quiet computer is tested meanwhile.

    At the very end, so that the sleeper's swarm ends right after it.
    """
    first, last = ([item for item in items if item.name == name] for name in (FALLS_ASLEEP, WAKES_UP))
    meanwhile = [item for item in items if item.path.name == MEANWHILE]
    if first and last and meanwhile:
        rest = [item for item in items if item not in (*first, *meanwhile, *last)]
        items[:] = [*rest, *first, *meanwhile, *last]


@contextlib.contextmanager
def practice_swarm(folder):
    """The link that leads into it."""
    running = Running(folder, "practice", "--peers", "2")
    link = running.wait_for(lambda event: "manifest" in event, JOIN_SECONDS)["link"]
    wait_until(lambda: count_of(running, "p2pd") == 3, JOIN_SECONDS)
    yield link
    family = running.family()
    running.finish()
    assert not psutil.wait_procs(family, 5)[1]


@pytest.fixture(scope="module")
def practice(tmp_path_factory):
    with practice_swarm(tmp_path_factory.mktemp("practice")) as link:
        yield link


@pytest.fixture(scope="package")
def sleeper(tmp_path_factory):
    with practice_swarm(tmp_path_factory.mktemp("practice")) as link:
        made = Sleeper(tmp_path_factory.mktemp("sleeper") / "home", link)
        yield made
        made.end()
