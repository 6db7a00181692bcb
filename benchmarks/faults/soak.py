"""The part `soak`: memory, descriptors and threads of a volunteer's whole process tree over a thousand short epochs.

The model is tiny, so that the epochs are short. Every tenth round fails: both other peers are stopped when it begins,
until the volunteer has given it up. A row is taken every ten epochs. A run that is interrupted cannot be continued: the
next one starts other processes. Growth is therefore fitted within the runs, with a level of its own for each.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from peers import SkepPeer, Swarm
from report import Row
from scipy.stats import t as student

from faults.places import own_folder, publish
from faults.rows import Measured, Part
from faults.volunteer import Volunteer, volunteer
from skep.host.practice.swarm import PracticeFolder, prepare_data, seed
from skep.host.server.file_server import serving

EPOCHS_A_ROW = 10
WARM_ROWS = 5
"""Rows at the begin of a run that are not fitted: buffers and caches grow to their size."""
MODEL = {"layers": 1, "heads": 2, "width": 32}
SYNC = {"target_batch_size": 256, "matchmaking_seconds": 2, "averaging_timeout_seconds": 10}
SHARE = 0.15
ROUND_PATIENCE, EPOCH_PATIENCE = 60.0, 120.0
MEGABYTES_BOUND, COUNT_BOUND = 10.0, 2.0
"""Per 1,000 epochs; of memory at the upper end of its 95 % interval."""
FAILING = 9.0
"""Percent of the contributions at least: those of one round in ten, less what was confirmed before the first of them."""


def measure(numbers: range, epochs: int = EPOCHS_A_ROW) -> Iterator[Measured]:
    run = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    with own_folder() as folder, quick_swarm(folder / "swarm") as (shared, link), contextlib.ExitStack() as ending:
        others = []
        for _ in range(2):
            others.append(SkepPeer(shared, share=SHARE))
            ending.callback(others[-1].kill)
        soaked = ending.enter_context(volunteer(folder / "home", link, share=SHARE))
        soaked.wait_until_training()
        for number in numbers:
            _epochs(soaked, others, epochs)
            restarts = len(soaked.running.named("joined")) - 1
            about = {"number": number, "run": run, "epoch": _epoch(soaked), "restarts": restarts}
            yield about | used(soaked) | _settled(soaked)


@contextlib.contextmanager
def quick_swarm(root: Path) -> Iterator[tuple[Swarm, str]]:
    """A seed peer and shards for a tiny model: what peers need, and the link that joins."""
    root.mkdir()
    folder = PracticeFolder(root)
    index, sha256 = prepare_data(folder)
    (root / "shards").symlink_to(folder.served)
    with serving(folder.served) as served, seed(folder, 0) as addresses:
        link, manifest = publish(folder, addresses, served, sha256, {"model": MODEL, "sync": SYNC})
        yield Swarm(root, manifest, index, addresses), link


def _epoch(soaked: Volunteer) -> int:
    return int(max(each.epoch for each in soaked.ledger().values()))


def _epochs(soaked: Volunteer, others: list[SkepPeer], count: int) -> None:
    """So many more epochs, of which the first one's round fails."""
    until = _epoch(soaked) + count
    told = len(soaked.events)
    _wait(lambda: any(each.get("state") == "pending" for each in soaked.events[told:]), EPOCH_PATIENCE)
    begun = next(each for each in soaked.events[told:] if each.get("state") == "pending")
    stopped = [process for other in others for process in other.family()]
    for process in stopped:
        process.suspend()
    with contextlib.suppress(TimeoutError):
        _wait(lambda: soaked.ledger()[begun["id"]].settled > 0, ROUND_PATIENCE)
    for process in stopped:
        process.resume()
    _wait(lambda: _epoch(soaked) >= until, count * EPOCH_PATIENCE)


def _wait(condition: Callable[[], bool], within: float) -> None:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within:g} s")
        time.sleep(0.05)


def used(soaked: Volunteer) -> Measured:
    """Memory (proportional set size, MB), descriptors and threads of the whole tree."""
    memory = descriptors = threads = 0
    tree = soaked.running.family()
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            memory += process.memory_full_info().pss
            descriptors += process.num_fds()
            threads += process.num_threads()
    return {"memory": round(memory / 1e6, 1), "descriptors": descriptors, "threads": threads, "processes": len(tree)}


def _settled(soaked: Volunteer) -> Measured:
    states = [each.state for each in soaked.ledger().values()]
    return {state: states.count(state) for state in ("confirmed", "lost")}


@dataclass(frozen=True)
class Growth:
    """Per 1,000 epochs, with the upper end of the two-sided 95 % confidence interval."""

    slope: float
    bound: float


def growth(rows: list[Measured], what: str) -> Growth | None:
    """A line through the rows of each run, of one slope and a level of its own; None for too few rows.

    Neighbouring rows resemble each other. The error of the slope is therefore larger by sqrt((1 + r) / (1 - r)), with r
    the correlation of what the line leaves of a row and of the next one (a first-order autoregression).
    """
    runs: list[list[tuple[float, float]]] = []
    for run in sorted({row["run"] for row in rows}):
        own = [(row["epoch"], row[what]) for row in rows if row["run"] == run][WARM_ROWS:]
        if own:
            middle, level = (sum(each) / len(own) for each in zip(*own, strict=True))
            runs.append([(epoch - middle, value - level) for epoch, value in own])
    free = sum(map(len, runs)) - len(runs) - 1
    spread = sum(x * x for run in runs for x, _ in run)
    if free < 1 or not spread:
        return None
    slope = sum(x * y for run in runs for x, y in run) / spread
    rests = [[y - slope * x for x, y in run] for run in runs]
    rest = sum(each * each for run in rests for each in run)
    alike = sum(each * after for run in rests for each, after in itertools.pairwise(run)) / rest if rest else 0.0
    larger = (1 + max(0.0, alike)) / (1 - max(0.0, alike))
    error = math.sqrt(rest / free / spread * larger)
    return Growth(1000 * slope, 1000 * (slope + float(student.ppf(0.975, free)) * error))


def judged(rows: list[Measured]) -> list[Row]:
    made = []
    if memory := growth(rows, "memory"):
        values = [row["memory"] for row in rows]
        made.append(Row("memory, per 1,000 epochs", memory.slope, "MB", None, values))
        made.append(Row("memory, upper 95 % bound", memory.bound, "MB", MEGABYTES_BOUND, values))
    for what in ("descriptors", "threads"):
        if found := growth(rows, what):
            values = [row[what] for row in rows]
            made.append(Row(f"{what}, per 1,000 epochs", found.slope, "", COUNT_BOUND, values, least=-COUNT_BOUND))
    if rows:
        ends = list({row["run"]: row for row in rows}.values())
        lost, confirmed = (sum(row[state] for row in ends) for state in ("lost", "confirmed"))
        share = 100 * lost / max(1, lost + confirmed)
        made.append(Row("contributions lost", share, "%", None, [share], least=FAILING))
        if "restarts" in rows[-1]:
            restarts = [row["restarts"] for row in ends]
            made.append(Row("restarts of the worker", sum(restarts), "", 0, restarts))
    return made


PART = Part(
    "soak",
    "growth over short epochs, one of ten rounds failing, ten epochs a row (a start after an interruption begins another"
    " run, whose first rows are not fitted)",
    100,
    measure,
    judged,
)
