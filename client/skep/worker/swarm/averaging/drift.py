"""How far the parameters of peers can be apart when they average them: not farther than a few times what ours have moved.

All peers have the same parameters after a round of the state, and then make the same steps; one that misses some is
apart by these. That is measured by a sample of each tensor, since a copy of all would take as much memory as they do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import Final

import torch

from skep.worker.swarm.plausible import size_of

FARTHEST: Final = 8.0
"""How many times what our own parameters move between two rounds the average may move them. A peer that has missed more
steps than that loads the state."""
ROUNDED: Final = 0.1
"""Of its own size: by less, codecs and rounding may change a tensor."""
SAMPLED: Final = 4096
"""Values of each tensor that are compared."""
ROUNDS_COMPARED: Final = 9


class Drift:
    """What our parameters have moved from each of the latest rounds to the next."""

    def __init__(self) -> None:
        self._kept: list[torch.Tensor] | None = None
        self._moves: deque[list[float]] = deque(maxlen=ROUNDS_COMPARED)

    def settle(self, tensors: Sequence[torch.Tensor]) -> None:
        """A round has given these to all peers."""
        self._kept = [_sample(tensor).clone() for tensor in tensors]

    def bounds(self, tensors: Sequence[torch.Tensor], sizes: Sequence[float]) -> list[float] | None:
        """By how much, as a root mean square, a round may change each tensor; None before the second round."""
        if self._kept is None:
            return None
        moved = [size_of(_sample(tensor) - kept) for tensor, kept in zip(tensors, self._kept, strict=True)]
        usual = [median(each) for each in zip(*self._moves, strict=True)] if self._moves else moved
        self._moves.append(moved)
        return [
            max(FARTHEST * max(now, before), ROUNDED * size)
            for now, before, size in zip(moved, usual, sizes, strict=True)
        ]


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1)[:: max(1, tensor.numel() // SAMPLED)].float()
