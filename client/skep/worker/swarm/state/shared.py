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
"""Bytes between the begins of two tensors are a multiple of this, so that any dtype may follow any other."""


@torch.no_grad()
def copied(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Contiguous copies on the host, of the same shapes and dtypes: parts of one storage, which is sent as one descriptor."""
    room = [math.ceil(each.nbytes / ALIGNED) * ALIGNED for each in tensors]
    storage = shared_bytes(sum(room))
    begins = accumulate(room, initial=0)
    parts = [storage[begin:][: each.nbytes].view(each.dtype) for begin, each in zip(begins, tensors, strict=False)]
    return [part.view(each.shape).copy_(each.detach()) for part, each in zip(parts, tensors, strict=True)]


def shared_bytes(count: int) -> torch.Tensor:
    """One-dimensional uint8, not initialised: pages that nothing is written to take no memory."""
    # torch has no public function that shares memory without a copy; its own data loader calls this one
    storage = torch.UntypedStorage._new_shared(count)  # noqa: SLF001
    made: torch.Tensor = torch.empty(0, dtype=torch.uint8).set_(storage)
    return made
