"""Measures a volunteer in a practice swarm of three peers on this computer, from outside, and writes the results.

    make bench            about 8 minutes; writes benchmarks/volunteer.json and benchmarks/volunteer.md

Rows: seconds from start to joined and to each stage; the share asked against processor time / (processor time + naps)
over a minute each; the time until a pause takes effect; the time from Ctrl-C until no process is left; memory of the
whole process tree (proportional set size). Exits non-zero when a row misses its bound.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from machine import machine
from report import Row

from skep import bootstrap
from skep.adapters.storage.paths import Home
from skep.cli.verbs.demo import DEVOTED

SKEP = [sys.executable, "-m", "skep.cli.main"]
HERE = Path(__file__).parent
PATIENCE = 180.0


class Terminal:
    """A `skep --json` verb running in the background."""

    def __init__(
        self, home: Path, *arguments: str, command: Sequence[str] = SKEP, environ: Mapping[str, str] | None = None
    ) -> None:
        """`environ` is added to our own environment."""
        self.home, self._command = home, command
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [*command, "--home", str(home), "--json", *arguments],
            env={**os.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            text=True,
            stdin=subprocess.PIPE,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def event(self, within: float = PATIENCE) -> dict[str, Any]:
        """Raises TimeoutError."""
        try:
            event: dict[str, Any] = json.loads(self._lines.get(timeout=max(0.01, within)))
        except queue.Empty:
            raise TimeoutError(f"skep said nothing for {within:.0f} s.") from None
        return event

    def wait_for(
        self, name: str, meeting: Callable[[dict[str, Any]], bool] = lambda _event: True, within: float = PATIENCE
    ) -> dict[str, Any]:
        """The next event of this name that meets the condition. Raises TimeoutError."""
        deadline = time.monotonic() + within
        while True:
            event = self.event(deadline - time.monotonic())
            if event["event"] == name and meeting(event):
                return event

    def family(self) -> list[psutil.Process]:
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]

    def worker(self) -> psutil.Process:
        return next(p for p in self.family()[1:] if "skep.worker.main" in " ".join(p.cmdline()))

    def tell(self, *arguments: str) -> None:
        command = [*self._command, "--home", str(self.home), "--json", *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)

    def stop(self) -> float:
        """Send SIGINT; returns the seconds until no process of it is left."""
        family = self.family()
        begun = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)
        while any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family):
            time.sleep(0.01)
        return time.monotonic() - begun

    def close(self) -> None:
        """End it and all that is left of it, in order if possible."""
        if self.process.poll() is not None:
            return
        family = self.family()
        self.process.send_signal(signal.SIGINT)
        psutil.wait_procs(family, timeout=20)
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self.process.wait(PATIENCE)


def join(manifest: str, home: Path) -> tuple[Terminal, list[Row]]:
    """Join and measure each stage; returns when it trains."""
    bootstrap.settings(Home(home)).save({**DEVOTED})  # to this home, the practice swarm's peers are other programs
    terminal, rows = Terminal(home, "join", manifest), []
    while True:
        event = terminal.event()
        seconds = time.monotonic() - terminal.begun
        if event["event"] == "stage" and event["fraction"] == 1.0:
            rows.append(Row(f"start to the end of stage {event['name']}", seconds, "s"))
        elif event["event"] == "joined":
            return terminal, [*rows, Row("start to joined", seconds, "s")]


def measure_share(terminal: Terminal, asked: int, seconds: float) -> Row:
    """The difference in points between the share measured from outside and the one asked for."""
    terminal.tell("share", str(asked))
    while terminal.wait_for("progress")["share_asked"] != asked / 100:
        pass
    worker = terminal.worker()
    first, processor = terminal.wait_for("progress"), main_thread_seconds(worker)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        last = terminal.wait_for("progress")
    processor = main_thread_seconds(worker) - processor
    share = 100 * processor / (processor + last["nap_seconds"] - first["nap_seconds"])
    return Row(
        f"share {asked} % asked: distance of the share seen from outside", abs(share - asked), "points", 3.0, [share]
    )


def main_thread_seconds(process: psutil.Process) -> float:
    main = next(thread for thread in process.threads() if thread.id == process.pid)
    return float(main.user_time + main.system_time)


def measure_pause(terminal: Terminal, times: int) -> Row:
    """Time from the start of `skep pause` to the event that the worker rests; the value is its reaction alone."""
    reactions = []
    for _ in range(times):
        begun = time.monotonic()
        terminal.tell("pause")
        while terminal.wait_for("paused")["share"] != 0:
            pass
        reactions.append(time.monotonic() - begun)
        terminal.tell("resume")
        terminal.wait_for("progress")
    return Row("skep pause typed to computing stopped", statistics.median(reactions), "s", 1.0, reactions)


def memory(terminal: Terminal) -> Row:
    total = sum(p.memory_full_info().pss for p in terminal.family())
    return Row("memory of the whole process tree, 0.45 M parameters", total / 1e6, "MB")


def measure(seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder:
        practice = Terminal(Path(folder) / "practice", "practice", "--peers", "2")
        manifest = practice.event()["manifest"]
        terminal, rows = join(manifest, Path(folder) / "home")
        terminal.wait_for("progress")
        rows += [measure_share(terminal, asked, seconds) for asked in (25, 50, 75)]
        terminal.tell("share", "100")
        rows += [measure_pause(terminal, 5), memory(terminal)]
        stops = [terminal.stop()]
        for number in range(4):
            terminal, _ = join(manifest, Path(folder) / f"home{number}")
            while terminal.wait_for("progress")["samples_accumulated"] == 0:
                pass
            stops.append(terminal.stop())
        rows.append(Row("Ctrl-C to nothing left", max(stops), "s", 2.0, stops))
        practice.stop()
    return rows


def write(rows: list[Row], seconds: float) -> None:
    taken = datetime.now(UTC).strftime("%Y-%m-%d")
    body = {"machine": machine(), "date": taken, "share_seconds": seconds, "rows": [vars(row) for row in rows]}
    (HERE / "volunteer.json").write_text(json.dumps(body, indent=1) + "\n")
    lines = [
        f"`python benchmarks/run.py --seconds {seconds:g}` on {machine()}, {taken}.",
        "",
        "| what | measured | bound |",
        "|---|---|---|",
    ]
    for row in rows:
        bound = f"≤ {row.bound:g} {row.unit}" if row.bound is not None else ""
        lines.append(f"| {row.name} | {row.value:.2f} {row.unit} | {bound} |")
    (HERE / "volunteer.md").write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each share is measured (60)")
    seconds = parser.parse_args().seconds
    rows = measure(seconds)
    write(rows, seconds)
    sys.stdout.write((HERE / "volunteer.md").read_text())
    return int(any(row.missed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
