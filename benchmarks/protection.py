"""What the sandbox and the guards cost: skep's worker with and without them, in turn.

    python benchmarks/protection.py [--pairs 10] [--joins 160]    about an hour; benchmarks/protection.json and .md

Each worker is alone in a swarm, trains on the processor with one thread, and is told to pause many times: a pause waits for
the end of a micro-batch, whose length is many times the bound. Joins vary by more than the bound too, so that there are
more pairs of workers that only join. Without protection a worker has no sandbox, hivemind's messages are decoded as in
stock, and there is no self-test; averaging is the same. Which one begins alternates. Joining is from the start of the
process to the report that it has joined. Pauses that had to wait for a round are no reaction. Exit code 1 when the upper
end of a row's 95 % interval is above 2 %, or 10 ms of a reaction.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from against_stock.running import fresh_swarm
from pairs import Judged, Row, write
from peers import SkepPeer, Swarm
from report import HERE, say

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
UNPROTECTED: Final = (sys.executable, str(HERE / "unprotected_worker.py"))


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
    peer = SkepPeer(shared) if protected else SkepPeer(shared, command=UNPROTECTED, sandbox=Level.NONE)
    try:
        peer.wait_for(lambda event: event["event"] == "joined")
        yield peer
    finally:
        peer.kill()


def compare(pairs: int, measure: Callable[..., dict[str, float]], rows: dict[str, Row]) -> None:
    """Add what `measure` returns of workers with and without protection to the rows of these names."""
    for number in range(pairs):
        for protected in (True, False) if number % 2 else (False, True):
            with fresh_swarm(MODEL, target_batch_size=TARGET) as shared:
                found = measure(shared, protected=protected)
            for name, value in found.items():
                (rows[name].new if protected else rows[name].old).append(value)
            kind = "protected" if protected else "unprotected"
            say(f"pair {number + 1}, {kind}: " + ", ".join(f"{key} {value:.4g}" for key, value in found.items()))


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--pairs", type=int, default=10, help="of workers that train and pause (10)")
    made.add_argument("--joins", type=int, default=160, help="pairs of workers that join (160)")
    made.add_argument("--to", type=Path, default=HERE, help="folder of the results")
    arguments = made.parse_args()
    if min(arguments.pairs, arguments.joins) < 2:  # noqa: PLR2004 - an interval needs a spread
        made.error("at least two pairs of each kind")
    rows = {
        "rate": Row("samples per second of one peer", "", bound=BOUND, more_is_better=True),
        "join": Row("from the start to joined", "s", bound=BOUND),
        "reaction": Row(f"mean of {PAUSES} orders to pause, to no computing", "s", Judged.DIFFERENCE, MICRO_BATCH),
    }
    compare(arguments.joins, joining, rows)
    compare(arguments.pairs, training, rows)
    enforced = str(protection() or "not known")
    how, after = f"with {arguments.pairs} pairs, {arguments.joins} for joins", f" The sandbox: {enforced}."
    write(
        list(rows.values()), "protection", how, arguments.to, kinds=("without", "with"), after=after, sandbox=enforced
    )
    return int(any(row.missed for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
