"""What a setting declares: words, unit, bounds, default. Data only; checking, parsing and showing are in `settings`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

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
    """One setting with everything that a form, a file and a terminal need.

    `default`, `minimum` and `maximum` are in `unit`, but fractions 0..1 for percentages. `zero` is the word for a
    value of 0 ("automatic"), which is allowed then even below the minimum; `empty` the word for an empty text.
    `form` describes a text that must match `pattern`.
    """

    key: str
    label: Text
    help: Text
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

    @property
    def group(self) -> str:
        return self.key.partition(".")[0]
