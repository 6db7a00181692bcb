"""Measures two checkouts of skep in turn, from outside, and compares them row by row.

    make bench-pairs OLD=../before      about 6 minutes a pair; writes benchmarks/pairs.json and pairs.md
    python benchmarks/pairs.py ../before --pairs 7

Each checkout has been set up (`make setup`) and runs with its own virtual environment. A turn is a practice swarm of
two peers with a volunteer at an X server, then starts of the app on a desktop with a tray. Which checkout begins
alternates from pair to pair, so that a drift in the machine's speed favours neither.

A row is judged by the upper end of a one-sided 95 % confidence interval (Student's t) against its own bound:
- ratio: geometric mean of new / old, inverted where more is better, so that above 1 is worse; at most 1.03. Two rows have
  a wider bound because one commit differs from itself by more, as their least and largest values show: epochs contain a
  random wait for a group, and the speed follows the size of micro-batches, which each join chooses anew.
- difference: mean of new - old in seconds, for reactions, which end with the micro-batch in progress. Its length follows
  that size too, so the bound is one long micro-batch. Only trials that came while the volunteer trained count.
- value: mean of new, for the app, whose bounds are fixed: 0.6 s to the icon, 150 MB while hidden.
Exits with 1 when a row misses its bound, with 2 when a wait timed out.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from giveback import Volunteer, command, input_at, nothing, opened
from impatient import allow_impatience
from machine import machine
from report import HERE, UNMEASURED, Unmeasured, in_turn, say
from run import Terminal
from scipy.stats import t as student
from Xlib.display import Display

import gui
from desktops import Screen
from skep import bootstrap
from skep.adapters.storage.paths import Home
from skep.cli.verbs.demo import DEVOTED
from tray_desktops import desktop

EPOCHS: Final = 4
TRIALS: Final = 4
MOST_TRIALS: Final = 16
STARTS: Final = 5
WANTED: Final = DEVOTED | {
    "compute.share_away": 1.0,
    "compute.share_using": 0.0,
    "compute.ramp_seconds": 0.0,
    "compute.idle_minutes": 0.05,
}


@dataclass(frozen=True)
class Checkout:
    """A folder with skep's sources and its virtual environment."""

    folder: Path
    name: str

    @property
    def terminal(self) -> list[str]:
        """The terminal program, with absence after a few seconds without input."""
        return [str(self.folder / ".venv/bin/python"), str(self.folder / "benchmarks/impatient.py")]

    @property
    def app(self) -> Path:
        return self.folder / ".venv/bin/skep-gui"


class Judged(StrEnum):
    RATIO = "ratio"
    DIFFERENCE = "difference"
    VALUE = "value"


@dataclass
class Row:
    """Values of both checkouts, one of each per pair, in `unit`, and what may be at most `bound`."""

    name: str
    unit: str
    by: Judged = Judged.RATIO
    bound: float = 1.03
    more_is_better: bool = False
    old: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)

    @property
    def bounds(self) -> tuple[float, float, float]:
        """The mean of what is judged, and both ends of its one-sided 95 % intervals."""
        pairs = list(zip(self.old, self.new, strict=True))
        match self.by:
            case Judged.RATIO:
                logs = [math.log(old / new if self.more_is_better else new / old) for old, new in pairs]
                mean, low, high = map(math.exp, interval(logs))
                return mean, low, high
            case Judged.DIFFERENCE:
                return interval([new - old for old, new in pairs])
            case Judged.VALUE:
                return interval(self.new)

    @property
    def missed(self) -> bool:
        return self.bounds[2] > self.bound


def interval(values: list[float]) -> tuple[float, float, float]:
    """The mean of `values` and both ends of its one-sided 95 % intervals, by Student's t."""
    mean = statistics.fmean(values)
    reach = float(student.ppf(0.95, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - reach, mean + reach


def measure_volunteer(of: Checkout) -> dict[str, float]:
    """Seconds, bytes and samples of one volunteer between two practice peers."""
    values: dict[str, float] = {}
    with ExitStack() as ending:
        home = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="skep-pairs-"))) / "home"
        screen = opened(ending, Screen(window_manager="openbox"))
        practice = Terminal(home, "practice", "--peers", "2", command=of.terminal)
        ending.callback(practice.close)
        manifest = practice.event()["manifest"]
        bootstrap.settings(Home(home)).save(WANTED)
        terminal = Terminal(home, "join", manifest, command=of.terminal, environ=screen.environ)
        ending.callback(terminal.close)
        values["micro-batch"] = terminal.wait_for("joined")["micro_batch"]  # of the samples that reactions wait for
        values["join"] = time.monotonic() - terminal.begun
        terminal.wait_for("progress", lambda event: bool(event["samples_accumulated"] > 0))
        values["first sample"] = time.monotonic() - terminal.begun
        values |= measure_epochs(terminal)
        values["memory"] = sum(process.memory_full_info().pss for process in terminal.family()) / 1e6
        volunteer = Volunteer(terminal)
        values["pause"] = reaction(volunteer, command(home, "pause"), command(home, "resume"))
        display = opened(ending, Display(screen.name))
        values["input"] = reaction(volunteer, input_at(display), nothing)
        values["stop"] = terminal.stop()
    return values


def reaction(volunteer: Volunteer, act: Callable[[], None], undo: Callable[[], None]) -> float:
    """Seconds until it rests: the median of TRIALS that came while it trained. Raises Unmeasured."""
    training: list[float] = []
    for _ in range(MOST_TRIALS):
        taken, trained = volunteer.trial(act)
        undo()
        if trained:
            training.append(taken)
        if len(training) == TRIALS:
            return statistics.median(training)
    raise Unmeasured(f"only {len(training)} of {MOST_TRIALS} trials came while the volunteer trained.")


