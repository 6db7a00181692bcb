"""A newcomer that loads the state over a slow link: network namespaces (as root) with `tc`, real packets."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faults.link import ANYWHERE, seed_on
from peers import SkepPeer, Swarm, described
from report import Unmeasured

from against_stock.joining import STATE_BYTES
from against_stock.rows import Row, words
from against_stock.running import at_epoch
from network_namespaces import Computers, inside, why_not
from skep.host.practice.swarm import PracticeFolder

MODEL = "126 M"
BITS = 20_000_000
DOWN_SECONDS = 20.0
TARGET = 8
"""Samples of an epoch: the donor has a state after the first one."""
SLOW = 0.02
"""Share of the peers while the state is sent, so that they take no time from the transfer."""
WHOLE = 0.99
"""Of a state, which the last look at the link may see less than the whole of."""
START_SECONDS = 600.0
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Arrival:
    """`seconds` from the start of the newcomer's process until it has joined, less those without a link; `ideal` for
    its state at the bare rate; `states` received meanwhile, as the link counts them.
    """

    seconds: float
    ideal: float
    states: float


def measure_shaped(repeats: int, *, cut: bool) -> list[Row]:
    """Seconds from the start of a newcomer's process until it has joined, over a link of 20 Mbit/s both ways.

    With `cut` the newcomer's link is down for DOWN_SECONDS when half of the state has arrived, which are left out.
    """
    if reason := why_not():
        raise Unmeasured(reason)
    found = [load_over(MODEL, BITS, down=DOWN_SECONDS if cut else 0.0) for _ in range(repeats)]
    name = f"join of {MODEL} parameters at {BITS / 1e6:g} Mbit/s" + ", the link down once at half" * cut
    note = f"{words([each.states for each in found])} states came over the link; while they come the peers compute {SLOW:.0%}"
    return [
        Row(
            name,
            "s",
            [each.seconds for each in found],
            [each.ideal for each in found],
            "state ÷ rate",
            at_most=1.1,
            note=note,
        )
    ]


def load_over(model: str, bits: int, *, down: float) -> Arrival:
    """A donor and a newcomer on computers of their own. Raises Unmeasured when the state does not arrive."""
    with (
        tempfile.TemporaryDirectory(prefix="sb-") as folder,
        contextlib.closing(Computers()) as computers,
        seed_on(computers.add(), PracticeFolder(Path(folder))) as seeds,
    ):
        shared = described(Path(folder), seeds, model, {"target_batch_size": TARGET})
        with peer_on(Link(computers, bits), shared, 1.0) as donor:
            donor.wait_for(at_epoch(1), START_SECONDS)
            donor.set_share(SLOW)
            with peer_on(link := Link(computers, bits), shared, SLOW) as newcomer:
                return watched(newcomer, link, STATE_BYTES * shared.parameters, down)


class Link:
    """That of a new computer, on which `bits` a second can be sent."""

    def __init__(self, computers: Computers, bits: int) -> None:
        self._computers, self.bits = computers, bits
        self.name, _ = computers.add()
        computers.limit(self.name, bits)

    def cut(self, seconds: float) -> float:
        """Take it down for so long; returns how long it really was."""
        begun = time.monotonic()
        self._computers.plug(self.name, into_hub=False)
        time.sleep(seconds)
        self._computers.plug(self.name, into_hub=True)
        return time.monotonic() - begun


@contextlib.contextmanager
def peer_on(link: Link, shared: Swarm, share: float) -> Iterator[SkepPeer]:
    peer = SkepPeer(shared, share, place=inside(link.name), host=ANYWHERE)
    try:
        yield peer
    finally:
        peer.kill()


def watched(peer: SkepPeer, link: Link, state: int, down: float) -> Arrival:
    ideal, cut = 8 * state / link.bits, 0.0
    seen: list[int] = []
    deadline = time.monotonic() + START_SECONDS + 3 * ideal
    while not peer.named("joined"):
        if peer.process.poll() is not None or time.monotonic() > deadline:
            raise Unmeasured(f"the state of {state} bytes has not arrived; received: {seen[-1:]}")
        with contextlib.suppress(OSError):  # it has just ended
            seen.append(received(peer.process.pid))
        if down and seen and not cut and seen[-1] - seen[0] >= state / 2:
            cut = link.cut(down)
        time.sleep(LOOK_SECONDS)
    seconds, states = peer.named("joined")[0]["seconds"] - peer.begun - cut, (seen[-1] - seen[0]) / state
    if states < WHOLE:
        raise Unmeasured(f"{states:.2f} of a state came over the link")
    return Arrival(seconds, ideal, states)


def received(pid: int) -> int:
    """Bytes that the computer on which this process runs has received so far."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
    return sum(int(line.split(":")[1].split()[0]) for line in lines if line.strip().startswith("eth0:"))
