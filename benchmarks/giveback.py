"""How soon computing stops after real input at a real X server, and whether the shares asked for hold: from outside.

    python benchmarks/giveback.py                 about 20 minutes; writes benchmarks/giveback.json and .md

A practice swarm and a volunteer that pauses while somebody is there, on a screen of their own. Input is the X server's own
test input, as xdotool's. When computing stopped is read from the kernel's account of the training thread. A trial whose
input came while the thread computed anyway counts as "training"; the others met a round, a step or a wait for the swarm.
Exits non-zero when a bound is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from machine import machine
from run import Row, Terminal, join, measure_share
from Xlib import X
from Xlib.display import Display
from Xlib.ext import xtest

from desktops import Screen
from skep import bootstrap
from skep.adapters.paths import Home
from skep.cli.demo import DEVOTED

HERE = Path(__file__).parent
SHARES = (10, 25, 50, 75)
LOOK_SECONDS = 0.002
STILL_SECONDS = 0.2
BUSY, STILL = 0.5, 0.1
"""Shares of a core: above the one a thread computes, below the other it rests."""
GIVE_UP_SECONDS = 30.0
SECONDS_AGO = 0.1


class Ran:
    """Processor seconds of a process's main thread, as the scheduler counts them, looked at again and again."""

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}/task/{pid}/schedstat")
        self.seen: list[tuple[float, float]] = []

    def look(self) -> None:
        self.seen.append((time.perf_counter(), int(self._path.read_text().split()[0]) / 1e9))

    def follow(self, seconds: float) -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            self.look()
            time.sleep(LOOK_SECONDS)

    def share(self, begin: float, end: float) -> float:
        """Of a core, between two moments on the performance counter."""
        inside = [entry for entry in self.seen if begin <= entry[0] <= end]
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])

    def stopped_after(self, moment: float) -> float | None:
        """The first look since when it rested for a while; None where it has not yet."""
        for at, _ in self.seen:
            if at >= moment and at + STILL_SECONDS <= self.seen[-1][0] and self.share(at, at + STILL_SECONDS) < STILL:
                return at
        return None


def wait_until_it_computes(terminal: Terminal) -> None:
    while True:
        event = terminal.wait_for("progress")
        if event["share_asked"] == 1.0 and event["samples_per_second"] > 0:
            return


def trial(terminal: Terminal, display: Any, chance: random.Random) -> tuple[float, bool]:
    """Seconds from input to rest, and whether the thread was computing when the input came."""
    wait_until_it_computes(terminal)
    ran = Ran(terminal.worker().pid)
    ran.follow(2.0 + chance.random())
    begun = time.perf_counter()
    for x in (1, -1):
        xtest.fake_input(display, X.MotionNotify, detail=1, x=x, y=0)
    display.sync()
    ran.follow(2 * STILL_SECONDS)
    while (stopped := ran.stopped_after(begun)) is None:
        assert time.perf_counter() - begun < GIVE_UP_SECONDS, "it does not stop"
        ran.follow(STILL_SECONDS)
    return stopped - begun, ran.share(begun - SECONDS_AGO, begun) > BUSY


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def measure(trials: int, seconds: float) -> list[Row]:
    screen = Screen(window_manager="openbox")
    kept = dict(os.environ)
    try:
        with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder:
            home = Path(folder) / "home"  # of both, so that the practice swarm is no other program
            practice = Terminal(home, "practice", "--peers", "2")
            manifest = practice.event()["manifest"]
            rows = shares(manifest, home, seconds)
            os.environ.update(screen.environ)
            rows += reactions(manifest, home, trials, Display(screen.name))
            practice.stop()
        return rows
    finally:
        os.environ.clear()
        os.environ.update(kept)
        screen.close()


def shares(manifest: str, home: Path, seconds: float) -> list[Row]:
    terminal, _ = join(manifest, home)
    terminal.wait_for("progress")
    rows = [measure_share(terminal, asked, seconds) for asked in SHARES]
    terminal.stop()
    return rows


def reactions(manifest: str, home: Path, trials: int, display: Any) -> list[Row]:
    """Somebody is there half a minute after each input, and the volunteer pauses meanwhile."""
    wanted = DEVOTED | {"compute.share_using": 0.0, "compute.idle_minutes": 0.5, "compute.ramp_seconds": 0.0}
    bootstrap.settings(Home(home)).save({**wanted})
    terminal = Terminal(home, "join", manifest)
    chance = random.Random(0)
    found = [trial(terminal, display, chance) for _ in range(trials)]
    terminal.stop()
    training = [taken for taken, computed in found if computed]
    other = [taken for taken, computed in found if not computed]
    assert training, "no input came while it computed"
    rows = [
        Row("input at an X server to rest, while training, p95", p95(training), "s", 0.25, training),
        Row("the same, median", statistics.median(training), "s", None, training),
    ]
    if other:
        rows.append(Row("the same, in a round, a step or a wait, p95", p95(other), "s", None, other))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each share is measured (60)")
    options = parser.parse_args()
    rows = measure(options.trials, options.seconds)
    taken = f"{datetime.now(UTC):%Y-%m-%d}"
    body = {"machine": machine(), "date": taken, "rows": [vars(row) for row in rows]}
    (HERE / "giveback.json").write_text(json.dumps(body, indent=1) + "\n")
    lines = [f"`python benchmarks/giveback.py` on {machine()}, {taken}.", "", "| what | measured | bound | of |"]
    lines.append("|---|---|---|---|")
    for row in rows:
        bound = f"≤ {row.bound:g} {row.unit}" if row.bound is not None else ""
        lines.append(f"| {row.name} | {row.value:.2f} {row.unit} | {bound} | {len(row.values)} |")
    (HERE / "giveback.md").write_text("\n".join(lines) + "\n")
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(row.missed for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
