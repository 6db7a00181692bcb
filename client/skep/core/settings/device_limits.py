"""Limits of single cards, as in the setting compute.device_limits: "cuda:0 80% 75C 200W 2GB; cuda:1 50%". Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from skep.core.text import Text

_CARD: Final = r"(?:cuda|cpu):(?:0|[1-9]\d?)"
_LIMITS: Final = (
    r"(?: (?:100|[1-9]\d|[5-9])%)?"
    r"(?: (?:[5-8]\d|9[0-5])C)?"
    r"(?: (?:[2-9]\d|[1-9]\d\d|1[0-4]\d\d|1500)W)?"
    r"(?: (?:\d{1,2}|1\d\d|2[0-4]\d|25[0-5])(?:\.\d)?GB)?"
)
_ONE: Final = rf"{_CARD}(?= \d){_LIMITS}"
PATTERN: Final = rf"(?!.*\b(?P<one>{_CARD}) .*; ?(?P=one) ){_ONE}(; ?{_ONE}){{0,15}}"
"""Each card once, with one limit at least, in this order."""
FORM: Final = Text("setting.device_limits_form")
_FIELDS: Final = re.compile(r"(?P<number>[\d.]+)(?P<unit>%|C|W|GB)")


@lru_cache(maxsize=8)
def read(text: str) -> Mapping[str, Mapping[str, float]]:
    """The numbers of each device by their unit: "%", "C", "W" and "GB". `text` is as PATTERN has it, or empty."""
    parts = (part.strip().partition(" ") for part in text.split(";") if part.strip())
    return {
        device: {found["unit"]: float(found["number"]) for found in _FIELDS.finditer(limits)}
        for device, _, limits in parts
    }


def written(limits: Mapping[str, Mapping[str, float]]) -> str:
    """The setting's text for what `read` returns; devices without a limit are left out."""
    devices = {
        device: [f"{numbers[unit]:g}{unit}" for unit in ("%", "C", "W", "GB") if unit in numbers]
        for device, numbers in limits.items()
    }
    return "; ".join(" ".join((device, *numbers)) for device, numbers in devices.items() if numbers)
