"""What people write after a verb: spans of time, percents, counts and ports. Pure parsing.

Each function returns the value or raises BadInput with one sentence that shows what is expected.
"""

from __future__ import annotations

import re
from typing import Final

from skep.core.errors import BadInput
from skep.core.project.addresses import is_peer_address
from skep.core.text import Text

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
        raise BadInput(Text("arguments.not_span_time", short=_short(text)), Text("arguments.write_60s_15m_1h_1h30m"))
    total = sum(float(count) * _SECONDS[unit] for count, unit in _PART.findall(text))
    if not 0 < total <= LONGEST:
        raise BadInput(Text("arguments.out_range", short=_short(text)), Text("arguments.give_span_between_1s_366d"))
    return total


def share(text: str) -> float:
    """0.3 for "30" or "30%"."""
    if not (found := _PERCENT.fullmatch(text)) or float(found[1]) > 100:  # noqa: PLR2004 - percent end there
        raise BadInput(Text("arguments.not_percentage", short=_short(text)), Text("arguments.give_number_from_5_100"))
    return float(found[1]) / 100


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not _DIGITS.fullmatch(text) or int(text) < 1:
        raise BadInput(
            Text("arguments.not_whole_number_least_1", short=_short(text)), Text("arguments.give_number_such_5")
        )
    return int(text)


def port(text: str) -> int:
    """A TCP port; 0 lets the system choose."""
    if not _DIGITS.fullmatch(text) or int(text) > 65_535:  # noqa: PLR2004 - the last TCP port
        raise BadInput(Text("arguments.not_port", short=_short(text)), Text("arguments.give_number_from_0_65535"))
    return int(text)


def addresses(text: str) -> tuple[str, ...]:
    """Multiaddresses separated by commas or spaces, as in SKEP_PEERS."""
    found = tuple(dict.fromkeys(part for part in re.split(r"[,\s]+", text) if part))
    for address in found:
        if not is_peer_address(address):
            raise BadInput(
                Text("arguments.skep_peers_not_address", short=_short(address)),
                Text("arguments.write_addresses_such_ip4_203"),
            )
    return found


def _short(text: str) -> str:
    shown = "".join(character if character.isprintable() else "?" for character in text)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"  # noqa: PLR2004 - what fits a line
