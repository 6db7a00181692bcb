"""Numbers, sizes and times as a person reads them. Pure: text in, text out, no printing."""

from __future__ import annotations

import math
from typing import Final

THIN: Final = "\N{THIN SPACE}"
MISSING: Final = "\N{EN DASH}"
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_DAY: Final = 86_400


def number(value: int) -> str:
    """1024 -> "1 024", with a thin space."""
    return f"{value:,}".replace(",", THIN)


def figure(value: float | None, digits: int = 1) -> str:
    """A measured value with fixed digits; a dash when there is none or it is not a number."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:,.{digits}f}".replace(",", THIN)


def percent(share: float | None) -> str:
    """0.2 -> "20 %"."""
    if share is None or not math.isfinite(share):
        return MISSING
    return f"{share * 100:.0f}{THIN}%"


def size(count: int) -> str:
    """Bytes in decimal units: 3400000 -> "3.4 MB"."""
    value = float(count)
    for unit in _UNITS[:-1]:
        if abs(value) < 1000:  # noqa: PLR2004 - the step between decimal units
            return f"{value:.0f}{THIN}{unit}" if unit == "B" else f"{value:.1f}{THIN}{unit}"
        value /= 1000
    return f"{value:.1f}{THIN}{_UNITS[-1]}"


def span(seconds: float) -> str:
    """A length of time in its two largest units: 5400 -> "1 h 30 min"."""
    left = max(0, round(seconds))
    parts = []
    for name, length in (("d", _DAY), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{THIN}{name}")
    return " ".join(parts[:2]) or f"0{THIN}s"


def energy(joules: float) -> str:
    """3600000 -> "1.00 kWh"; below a tenth of it in watt-hours."""
    hours = joules / 3600
    return f"{hours / 1000:,.2f}{THIN}kWh".replace(",", THIN) if hours >= 100 else f"{hours:.1f}{THIN}Wh"  # noqa: PLR2004


def fine_percent(share: float | None) -> str:
    """0.0123 -> "1.2 %", for shares of a large whole; a dash when there is none."""
    if share is None:
        return MISSING
    return f"{share * 100:.0f}{THIN}%" if share >= 0.1 or share == 0 else f"{share * 100:.2g}{THIN}%"  # noqa: PLR2004
