"""What the reducers of a round return for our gradients: no more than gradients usually have.

Each part is averaged by one peer, which may return anything. In a round whose average is of the kind of its gradients
ours are a measure of it: computed from more samples, an average is smaller than one peer's gradients, if anything. All
parts of one reducer are measured together, as a single part may be one in which we have nothing.

Stock behaviour that this corrects, covered by a test: whatever a reducer returns is used.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from statistics import median
from typing import Final

import torch
from hivemind.averaging.partition import TensorPartContainer

from skep.worker.swarm.averaging.parts import UnlikeOurs

LARGEST: Final = 10.0
"""By how many times what a reducer returns may exceed what is usual. An honest one scales down what others send at 4."""
ROUNDS_COMPARED: Final = 9
ROUNDS_UNKNOWN: Final = 3
"""Our first rounds, in which nothing is refused: with PowerSGD, a newcomer's gradients lack what others' have left out."""


class UsualNorms:
    """The norms of the parts of our gradients, and of what came back for them, in the latest rounds, by their numbers."""

    def __init__(self) -> None:
        self._own: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=ROUNDS_COMPARED))
        self._returned: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=ROUNDS_COMPARED))
        self._rounds = 0

    def begin(self, own: Sequence[float], sizes: Sequence[Sequence[int]]) -> list[float]:
        """The largest norm of all that each reducer may return; `sizes` are those of its parts, `own` norms of all parts."""
        self._rounds += 1
        squares = [self._usual(number, norm) ** 2 for number, norm in enumerate(own)]
        if self._rounds <= ROUNDS_UNKNOWN:
            return [math.inf] * len(sizes)
        whole, values = sum(squares), sum(map(sum, sizes))
        limits, begun = [], 0
        for parts in sizes:
            of_it = sum(squares[begun : begun + len(parts)])
            begun += len(parts)
            limits.append(LARGEST * math.sqrt(max(of_it, whole * sum(parts) / values)))
        return limits

    def _usual(self, number: int, norm: float) -> float:
        self._own[number].append(norm)
        returned = self._returned[number]
        return max(norm, median(self._own[number]), median(returned) if returned else 0.0)

    def see(self, number: int, norm: float) -> None:
        """What came back for a part, and is used, has this norm."""
        self._returned[number].append(norm)


class BoundedReturns(TensorPartContainer):
    """hivemind's container of a round's parts, which refuses what exceeds the limits of `bound`, if that is called."""

    _usual: UsualNorms | None = None

    def bound(self, usual: UsualNorms, limits: Sequence[float], own: int) -> None:
        """`limits` are those of the reducers, by their place, of which `own` is ours."""
        self._usual, self._own = usual, own
        self._left = [limit**2 for limit in limits]

    @torch.no_grad()
    def register_processed_part(self, peer_index: int, part_index: int, part: torch.Tensor) -> None:
        """Raises UnlikeOurs."""
        if self._usual is not None and peer_index != self._own and self._left[peer_index] >= 0:
            norm = float((self._input_parts_by_peer[peer_index][part_index][0] + part).norm())
            if not math.isfinite(norm) or norm**2 > self._left[peer_index]:
                raise UnlikeOurs("an average is larger than gradients usually are")
            self._left[peer_index] -= norm**2
            self._usual.see(sum(self.num_parts_by_peer[:peer_index]) + part_index, norm)
        super().register_processed_part(peer_index, part_index, part)

    def register_failed_reducer(self, peer_index: int) -> None:
        """What has not come from it stays as it is."""
        if self._usual is not None:
            self._left[peer_index] = -1.0
        super().register_failed_reducer(peer_index)
