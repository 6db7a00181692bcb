"""A peer whose network was gone, or that has another address now, reaches the others again while p2pd alone does not."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import hivemind
import pytest
from faults.link import move

from forked_peers import family, kill
from network_namespaces import Computers, inside, why_not
from skep.worker.connection.reconnecting import Connections
from skep.worker.connection.seeds import by_identity, greet

PEER = Path(__file__).parents[1] / "lonely_peer.py"
START_SECONDS = 90.0
AWAY_SECONDS = 90.0
"""In which p2pd closes its dead connections and comes to wait longer between two dials."""
REACHED_SECONDS = 20.0
"""Looks, dials and a ping, on a busy computer. p2pd alone takes 40 s to close its dead connections."""
PING_SECONDS = 5.0
"""At most, of a ping that fails."""

own_computers = pytest.mark.skipif(bool(reason := why_not()), reason=reason)


class Peer:
    """A lonely peer on the computer `name`; `told` is its last line, heard `at` a time of the monotonic clock."""

    def __init__(self, name, *words):
        command = inside(name, sys.executable, str(PEER), *words)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
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
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
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


@own_computers
@pytest.mark.timeout(300)
def test_from_another_address(peers):
    _, ((ours, *place), (stock, *another)) = peers
    for (name, address), last in ((place, 91), (another, 92)):
        move(name, f"{address.rpartition('.')[0]}.{last}")
    moved = time.monotonic()
    ours.until_it_reaches(REACHED_SECONDS)
    stock.until(lambda: stock.at > moved + PING_SECONDS, START_SECONDS)
    assert stock.told["open"]
    assert not stock.told["reached"]


@own_computers
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


NOBODY_ELSE = "127.0.0.57" if sys.platform == "linux" else "127.0.0.1"
"""An address of this computer, where it can be one that no other test uses."""
BACK_OFF_SECONDS = (5.5, 6.5)
"""After its first and second failure p2pd waits 5 s and 6 s, after the third 9 s."""


async def _greet(dht, node, peer, address):
    return (await greet(dht, node, peer, [address], 5.0)).failure


async def _connect(dht, node, address):
    await Connections(dht, node).connect([address])
    return await Connections(dht, node).open()


def end_alone(dht):
    kill(family(dht))
    dht.join()


@pytest.mark.timeout(200)
def test_a_peer_that_p2pd_would_not_dial_yet(make_dhts, private_sockets, tmp_path):
    (ours,) = make_dhts(1)
    options = {"identity_path": str(tmp_path / "id"), "start": True, "startup_timeout": 60}
    before = hivemind.DHT(host_maddrs=[f"/ip4/{NOBODY_ELSE}/tcp/0"], **options)  # its port is free for a while
    (address,) = (str(each) for each in before.get_visible_maddrs())
    end_alone(before)
    peer = address.rpartition("/")[2]

    def asked(function, *words):
        return ours.run_coroutine(partial(function, **dict(zip(("address", "peer"), words, strict=False))))

    for pause in (*BACK_OFF_SECONDS, 0.0):
        assert asked(_greet, address, peer)
        time.sleep(pause)
    again = hivemind.DHT(host_maddrs=[address.rpartition("/p2p/")[0]], **options)
    try:
        assert asked(_greet, address, peer)  # although it answers now
        assert peer in by_identity(asked(_connect, address))
        assert not asked(_greet, address, peer)
    finally:
        end_alone(again)
