"""No process of skep asks the router to forward a port, unless the setting allows it; stock hivemind always does."""

import msgspec
import psutil
import pytest

from skep.host.practice.swarm import PracticeFolder, seed
from skep.worker.connection import network


def mapping():
    """Whether each p2pd below this process may ask the router."""
    daemons = [p for p in psutil.Process().children(recursive=True) if p.name() == "p2pd"]
    return ["-natPortMap=1" in daemon.cmdline() for daemon in daemons]


def test_stock_asks_the_router(make_dhts):
    make_dhts(1)
    assert mapping() == [True]


def test_a_seed_does_not(tmp_path):
    with seed(PracticeFolder(tmp_path), 0):
        assert mapping() == [False]


@pytest.mark.parametrize("allowed", [False, True])
def test_a_worker_does_only_when_the_setting_allows_it(make_dhts, options, allowed):
    (other,) = make_dhts(1)
    dht = network.reach(msgspec.structs.replace(options, map_port=allowed), list(map(str, other.get_visible_maddrs())))
    try:
        assert sorted(mapping()) == sorted([True, allowed])
    finally:
        dht.shutdown()
