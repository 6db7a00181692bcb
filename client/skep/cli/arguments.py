"""What people write after a verb: spans of time, percents, counts and ports. Pure parsing.

Each function returns the value or raises BadInput with one sentence that shows what is expected.
"""

from __future__ import annotations

import re
from typing import Final

from skep.core.errors import BadInput

LONGEST: Final = 366 * 86_400
"""Seconds; a longer pause or run is most likely a slip of the keyboard."""

_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(min|[smhd])", re.ASCII)
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)
_PERCENT: Final = re.compile(r"(\d{1,3}(?:\.\d{1,3})?) ?%?", re.ASCII)
_DIGITS: Final = re.compile(r"\d{1,9}", re.ASCII)


def seconds(text: str) -> float:
    """Seconds in "60s", "15m", "1h30m" or "2d"."""
    if not _WHOLE.fullmatch(text):
        raise BadInput(f"“{_short(text)}” is not a span of time.", "Write it as 60s, 15m, 1h or 1h30m.")
    total = sum(float(count) * _SECONDS[unit] for count, unit in _PART.findall(text))
    if not 0 < total <= LONGEST:
        raise BadInput(f"“{_short(text)}” is out of range.", "Give a span between 1s and 366d.")
    return total


def share(text: str) -> float:
    """0.3 for "30" or "30%"."""
    if not (found := _PERCENT.fullmatch(text)) or float(found[1]) > 100:  # noqa: PLR2004 - percent end there
        raise BadInput(f"“{_short(text)}” is not a percentage.", "Give a number from 5 to 100, such as 30.")
    return float(found[1]) / 100


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not _DIGITS.fullmatch(text) or int(text) < 1:
        raise BadInput(f"“{_short(text)}” is not a whole number of at least 1.", "Give a number such as 5.")
    return int(text)


def port(text: str) -> int:
    """A TCP port; 0 lets the system choose."""
    if not _DIGITS.fullmatch(text) or int(text) > 65_535:  # noqa: PLR2004 - the last TCP port
        raise BadInput(f"“{_short(text)}” is not a port.", "Give a number from 0 to 65535; 0 picks a free one.")
    return int(text)


def addresses(text: str) -> tuple[str, ...]:
    """Multiaddresses separated by commas or spaces, as in SKEP_PEERS."""
    found = tuple(dict.fromkeys(part for part in re.split(r"[,\s]+", text) if part))
    for address in found:
        if not re.fullmatch(r"(/[^/\s]+)+", address, re.ASCII):
            raise BadInput(
                f"“{_short(address)}” in SKEP_PEERS is not an address.",
                "Write addresses such as /ip4/203.0.113.7/tcp/31337/p2p/Qm…, separated by commas.",
            )
    return found


def _short(text: str) -> str:
    shown = "".join(character if character.isprintable() else "?" for character in text)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"  # noqa: PLR2004 - what fits a line
