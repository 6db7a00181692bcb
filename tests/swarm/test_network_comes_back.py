"""A peer whose network was gone, or that has another address now: p2pd stays away, and skep notices it."""

import contextlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from faults.family import kill, living
from faults.link import move

from network_namespaces import Computers, inside, why_not
from skep.worker.connection.reconnecting import Connections

PEER = Path(__file__).parents[1] / "lonely_peer.py"
AWAY_SECONDS = 60.0
"""After which p2pd waits for up to a minute between two dials."""
NOTICED_SECONDS = 30.0
"""A look, p2pd's time to come back by itself, and a busy computer."""

computers_needed = pytest.mark.skipif(bool(reason := why_not()), reason=reason)


class Peer:
    """A lonely peer on the computer `name`; `told` is its last line."""

    def __init__(self, name, *words):
        command = inside(name, sys.executable, str(PEER), *words)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addresses = json.loads(self.process.stdout.readline())["addresses"]
        self.told = {"open": 0, "ended": False}
        self.reading = threading.Thread(target=self._read)
        self.reading.start()

    def _read(self):
        for line in self.process.stdout:
            self.told = json.loads(line)

    def until(self, condition, within):
        deadline = time.monotonic() + within
        while not condition(self.told):
            assert time.monotonic() < deadline, self.told
            time.sleep(0.1)

    def end(self):
        kill(living([psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]))
        self.process.wait()
        self.reading.join()
        self.process.stdout.close()


@pytest.fixture
def peer():
    """A peer that is connected to a seed on another computer; the computers, and its place among them."""
    with contextlib.closing(Computers()) as computers, contextlib.ExitStack() as ending:
        (there, seed_address), (here, address) = computers.add(), computers.add()
        seed = Peer(there, seed_address)
        ending.callback(seed.end)
        made = Peer(here, address, *seed.addresses)
        ending.callback(made.end)
        made.until(lambda told: told["open"], NOTICED_SECONDS)
        yield made, computers, here, address


@computers_needed
@pytest.mark.timeout(180)
def test_another_address_is_noticed_while_p2pd_takes_its_connections_for_open(peer):
    made, _, here, address = peer
    move(here, f"{address.rpartition('.')[0]}.99")
    made.until(lambda told: told["ended"], NOTICED_SECONDS)
    assert made.told["open"]


@computers_needed
@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_link_that_was_down_for_long_is_used_again_soon(peer):
    made, computers, here, _ = peer
    computers.plug(here, into_hub=False)
    made.until(lambda told: not told["open"], 120)
    time.sleep(AWAY_SECONDS)
    assert not made.told["ended"]
    computers.plug(here, into_hub=True)
    made.until(lambda told: told["ended"] or told["open"], NOTICED_SECONDS)


def test_what_is_open_and_what_answers(make_dhts):
    seed, ours = make_dhts(2)
    addresses = [str(each) for each in seed.get_visible_maddrs()]
    connections = Connections(ours)
    assert list(connections.seeds()) == addresses
    assert set(connections.open()) <= set(addresses)
    assert connections.open()
    assert connections.answering(addresses)
    assert not connections.from_lost_addresses()
    connections.connect(addresses)
    seed.shutdown()
    assert not connections.answering(addresses)
    connections.connect(addresses)  # in vain, without an error
