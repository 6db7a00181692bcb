"""A practice swarm for all tests of a file."""

import psutil
import pytest

from terminals import JOIN_SECONDS, Running, count_of, wait_until


@pytest.fixture(scope="module")
def practice(tmp_path_factory):
    running = Running(tmp_path_factory.mktemp("practice"), "practice", "--peers", "2")
    link = running.wait_for(lambda event: "manifest" in event, JOIN_SECONDS)["link"]
    wait_until(lambda: count_of(running, "p2pd") == 3, JOIN_SECONDS)
    yield link
    family = running.family()
    running.finish()
    assert not psutil.wait_procs(family, 5)[1]
