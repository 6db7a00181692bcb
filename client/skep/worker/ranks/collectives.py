"""Sending tensors between ranks, several in one message: parameters from rank 0, gradients into a sum at rank 0.

Gloo sends from the host's memory: tensors of a GPU are copied there and back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import torch
import torch.distributed as dist

from skep.worker.ranks.rendezvous import GLOO
from skep.worker.training.device_errors import is_loss_of_device

BUCKET_BYTES: Final = 25 * 2**20
"""Of one message, at most, so that its deadline holds for every model; torch's DistributedDataParallel has this size."""
FIRST: Final = 0


@torch.no_grad()
def broadcast(tensors: Sequence[torch.Tensor]) -> None:
    """Make `tensors` equal to those of rank 0. Raises RuntimeError when a rank is missing."""
    for bucket in buckets(tensors):
        flat = _flat(bucket)
        wait(dist.broadcast(flat, FIRST, async_op=True))
        if dist.get_rank() != FIRST:
            unpack(flat, bucket)


@torch.no_grad()
def sums(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The sums of all ranks' `tensors`, flat, one for each of `buckets`; of no meaning except at rank 0.

    `tensors` stay as they are, so that the sum can be repeated by fewer ranks. Raises RuntimeError when a rank is missing.
    """
    received = []
    for bucket in buckets(tensors):
        flat = _flat(bucket)
        wait(dist.reduce(flat, FIRST, async_op=True))
        if dist.get_rank() == FIRST:
            received.append(flat)
    return received


@torch.no_grad()
def take(received: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> None:
    """Replace `tensors` by what `sums` returned."""
    for flat, bucket in zip(received, buckets(tensors), strict=True):
        unpack(flat, bucket)


def wait(work: dist.Work | None) -> None:
    """Until the collective is over on this rank's device. Raises RuntimeError when a rank is missing.

    With NCCL, one that is not asynchronous returns once it is queued: only the wait for its work has the group's deadline.
    """
    if work is not None:  # None where this rank has no part in it
        work.wait()


def is_loss_of_own_device(error: BaseException) -> bool:
    """Whether this rank's device is lost. What torch says of the group may be the fault of another rank's device."""
    return is_loss_of_device(error) and not isinstance(error, dist.DistError)


def buckets(tensors: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """`tensors` in order, as lists of one dtype of at most BUCKET_BYTES; of larger ones, views of parts."""
    bucket, held = list[torch.Tensor](), 0
    for part in chain.from_iterable(map(_parts, tensors)):
        if bucket and (held + part.nbytes > BUCKET_BYTES or part.dtype is not bucket[0].dtype):
            yield bucket
            bucket, held = [], 0
        bucket.append(part)
        held += part.nbytes
    if bucket:
        yield bucket


def _parts(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Views of at most BUCKET_BYTES that are the tensor together, by its shape alone: the same on all ranks."""
    if tensor.nbytes <= BUCKET_BYTES:
        yield tensor
        return
    longest = max(range(tensor.dim()), key=tensor.size)
    for half in tensor.chunk(2, longest):
        yield from _parts(half)


def unpack(flat: torch.Tensor, bucket: Sequence[torch.Tensor]) -> None:
    parts = flat.split([each.numel() for each in bucket])
    for each, part in zip(bucket, parts, strict=True):
        each.copy_(part.view_as(each))


def _flat(bucket: Sequence[torch.Tensor]) -> torch.Tensor:
    flat = torch.cat([each.detach().reshape(-1) for each in bucket])
    return flat.cpu() if dist.get_backend() == GLOO else flat
