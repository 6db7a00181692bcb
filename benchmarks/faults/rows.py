"""The rows of a part: one JSON object a line, appended as they are measured, and one table of all parts."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from machine import machine
from report import HERE, Row

from skep.core.errors import SkepError

ROOT = HERE.parent
MEASURED = (
    "client",
    "gui",
    "packaging",
    "pyproject.toml",
    "constraints.txt",
    ":(glob)benchmarks/*.py",
    "benchmarks/attacks",
    "benchmarks/faults",
    ":(glob)tests/*.py",
)
"""What a row depends on: the app, its dependencies, and what measures it. No other change makes rows outdated."""
Measured = dict[str, Any]
FAILURES = (
    TimeoutError,
    AssertionError,
    BrokenPipeError,
    subprocess.TimeoutExpired,
    sqlite3.Error,
    psutil.Error,
    SkepError,
)
"""How a trial ends that waits in vain for what should follow a fault."""
FAILURE_LENGTH = 500


@dataclass(frozen=True)
class Part:
    """`count` rows are wanted for a commit; `judged` makes quantities with their targets of those that are there.

    `measure` yields the rows with these numbers; what it yields is stored before it goes on.
    """

    name: str
    about: str
    count: int
    measure: Callable[[range], Any]
    judged: Callable[[list[Measured]], list[Row]]

    def quantities(self, rows: list[Measured]) -> list[Row]:
        """Those of the trials with a result, and how many had none; earlier rows do not say that."""
        whole = [row for row in rows if not row.get("failed")]
        made = self.judged(whole)
        if any("failed" in row for row in rows):
            made.append(Row("trials without a result", len(rows) - len(whole), "", 0, [0.0] * len(rows)))
        return made


def attempted(about: Measured, trial: Callable[..., Measured], *arguments: Any) -> Measured:
    """The row of one trial that `about` describes; of one that fails, with `failed` saying how: it counts as well."""
    try:
        return about | {"failed": ""} | trial(*arguments)
    except FAILURES as error:
        return about | {"failed": f"{type(error).__name__}: {error}"[:FAILURE_LENGTH]}


class Rows:
    """The file of one part in `folder`."""

    def __init__(self, part: Part, folder: Path) -> None:
        self._part, self._folder = part, folder
        self._file = folder / f"faults-{part.name}.jsonl"
        self._about = {"commit": this_commit(), "machine": machine()}

    def of_this_commit(self) -> list[Measured]:
        return [each for each in stored(self._file) if each["commit"] == self._about["commit"]]

    def append(self, row: Measured) -> None:
        """Raises RuntimeError when what is measured has changed meanwhile."""
        if this_commit() != self._about["commit"]:
            raise RuntimeError("what is measured was changed during the measurement: start again")
        taken = {"date": f"{datetime.now(UTC):%Y-%m-%d}"}
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps(row | taken | self._about) + "\n")


def stored(file: Path) -> list[Measured]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def this_commit(measured: Sequence[str] = MEASURED) -> str:
    """The last commit that changed what is measured, with a + when files differ from it."""
    last = git("log", "-1", "--format=%h", "--abbrev=12", "--", *measured)
    return last + "+" * bool(git("status", "--porcelain", "--", *measured))


def git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write_table(parts: list[Part], folder: Path) -> None:
    """`faults.md`: each part's quantities at the last commit that has all rows, and at later ones; newest last."""
    lines = [
        "`make test-faults PART=…`; the single rows, also those of earlier commits, are in `faults-*.jsonl`.",
        "",
        "| part | what | measured | target | of | commit | machine |",
        "|---|---|---|---|---|---|---|",
    ]
    for part in parts:
        for commit, rows in recent(part, stored(folder / f"faults-{part.name}.jsonl")):
            where = "; ".join(sorted({row["machine"] for row in rows}))
            whole = "" if len(rows) >= part.count else f", {len(rows)} of {part.count} trials"
            for each in part.quantities(rows):
                missed = " **missed**" if each.missed else ""
                lines.append(
                    f"| {part.name} | {each.name} | {each.value:.4g} {each.unit} | {each.target}{missed} |"
                    f" {len(each.values)} | {commit}{whole} | {where} |"
                )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "faults.md").write_text("\n".join(lines) + "\n")


def recent(part: Part, rows: list[Measured]) -> list[tuple[str, list[Measured]]]:
    """The rows by commit, from the last commit on that has as many as are wanted; all if none has."""
    groups: dict[str, list[Measured]] = {}
    for row in rows:
        groups.setdefault(row["commit"], []).append(row)
    whole = [number for number, own in enumerate(groups.values()) if len(own) >= part.count]
    return list(groups.items())[max(whole, default=0) :]
