"""The rows of the comparison: how they are judged, stored and shown."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from report import Unmeasured

MOST_REJECTED = 2


@dataclass
class Row:
    """skep's values beside another's; the bound is on `skep / other`, or on skep's own median if there is no other.

    With `own` it is on skep's own median though there is another.
    """

    name: str
    unit: str
    skep: list[float]
    other: list[float] = field(default_factory=list)
    other_name: str = "stock"
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""
    measure: str = ""
    date: str = ""
    machine: str = ""
    commit: str = ""
    own: bool = False

    @property
    def compared(self) -> bool:
        return bool(self.other) and not self.own

    @property
    def judged(self) -> float | None:
        if not self.skep:
            return None
        median = statistics.median(self.skep)
        return median / statistics.median(self.other) if self.compared else median

    @property
    def missed(self) -> bool:
        value = self.judged
        if value is None:
            return False
        return (self.at_most is not None and value > self.at_most) or (
            self.at_least is not None and value < self.at_least
        )

    @property
    def bound(self) -> str:
        times = f" of {self.other_name}" if self.compared else f" {self.unit}"
        if self.at_most is not None:
            return f"≤ {self.at_most:g}{times}"
        return f"≥ {self.at_least:g}{times}" if self.at_least is not None else ""


def words(values: list[float]) -> str:
    """Median and range as text."""
    if not values:
        return ""
    median = f"{statistics.median(values):.3g}"
    return median if len(values) == 1 else f"{median} ({min(values):.3g} to {max(values):.3g})"


def off(value: float, wanted: float, by: float) -> bool:
    """Whether it differs by more than this part of `wanted`."""
    return abs(value / wanted - 1) > by


def valid_runs(run: Callable[[], Any], count: int) -> tuple[list[Any], list[str]]:
    """The results of `count` runs, and why others were rejected. Raises Unmeasured when it is more than MOST_REJECTED."""
    results, rejected = list[Any](), list[str]()
    while len(results) < count:
        try:
            results.append(run())
        except Unmeasured as error:
            rejected.append(str(error))
            if len(rejected) > MOST_REJECTED:
                raise Unmeasured(f"{len(rejected)} runs were rejected; the last one: {error}") from None
    return results, rejected


def table(rows: list[Row]) -> str:
    lines = [
        "`python benchmarks/against_stock`; each row on its date, commit and machine.",
        "",
        "| what | skep | beside it | judged | bound | | date | commit | machine |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        other = f"{row.other_name} {words(row.other)}" if row.other else ""
        judged = "" if row.judged is None else f"{row.judged:.2f}"
        notes = "; ".join(part for part in ("**missed**" * row.missed, row.note) if part)
        unit = f" ({row.unit})" if row.unit else ""
        lines.append(
            f"| {row.name}{unit} | {words(row.skep)} | {other} | {judged} | {row.bound} | {notes} | {row.date} "
            f"| {row.commit} | {row.machine} |"
        )
    return "\n".join(lines) + "\n"


def kept(path: Path, known: Collection[str], leaving_out: Collection[str]) -> list[Row]:
    """The rows of earlier runs, of measures that are `known` and not measured anew now."""
    if not path.exists():
        return []
    rows = [Row(**fields) for fields in json.loads(path.read_text())["rows"]]
    return [row for row in rows if row.measure in known and row.measure not in leaving_out]


def write(rows: list[Row], to: Path) -> None:
    body = {"rows": [vars(row) for row in rows]}
    to.with_suffix(".json").write_text(json.dumps(body, indent=1) + "\n")
    to.with_suffix(".md").write_text(table(rows))
