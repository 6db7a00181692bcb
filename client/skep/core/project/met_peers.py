"""Peers with which rounds of a run were confirmed, as the worker keeps them in a file. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from skep.core.project.addresses import is_peer_address

MOST: Final = 8
"""Peers that are kept for one run."""
OLDEST: Final = 14 * 86_400.0
"""Seconds after which a peer that was not met again is forgotten, and a run's file with it."""
READ_AT_MOST: Final = 100_000
"""Bytes; a longer file is not one of ours."""


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A multiaddress with a peer id, and when a round with that peer was confirmed last, in seconds since 1970."""

    address: str
    met: float

    @property
    def peer(self) -> str:
        return self.address.rpartition("/p2p/")[2]


def file_name(run_id: str) -> str:
    """The name of a run's file."""
    return f"{run_id}.json"


def met(raw: bytes, now: float) -> list[Known]:
    """What a file holds and is not too old at `now` (seconds since 1970), newest first; nothing if it is damaged."""
    try:
        found = msgspec.json.decode(raw, type=list[Known])
    except ValueError:  # also what msgspec raises
        return []
    good = [each for each in found if is_peer_address(each.address) and abs(now - each.met) < OLDEST]
    return sorted(good, key=lambda each: each.met, reverse=True)[:MOST]
