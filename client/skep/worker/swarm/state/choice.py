"""In which order the donors that offer a state are asked for it. Pure but for chance."""

from __future__ import annotations

import math
import random
from collections.abc import Container, Mapping
from statistics import median_high
from typing import Any, Final

from hivemind.p2p import PeerID

OLDER: Final = 1
"""A state this many epochs older than the usual one is as good: donors publish theirs at different times."""


def in_order(offers: Mapping[Any, Any], liars: Container[PeerID], newest: float = math.inf) -> list[PeerID]:
    """`offers` are the values that peers have published under their ids: the epoch of their state.

    Stock hivemind asks whoever claims the newest one, so that a false donor is every newcomer's first. Here those whose
    state is about as new as the usual one, or newer, are asked first, by chance; then older ones, the newest of them
    first; then those that claim a newer epoch than `newest`, which cannot be; last `liars`, which have sent something
    wrong. What is no peer's id or no number is left out.
    """
    epochs = {
        PeerID(key): float(value)
        for key, value in offers.items()
        if isinstance(key, bytes) and isinstance(value, int | float) and math.isfinite(value)
    }
    possible = [epoch for peer, epoch in epochs.items() if epoch <= newest and peer not in liars]
    usual = median_high(possible) - OLDER if possible else math.inf

    def rank(peer: PeerID) -> tuple[bool, bool, float, float]:
        epoch = epochs[peer]
        behind = max(0.0, usual - epoch) if epoch <= newest else 0.0
        return peer in liars, epoch > newest, behind, random.random()  # noqa: S311 - to choose among equals

    return sorted(epochs, key=rank)
