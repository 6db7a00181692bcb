"""Tensors between the host memory of rank 0, where they are whole, and the shards of all ranks, one at a time.

All of it goes through the processor's memory and the group's gloo: no device ever holds a whole tensor for this.
Every rank of the group makes the same calls in the same order. Each raises RuntimeError when a rank is gone, or when the
group's deadline has passed.
"""

from __future__ import annotations

import torch
from torch import distributed as dist

from skep.worker.ranks.collectives import FIRST


@torch.no_grad()
def scatter(whole: torch.Tensor | None, shard: torch.Tensor, group: dist.ProcessGroup) -> None:
    """Fill each rank's `shard` with its rows of `whole`, which rank 0 gives: float32 [rows, …] on the processor."""
    if group.rank() != FIRST:
        if shard.numel():
            received = _host_buffer(shard)
            dist.recv(received, group=group, group_src=FIRST)
            shard.copy_(received)
        return
    assert whole is not None
    own, *others = _rows(whole, group.size())
    sent = [
        dist.isend(rows.contiguous(), group=group, group_dst=rank)
        for rank, rows in enumerate(others, 1)
        if rows.numel()
    ]
    shard.copy_(own)
    for each in sent:
        assert each is not None
        each.wait()


@torch.no_grad()
def gather(shard: torch.Tensor, total: torch.Tensor | None, group: dist.ProcessGroup) -> None:
    """Add each rank's `shard` to its rows of `total`, which rank 0 gives: float32 [rows, …] on the processor."""
    if group.rank() != FIRST:
        if shard.numel():
            dist.send(shard.detach().to("cpu", torch.float32).contiguous(), group=group, group_dst=FIRST)
        return
    assert total is not None
    own, *others = _rows(total, group.size())
    own.add_(shard.to("cpu"))
    for rank, rows in enumerate(others, 1):
        if rows.numel():
            received = _host_buffer(rows)
            dist.recv(received, group=group, group_src=rank)
            rows.add_(received)


@torch.no_grad()
def copy_to_all(whole: torch.Tensor | None, copy: torch.Tensor, group: dist.ProcessGroup) -> None:
    """Fill each rank's `copy` with `whole`, which rank 0 gives, of any dtype, on the processor."""
    sent = torch.empty_like(copy, device="cpu") if whole is None else whole.detach().clone()
    dist.broadcast(sent, group=group, group_src=FIRST)
    copy.copy_(sent)


def _rows(whole: torch.Tensor, ranks: int) -> list[torch.Tensor]:
    """Each rank's rows, as FSDP shards a tensor: torch.chunk; the last ranks may have none."""
    chunks = list(whole.detach().chunk(ranks))
    return chunks + [whole.new_empty(0)] * (ranks - len(chunks))


def _host_buffer(like: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(like, device="cpu", memory_format=torch.contiguous_format)
