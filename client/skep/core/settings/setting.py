"""The declaration of a setting: texts, unit, bounds, default. Checks, parsing and formatting are in `settings`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from skep.core.text import NOTHING, Text

Value = bool | int | float | str


class Kind(StrEnum):
    YES_NO = "yes_no"
    WHOLE = "whole"
    NUMBER = "number"
    PERCENT = "percent"
    CHOICE = "choice"
    TEXT = "text"


@dataclass(frozen=True)
class Setting:
    """One setting with the data that a form, a file and a terminal need.

    `default`, `minimum` and `maximum` are in `unit`, but fractions 0..1 for percentages. `zero` is the word for a
    value of 0 ("automatic"), which is then allowed even below the minimum; `empty` is the word for an empty text.
    `form` describes a text that must match `pattern`. `label` and `help` are by default the catalogues' entries for the
    key: "setting.compute_share_away_label" and "…_help" for "compute.share_away".
    """

    key: str
    kind: Kind
    default: Value
    unit: str = ""
    minimum: float = -math.inf
    maximum: float = math.inf
    zero: str = ""
    empty: str = ""
    choices: tuple[str, ...] = ()
    pattern: str = ""
    form: Text = NOTHING
    label: Text = NOTHING
    help: Text = NOTHING

    def __post_init__(self) -> None:
        stem = f"setting.{self.key.replace('.', '_')}"
        object.__setattr__(self, "label", self.label or Text(f"{stem}_label"))
        object.__setattr__(self, "help", self.help or Text(f"{stem}_help"))

    @property
    def group(self) -> str:
        return self.key.partition(".")[0]


# the remaining fields of Setting for each kind, given in a declaration after the texts


def yes_no(*, default: bool) -> dict[str, Any]:
    return {"kind": Kind.YES_NO, "default": default}


def choice(names: tuple[str, ...]) -> dict[str, Any]:
    """Fields of a setting that is one of `names`, the first of which is the default."""
    return {"kind": Kind.CHOICE, "default": names[0], "choices": names}


def number(
    default: float, unit: str, minimum: float, maximum: float, *, zero: str = "", kind: Kind = Kind.NUMBER
) -> dict[str, Any]:
    return {"kind": kind, "default": default, "unit": unit, "minimum": minimum, "maximum": maximum, "zero": zero}


def whole(default: int, unit: str, minimum: int, maximum: int, *, zero: str = "") -> dict[str, Any]:
    return number(default, unit, minimum, maximum, zero=zero, kind=Kind.WHOLE)


def percent(default: float, minimum: float, maximum: float, *, zero: str = "") -> dict[str, Any]:
    """Fields of a percentage; all values are fractions 0..1."""
    return number(default, "%", minimum, maximum, zero=zero, kind=Kind.PERCENT)
