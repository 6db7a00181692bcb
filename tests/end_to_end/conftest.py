"""A practice swarm for all tests of a file."""

import contextlib

import psutil
import pytest

from terminals import JOIN_SECONDS, Running, count_of, wait_until


@contextlib.contextmanager
def practice_swarm(folder):
    """The link that joins it."""
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
