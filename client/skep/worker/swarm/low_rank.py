"""Gradients averaged as products of thin matrices (PowerSGD), with what hivemind's version of it gets wrong mended.

Stock behaviour this mends, each shown by a test: a matrix of lower rank than asked for makes columns out of rounding
errors, which differ from peer to peer and grow from round to round; a round that is tried again counts the gradients
twice; one value that is not finite stays in the error feedback for ever; a peer of weight 0 feeds an old gradient back.
It must not decide what a round was worth; `rounds` does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Final

import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.group_info import GroupInfo
from hivemind.averaging.partition import AllreduceException
from hivemind.compression import NoCompression
from hivemind.optim.power_sgd_averager import AllReducePhases, PowerSGDGradientAverager

from skep.worker.swarm.averagers import CheckedGradientAverager, check_tensors
from skep.worker.swarm.honest_rounds import Gathered

INDEPENDENT: Final = 1e-3
"""Part of a column that must not lie in the columns before it, or it holds rounding errors rather than gradients."""


class LowRankGradientAverager(CheckedGradientAverager, PowerSGDGradientAverager):
    """Vogels et al., "PowerSGD", arXiv:1905.13727: each gradient M as P Q^T, where P is orthonormal and Q = M^T P.

    What a round leaves out is added to this peer's next gradients (error feedback, `_ms`). `_qs` begin alike on every
    peer, and are handed to newcomers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for factor in self._qs:
            factor.zero_()
        self._seed_empty_columns()

    def catch_up(self, within: float) -> None:
        """Drop the error feedback, which belongs to parameters that were replaced, and take over the swarm's Q."""
        super().catch_up(within)
        with self.lock_averaged_tensors:
            for feedback in self._ms:
                feedback.zero_()
        with contextlib.suppress(FutureTimeout):  # without it the first rounds leave out more, and no harm is done
            self.load_factors(within)

    def load_factors(self, within: float) -> bool:
        """Take over another peer's Q; whether anybody offered one. Raises SwarmError when it is not of this model."""
        loaded = DecentralizedAverager.load_state_from_peers(self, timeout=within)
        if loaded is None:
            return False
        check_tensors(self._qs, loaded[1])
        with torch.no_grad(), self.lock_averaged_tensors:
            for own, other in zip(self._qs, loaded[1], strict=True):
                own.copy_(other)
        return True

    async def _aggregate_with_group(self, group_info: GroupInfo, min_vector_size: int, **kwargs: Any) -> Gathered:
        feedback, factors = copies(self._ms), copies(self._qs)
        self._seed_empty_columns()
        try:
            gathered: Gathered = await super()._aggregate_with_group(group_info, min_vector_size, **kwargs)
        except BaseException:
            # the gradients are kept elsewhere and come again, with the next attempt or not at all
            restore(self._ms, feedback)
            restore(self._qs, factors)
            raise
        if not finite([*self._ms, *self._qs]):
            restore(self._qs, factors)  # the optimizer is going to refuse the gradients themselves
        if kwargs.get("weight") == 0 or not finite(self._ms):
            restore(self._ms, feedback)
        return gathered

    async def _run_allreduce_inplace_(
        self, tensors: Sequence[torch.Tensor], group_info: GroupInfo, group_id: bytes | None = None, **kwargs: Any
    ) -> None:
        basis = group_id == group_info.group_id + AllReducePhases.PHASE_P.name.encode()
        if not basis:
            await super()._run_allreduce_inplace_(tensors, group_info, group_id, **kwargs)
            return
        # every peer must go on with the same P: so it is small and whole, and of no use where parts are missing
        await super()._run_allreduce_inplace_(
            tensors, group_info, group_id, **(kwargs | {"compression": NoCompression()})
        )
        if self._running_groups[group_id].result().tensor_part_container.failed_size:
            raise AllreduceException("part of the common basis did not arrive")
        for matrix in tensors:
            orthonormalise_(matrix)

    @torch.no_grad()
    def _seed_empty_columns(self) -> None:
        """Give columns that hold nothing the same arbitrary direction on every peer, in case they come to hold something."""
        for number, factor in enumerate(self._qs):
            empty = factor.norm(dim=0) == 0
            if empty.any():
                seeds = torch.randn(factor.shape, generator=torch.Generator().manual_seed(number))
                factor.copy_(torch.where(empty, seeds, factor))


@torch.no_grad()
def orthonormalise_(matrix: torch.Tensor) -> None:
    """Make the columns of `matrix` orthonormal in place, and those that hold nothing of their own zero.

    Gram-Schmidt, each column twice. A matrix that is not finite is left as it is.
    """
    if not torch.isfinite(matrix).all():
        return
    lengths = matrix.norm(dim=0)
    for number in range(matrix.shape[1]):
        column, before = matrix[:, number], matrix[:, :number]
        for _ in range(2):
            column -= before @ (before.t() @ column)
        length = column.norm()
        if length > INDEPENDENT * lengths[number]:
            column /= length
        else:
            column.zero_()


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in tensors]


def restore(tensors: Sequence[torch.Tensor], kept: Sequence[torch.Tensor]) -> None:
    for tensor, before in zip(tensors, kept, strict=True):
        tensor.copy_(before)


def finite(tensors: Sequence[torch.Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


# as in averagers: handler names on the wire are made from class names
LowRankGradientAverager.__name__ = PowerSGDGradientAverager.__name__
