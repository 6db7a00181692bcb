"""A peer whose network was gone, or that has another address now, reaches the others again while p2pd alone does not."""

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

PEER = Path(__file__).parents[1] / "lonely_peer.py"
START_SECONDS = 90.0
AWAY_SECONDS = 90.0
"""After which p2pd waits for most of a minute between two dials."""
REACHED_SECONDS = 20.0
"""Looks, dials and a ping, on a busy computer. p2pd alone takes 40 s to close its dead connections."""

pytestmark = pytest.mark.skipif(bool(reason := why_not()), reason=reason)


class Peer:
    """A lonely peer on the computer `name`; `told` is its last line, heard `at` a time of the monotonic clock."""

    def __init__(self, name, *words):
        command = inside(name, sys.executable, str(PEER), *words)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.addresses, self.told, self.at = [], {}, 0.0
        self.reading = threading.Thread(target=self._read)
        self.reading.start()

    def _read(self):
        for line in self.process.stdout:
            facts = json.loads(line)
            self.addresses = facts.get("addresses", self.addresses)
            self.told, self.at = facts, time.monotonic()

    def until(self, condition, within):
        deadline = time.monotonic() + within
        while not condition():
            assert self.process.poll() is None, "it has ended"
            assert time.monotonic() < deadline, self.told
            time.sleep(0.1)

    def until_it_reaches(self, within):
        begun = time.monotonic()
        # what is told a little later was asked before
        self.until(lambda: self.at > begun + 1 and self.told.get("reached"), within)

    def end(self):
        kill(living([psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]))
        self.process.wait()
        self.reading.join()
        self.process.stdout.close()


@pytest.fixture
def peers():
    """Our peer and a stock one, each connected to a seed on another computer, with their computers and addresses."""
    with contextlib.closing(Computers()) as computers, contextlib.ExitStack() as ending:

        def start(kind, *seeds):
            name, address = computers.add()
            made = Peer(name, kind, address, *seeds)
            ending.callback(made.end)
            made.until(lambda: made.addresses, START_SECONDS)
            return made, name, address

        seed, _, _ = start("stock")
        found = [start(kind, *seed.addresses) for kind in ("skep", "stock")]
        for made, *_ in found:
            made.until_it_reaches(START_SECONDS)
        yield computers, found


@pytest.mark.timeout(300)
def test_from_another_address(peers):
    _, ((ours, *place), (stock, *another)) = peers
    for (name, address), last in ((place, 91), (another, 92)):
        move(name, f"{address.rpartition('.')[0]}.{last}")
    ours.until_it_reaches(REACHED_SECONDS)
    assert stock.told["open"]
    assert not stock.told["reached"]


@pytest.mark.long
@pytest.mark.timeout(400)
def test_after_a_link_was_down(peers):
    computers, ((ours, here, _), (_, there, _)) = peers
    for name in (here, there):
        computers.plug(name, into_hub=False)
    time.sleep(AWAY_SECONDS)
    assert not ours.told["open"]
    for name in (here, there):
        computers.plug(name, into_hub=True)
    ours.until_it_reaches(REACHED_SECONDS)
