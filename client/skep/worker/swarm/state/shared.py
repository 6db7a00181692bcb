"""Tensors in memory that the training process shares with the averager's.

Stock behaviour that this corrects, covered by a test: each tensor of a copy of the state takes a descriptor in the
averager's process. Linux allows 1,024 of them where nobody has raised the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import torch

ALIGNED: Final = 64
"""Bytes between the starts of two tensors are a multiple of this, so that any dtype may follow any other."""


@torch.no_grad()
def copied(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Contiguous copies on the host, of the same shapes and dtypes: parts of one storage, which is sent as one descriptor."""
    room = [math.ceil(each.nbytes / ALIGNED) * ALIGNED for each in tensors]
    storage = shared_bytes(sum(room))
    starts = accumulate(room, initial=0)
    parts = [storage[start:][: each.nbytes].view(each.dtype) for start, each in zip(starts, tensors, strict=False)]
    return [part.view(each.shape).copy_(each.detach()) for part, each in zip(parts, tensors, strict=True)]


def shared_bytes(count: int) -> torch.Tensor:
    """One-dimensional uint8, not initialised: pages that nothing is written to take no memory."""
    storage = torch.UntypedStorage._new_shared(count)  # noqa: SLF001 - torch's public functions copy; its loader calls it
    made: torch.Tensor = torch.empty(0, dtype=torch.uint8).set_(storage)
    return made
