"""How FSDP gathers the parts of a model and sums their gradients: with the group's deadline, also by NCCL."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import distributed as dist

# torch documents them for FSDPModule.set_custom_all_gather, and has no public names for them
from torch.distributed.fsdp._fully_shard._fsdp_api import AllGather, Comm, ReduceScatter

from skep.worker.ranks.collectives import wait


class _Allocating(Comm):
    """Has new memory for each message, as FSDP's own."""

    def allocate(self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device=device)


class WaitedAllGather(_Allocating, AllGather):
    """As FSDP's own, which by NCCL returns when it is queued, and then has no deadline.

    FSDP gets the finished work: without one it keeps what was received until the next part was, beside its copy.
    """

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,  # noqa: ARG002, FBT001, FBT002 - torch's signature
    ) -> dist.Work | None:
        work: dist.Work | None = dist.all_gather_single(output_tensor, input_tensor, group=group, async_op=True)
        wait(work)
        return work


class WaitedReduceScatter(_Allocating, ReduceScatter):
    """As WaitedAllGather."""

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: dist.ReduceOp | dist.ReduceOp.RedOpType,
        async_op: bool = False,  # noqa: ARG002, FBT001, FBT002 - torch's signature
    ) -> None:
        wait(dist.reduce_scatter_single(output_tensor, input_tensor, op=op, group=group, async_op=True))
