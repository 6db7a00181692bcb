"""The nouns of what a project costs this computer and gets from it, by quarters of an hour. Data only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from skep.core.model import ContributionState, Tally

QUARTER: Final = 900.0
"""Seconds. Every time zone's hours and days are made of whole quarters of an hour."""


@dataclass(frozen=True)
class Spent:
    """Seconds and joules. `staying` in the project, `training` with a share above 0 of it, `computing` as the worker
    measured it. `joules` is what the device drew during `measured`, the part of `training` in which it told its power.
    """

    staying: float = 0.0
    training: float = 0.0
    computing: float = 0.0
    joules: float = 0.0
    measured: float = 0.0

    def plus(self, more: Spent) -> Spent:
        return Spent(
            self.staying + more.staying,
            self.training + more.training,
            self.computing + more.computing,
            self.joules + more.joules,
            self.measured + more.measured,
        )


@dataclass(frozen=True)
class Quarter:
    """What one project cost in the quarter of an hour that begins at `begin`, wall clock seconds."""

    project: str
    begin: float
    spent: Spent


@dataclass(frozen=True)
class Earned:
    """What was settled, as confirmed or lost, in the quarter of an hour that begins at `begin`."""

    project: str
    begin: float
    state: ContributionState
    tally: Tally


@dataclass(frozen=True)
class Proportion:
    """Confirmed samples, and how many the whole swarm puts into the epochs they were part of, where that is known."""

    samples: int = 0
    swarm: int = 0

    @property
    def share(self) -> float | None:
        """0..1; None while nothing is known."""
        return min(1.0, self.samples / self.swarm) if self.swarm else None


@dataclass(frozen=True)
class Meter:
    """What was spent in the quarter that begins at `quarter`, and is not written yet."""

    quarter: float = 0.0
    spent: Spent = field(default_factory=Spent)


def quarter_of(wall: float) -> float:
    return wall // QUARTER * QUARTER


def together(each: Iterable[Spent]) -> Spent:
    whole = Spent()
    for one in each:
        whole = whole.plus(one)
    return whole