def measure_epochs(terminal: Terminal) -> dict[str, float]:
    """Seconds per epoch, and samples trained per second of computing, between two changes of epoch."""
    epoch = terminal.wait_for("progress")["epoch"]
    first = terminal.wait_for("progress", lambda event: bool(event["epoch"] > epoch))
    begun, samples, last = time.monotonic(), 0.0, first
    while last["epoch"] < first["epoch"] + EPOCHS:
        event = terminal.event()
        if event["event"] == "progress":
            last = event
        elif event["event"] == "contribution" and event["state"] == "pending" and event["epoch"] >= first["epoch"]:
            samples += event["samples"]
    spent = last["compute_seconds"] - first["compute_seconds"]
    return {
        "epoch": (time.monotonic() - begun) / (last["epoch"] - first["epoch"]),
        "samples": samples / spent,
    }


def measure_app(of: Checkout) -> dict[str, float]:
    """Seconds to the icon in the tray with the files in the cache, and memory hidden in MB."""
    with tempfile.TemporaryDirectory(prefix="sp-") as folder, desktop() as screen:
        return gui.start_and_memory(screen, Path(folder), of.app, STARTS)


MEASURED: Final[dict[str, Row]] = {
    "join": Row("start to joined", "s"),
    "first sample": Row("start to the first counted sample", "s"),
    "samples": Row("samples trained in a second of computing", "/s", bound=1.1, more_is_better=True),
    "epoch": Row("an epoch of three peers", "s", bound=1.2),
    "memory": Row("memory of the whole process tree", "MB"),
    "pause": Row("a pause to rest, median of a turn", "s", Judged.DIFFERENCE, 0.06),
    "input": Row("input at an X server to rest, median of a turn", "s", Judged.DIFFERENCE, 0.06),
    "stop": Row("Ctrl-C to no process left", "s", Judged.DIFFERENCE, 0.3),
    "start": Row("start to the icon in the tray, files in the cache, median of a turn", "s", Judged.VALUE, 0.6),
    "app memory": Row("proportional memory of the hidden app", "MB", Judged.VALUE, 150.0),
}


def measure(old: Checkout, new: Checkout, pairs: int) -> list[Row]:
    for number in range(pairs):
        for each in in_turn((old, new), number):
            values = measure_volunteer(each) | measure_app(each)
            for key, row in MEASURED.items():
                (row.old if each is old else row.new).append(values[key])
            say(f"pair {number + 1} of {pairs}, {each.name}: " + ", ".join(f"{k} {v:.4g}" for k, v in values.items()))
    return list(MEASURED.values())


def write(
    rows: list[Row],
    name: str,
    how: str,
    out: Path,
    *,
    kinds: tuple[str, str] = ("old", "new"),
    after: str = "",
    **more: str,
) -> None:
    """Write `out`/`name`.json and .md, and print the latter; `how` and `after` are in its first line, `more` in the former."""
    taken, where = f"{datetime.now(UTC):%Y-%m-%d}", machine()
    listed = [vars(row) | {"mean_low_high": row.bounds} for row in rows]
    body = {"machine": where, "date": taken, **more, "rows": listed}
    (out / f"{name}.json").write_text(json.dumps(body, indent=1) + "\n")
    lines = [f"`python benchmarks/{name}.py` {how}, on {where}, {taken}.{after}", "", *table(rows, *kinds)]
    (out / f"{name}.md").write_text("\n".join(lines) + "\n")
    sys.stdout.write("\n".join(lines) + "\n")


def table(rows: list[Row], old: str, new: str) -> list[str]:
    """The lines of a table of both kinds, under these names."""
    lines = [
        "In brackets: least and largest value. The upper end of the 95 % interval should not be above the bound.",
        "",
        f"| what | {old}, median | {new}, median | judged by | mean | 95 % interval | bound | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        mean, low, high = row.bounds
        both = " | ".join(
            f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g}) {row.unit}"
            for values in (row.old, row.new)
        )
        missed = "**missed**" * row.missed
        judged = f"{row.by} | {mean:.3f} | {low:.3f} to {high:.3f} | {row.bound:g}"
        lines.append(f"| {row.name} | {both} | {judged} | {missed} |")
    return lines


def two_or_more(text: str) -> int:
    """The type of an option that says how many pairs: an interval needs a spread. Raises ArgumentTypeError."""
    if not text.isdigit() or int(text) < 2:  # noqa: PLR2004 - a spread takes two
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least two pairs")
    return int(text)


def commit(folder: Path) -> str:
    told = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    )
    return told.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the other checkout, set up")
    parser.add_argument("--pairs", type=two_or_more, default=5, help="how many (5)")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for pairs.json and .md")
    options = parser.parse_args()
    allow_impatience()
    old, new = (Checkout(folder.resolve(), commit(folder)) for folder in (options.old, HERE.parent))
    rows = measure(old, new, options.pairs)
    how = f"with {options.pairs} pairs of {old.name} (old) and {new.name} (new) in turn"
    write(rows, "pairs", how, options.out, old=old.name, new=new.name)
    return int(any(row.missed for row in rows))


if __name__ == "__main__":
    try:
        code = main()
    except (Unmeasured, TimeoutError) as error:
        say(f"cannot tell: {error} Is this machine busy with other things?")
        code = UNMEASURED
    sys.exit(code)
