"""In which order the donors that offer a state are asked for it. Pure but for chance."""

from __future__ import annotations

import math
import random
from collections.abc import Container, Mapping
from statistics import median_high
from typing import Any, Final

from hivemind.p2p import PeerID

from skep.worker.connection.stored import is_id

NO_EPOCH: Final = 2.0**53
"""Larger numbers are no epochs, and some of them are equal as floats."""
OLDER: Final = 1
"""A state this many epochs older than the usual one is as good: donors publish theirs at different times."""


def key_of_offers(prefix: str) -> str:
    """Where hivemind's averagers of `prefix` publish the epoch of their state in the DHT, each under its id."""
    return f"{prefix}.all_averagers"


def epochs_of(offers: Mapping[Any, Any]) -> dict[PeerID, float]:
    """The epochs in `offers`, the values that peers have published; without what is under no peer's id, or no epoch."""
    return {
        PeerID(key): float(value)
        for key, value in offers.items()
        if is_id(key) and isinstance(value, int | float) and 0 <= value < NO_EPOCH
    }


def in_order(offers: Mapping[Any, Any], liars: Container[PeerID], newest: float = math.inf) -> list[PeerID]:
    """`offers` are the values that peers have published under their ids: the epoch of their state.

    Stock hivemind asks whoever claims the newest one, so that a false donor is every newcomer's first. Here those whose
    state is about as new as the usual one, or newer, are asked first, by chance; then older ones, the newest of them
    first; last those that claim a newer epoch than `newest`, which can hardly be. `liars`, which have sent something
    wrong, are left out, and what is no peer's id or no epoch.
    """
    epochs = {peer: epoch for peer, epoch in epochs_of(offers).items() if peer not in liars}
    possible = [epoch for epoch in epochs.values() if epoch <= newest]
    usual = median_high(possible) - OLDER if possible else math.inf

    def rank(peer: PeerID) -> tuple[bool, float, float]:
        epoch = epochs[peer]
        behind = max(0.0, usual - epoch) if epoch <= newest else 0.0
        return epoch > newest, behind, random.random()  # noqa: S311 - to choose among equals

    return sorted(epochs, key=rank)
