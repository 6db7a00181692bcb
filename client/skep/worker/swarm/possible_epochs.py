"""How far the swarm may have come, by what a peer has seen for itself. Pure; times are seconds of hivemind's clock."""

from __future__ import annotations

import math
from collections import deque
from statistics import median
from typing import Final

SHORTEST_EPOCH: Final = 1.0
"""Seconds. Without rounds of our own to compare with, the swarm is believed to be this fast."""
ROUNDS_COMPARED: Final = 5
LOADS_COMPARED: Final = 3
"""From so many times between two loaded states on these say how long an epoch lasts at least."""
FASTER: Final = 10.0
"""The swarm may have become that many times faster than it has been in the last of them: more peers may have joined. So many
times the usual epochs between two loads are possible at any time: those times may have included nights without peers."""
LATE: Final = 3
"""Once our last round is this many usual epochs ago, the usual length says nothing about the epochs since then; so it is with loads."""


class PossibleEpochs:
    """The rounds in which this peer took part, and the states that it has loaded, tell which epochs there may be."""

    def __init__(self) -> None:
        self._known: tuple[int, float] | None = None
        self._round_at: tuple[int, float] | None = None
        self._lasted: deque[float] = deque(maxlen=ROUNDS_COMPARED)
        self._loaded: tuple[int, float] | None = None
        self._loads: deque[tuple[float, int]] = deque(maxlen=ROUNDS_COMPARED)
        """Seconds and epochs from one loaded state to the next."""

    @property
    def known(self) -> int | None:
        """The highest epoch that the swarm is known to have reached; None while nothing is known."""
        return self._known[0] if self._known else None

    def reached(self, epoch: int, at: float) -> None:
        """The swarm had reached `epoch` at that time."""
        if self._known is None or epoch > self._known[0]:
            self._known = epoch, at

    def loaded(self, epoch: int, at: float) -> None:
        """A state of `epoch` has been loaded, which was asked for at that time."""
        if self._loaded and epoch > self._loaded[0] and at > self._loaded[1]:
            self._loads.append((at - self._loaded[1], epoch - self._loaded[0]))
        self._loaded = epoch, at
        self.reached(epoch, at)

    def round_ended(self, epoch: int, now: float) -> None:
        """A round of ours has ended `epoch`."""
        if self._round_at and epoch >= self._round_at[0]:
            self._lasted.append((now - self._round_at[1]) / (epoch + 1 - self._round_at[0]))
        self._round_at = epoch + 1, now
        self.reached(epoch + 1, now)

    def highest(self, now: float, *, next_too: bool = True) -> float:
        """The highest epoch that there may be; infinite while nothing is known.

        `next_too` is whether the epoch that is known may have ended already, whatever its usual length.
        """
        if self._known is None:
            return math.inf
        known, at = self._known
        elapsed = max(0.0, now - at)
        return known + next_too + min(elapsed // SHORTEST_EPOCH, self._most(elapsed))

    def _most(self, elapsed: float) -> float:
        """How many epochs there may have been in so many seconds; infinite while that is not known."""
        if self._lasted:
            usual = max(SHORTEST_EPOCH, median(self._lasted))
            return elapsed // usual if elapsed < LATE * usual else math.inf
        if len(self._loads) < LOADS_COMPARED or elapsed >= LATE * median(seconds for seconds, _ in self._loads):
            return math.inf
        usual = min(seconds / epochs for seconds, epochs in self._loads)
        return max(FASTER * median(epochs for _, epochs in self._loads), elapsed // (usual / FASTER))
