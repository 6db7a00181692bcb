"""Helpers of the benchmarks: rows with their targets, progress messages, results as .json and .md."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from machine import machine

HERE: Final = Path(__file__).resolve().parent
MISSED: Final = 1
"""Exit code when a row misses its target."""
UNMEASURED: Final = 2
"""Exit code when there is no result: the machine was too busy, or something did not answer in time."""
Kind = TypeVar("Kind")
_BEGUN: Final = time.monotonic()
# on SIGTERM, as by a time limit, end the child processes too
signal.signal(signal.SIGTERM, lambda *_: sys.exit(UNMEASURED))


class Unmeasured(Exception):
    """Ends a benchmark without a result; the message is one sentence."""


@dataclass
class Row:
    """One measured quantity, its target (at most `bound`, at least `least`), and the single values behind it."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    values: list[float] = field(default_factory=list)
    least: float | None = None

    @property
    def missed(self) -> bool:
        over = self.bound is not None and not self.value <= self.bound
        under = self.least is not None and not self.value >= self.least
        return over or under

    @property
    def target(self) -> str:
        """As "≤ 0.25 s"; empty where there is none."""
        parts = [f"≤ {self.bound:g} {self.unit}"] if self.bound is not None else []
        return " and ".join([*parts, *([f"≥ {self.least:g} {self.unit}"] if self.least is not None else [])])


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def in_turn(kinds: Iterable[Kind], number: int) -> list[Kind]:
    """The kinds that are compared, as they are measured in turn `number`: which begins alternates."""
    order = list(kinds)
    return order[::-1] if number % 2 else order


def say(text: str) -> None:
    """Print a progress message, with the minutes and seconds since the start."""
    minutes, seconds = divmod(int(time.monotonic() - _BEGUN), 60)
    sys.stdout.write(f"{minutes:3d}:{seconds:02d}  {text}\n")
    sys.stdout.flush()


def finish(name: str, rows: list[Row], folder: Path, **more: Any) -> int:
    """Write `folder`/`name`.json and .md, print the rows, and return the exit code.

    The command is written down without `--to FOLDER`, which does not change what is measured.
    """
    arguments = [each for before, each in pairwise(sys.argv) if "--to" not in (before, each)]
    command = " ".join(["benchmarks/" + Path(sys.argv[0]).name, *arguments])
    taken, where = f"{datetime.now(UTC):%Y-%m-%d}", machine()
    body = {"machine": where, "date": taken, "command": command, "rows": [vars(row) for row in rows], **more}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(body, indent=1) + "\n")
    lines = [f"`python {command}` on {where}, {taken}.", "", "| what | measured | target | of |", "|---|---|---|---|"]
    lines += [
        f"| {row.name} | {row.value:.4g} {row.unit} | {row.target}{' **missed**' if row.missed else ''} | {len(row.values) or ''} |"
        for row in rows
    ]
    (folder / f"{name}.md").write_text("\n".join(lines) + "\n")
    sys.stdout.write("\n".join(lines) + "\n")
    missed = [row.name for row in rows if row.missed]
    say(f"missed: {'; '.join(missed)}" if missed else "every target is met")
    return MISSED if missed else 0
