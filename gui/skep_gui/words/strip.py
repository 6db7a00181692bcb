"""Bars side by side, as data without Qt: where each stands, how high, in which tone, what it is called, where it leads."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """One bar; all measures are parts 0..1 of the whole strip.

    `upper` is the part of the height that stands for what was lost. `tone` names a colour of the theme, `name` says all
    of it in words, `key` is the setting it leads to, "" where it leads to none.
    """

    left: float
    width: float
    height: float
    tone: str
    name: str
    key: str = ""
    upper: float = 0.0


@dataclass(frozen=True)
class Chart:
    """Bars, names below them by their place 0..1, and what the full height stands for (0: nothing to be written)."""

    cells: tuple[Cell, ...] = ()
    labels: tuple[tuple[float, str], ...] = ()
    top: float = 0.0


def nice_top(most: float) -> float:
    """The top of an axis: the least 1, 2, 4, 6 or 8 times a power of ten that is not below `most`; 4 parts stay round."""
    if not math.isfinite(most) or most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= most)
