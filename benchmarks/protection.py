"""What the sandbox and the guards cost: skep's worker with and without them, in turn.

    python benchmarks/protection.py [--pairs 10] [--joins 150]    about an hour; benchmarks/protection.json and .md

A worker that trains is alone in a swarm, has one thread of the processor, and is told to pause many times: a pause waits for
the end of a micro-batch, whose length is many times the bound. A worker that joins loads the state of 22 M parameters from a
peer that trains slowly, so that hardly an epoch ends meanwhile: a state takes up to three seconds longer if one does. It is
measured from the start of the process to the report that it has joined, and leaves then. Joins vary by more than the bound,
so that there are many. Without protection a worker has no sandbox, hivemind's messages are decoded as in stock, and there is
no self-test; averaging is the same. Which one begins alternates. Pauses that had to wait for a round are no reaction. Exit
code 1 when the upper end of a row's 95 % interval is above 2 %, or 10 ms of a reaction.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from against_stock.running import at_epoch, fresh_swarm
from pairs import Judged, Row, two_or_more, write
from peers import SkepPeer, Swarm
from report import HERE, in_turn, say

from skep.core.sandbox import Level
from skep.services.protection import protection

MODEL: Final = "3.3 M"
TARGET: Final = 128
"""Samples of an epoch. Its step batch is of two, of which a worker computes both at once: larger micro-batches would come near
the longest time that they may take, and have another size in some of the workers."""
WARM_SECONDS: Final = 3.0
SECONDS: Final = 12.0
PAUSES: Final = 50
TRAINING_SECONDS: Final = 0.2
"""Before each pause."""
BOUND: Final = 1.02
MICRO_BATCH: Final = 0.01
"""Seconds by which a reaction may be later."""
JOINED_MODEL: Final = "22 M"
JOINED_TARGET: Final = 64
"""Samples of an epoch of `JOINED_MODEL`."""
DONORS_SHARE: Final = 0.05
"""Of the time, from its second epoch on: in the first one it has no state to send, and trains without a pause."""
JOINS_TOGETHER: Final = 25
"""Pairs that join the same peer, one worker after the other."""
UNPROTECTED: Final = (sys.executable, str(HERE / "unprotected_worker.py"))

Rows = dict[str, Row]


def training(shared: Swarm, *, protected: bool) -> dict[str, float]:
    """Samples per second, and the mean seconds from the order to pause to no computing."""
    with joined(shared, protected=protected) as peer:
        peer.rate(WARM_SECONDS)
        rate = peer.rate(SECONDS)
        reactions: list[float] = []
        while len(reactions) < PAUSES:
            time.sleep(TRAINING_SECONDS)
            peer.set_share(0.0)
            told = peer.wait_for(lambda event: event["event"] == "paused" and event["share"] == 0.0)
            reactions += [] if told["behind"] else [told["reaction_seconds"]]
            peer.set_share(1.0)
        return {"rate": rate, "reaction": statistics.fmean(reactions)}


def joining(shared: Swarm, *, protected: bool) -> dict[str, float]:
    with joined(shared, protected=protected) as peer:
        return {"join": peer.named("joined")[0]["seconds"] - peer.begun}


@contextmanager
def joined(shared: Swarm, *, protected: bool) -> Iterator[SkepPeer]:
    """A worker that has joined; it leaves in the end."""
    peer = SkepPeer(shared) if protected else SkepPeer(shared, command=UNPROTECTED, sandbox=Level.NONE)
    try:
        peer.wait_for(lambda event: event["event"] == "joined")
        yield peer
        peer.stop()
    finally:
        peer.kill()


def compare_training(pairs: int, rows: Rows) -> None:
    for number in range(pairs):
        for protected in in_turn((False, True), number):
            with fresh_swarm(MODEL, target_batch_size=TARGET) as shared:
                note(number, training(shared, protected=protected), rows, protected=protected)


@contextmanager
def swarm_with_a_donor() -> Iterator[Swarm]:
    """One peer trains in it that has sent its state once: the first time takes longer."""
    with fresh_swarm(JOINED_MODEL, target_batch_size=JOINED_TARGET) as shared, joined(shared, protected=True) as donor:
        donor.wait_for(at_epoch(1))
        donor.set_share(DONORS_SHARE)
        joining(shared, protected=True)
        yield shared


def compare_joins(pairs: int, rows: Rows) -> None:
    for first in range(0, pairs, JOINS_TOGETHER):
        with swarm_with_a_donor() as shared:
            for number in range(first, min(first + JOINS_TOGETHER, pairs)):
                for protected in in_turn((False, True), number):
                    note(number, joining(shared, protected=protected), rows, protected=protected)


def note(number: int, found: dict[str, float], rows: Rows, *, protected: bool) -> None:
    """Add to the rows of these names what was found of a pair's worker."""
    for name, value in found.items():
        (rows[name].new if protected else rows[name].old).append(value)
    kind = "protected" if protected else "unprotected"
    say(f"pair {number + 1}, {kind}: " + ", ".join(f"{key} {value:.4g}" for key, value in found.items()))


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--pairs", type=two_or_more, default=10, help="of workers that train and pause (10)")
    made.add_argument("--joins", type=two_or_more, default=150, help="pairs of workers that join (150)")
    made.add_argument("--to", type=Path, default=HERE, help="folder of the results")
    arguments = made.parse_args()
    rows = {
        "rate": Row("samples per second of one peer", "", bound=BOUND, more_is_better=True),
        "join": Row(f"from the start to joined, {JOINED_MODEL} parameters", "s", bound=BOUND),
        "reaction": Row(f"mean of {PAUSES} orders to pause, to no computing", "s", Judged.DIFFERENCE, MICRO_BATCH),
    }
    compare_joins(arguments.joins, rows)
    compare_training(arguments.pairs, rows)
    enforced = str(protection() or "not known")
    how, after = f"with {arguments.pairs} pairs, {arguments.joins} for joins", f" The sandbox: {enforced}."
    write(
        list(rows.values()), "protection", how, arguments.to, kinds=("without", "with"), after=after, sandbox=enforced
    )
    return int(any(row.missed for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
