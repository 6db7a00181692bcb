"""hivemind's averager of gradients as low-rank factors (PowerSGD), and the averager of gradients that a manifest requires.

Stock behaviour that this corrects, each covered by a test: a matrix of lower rank than requested yields columns of rounding
errors, which differ between peers and grow from round to round; a retried round counts the gradients twice; a non-finite value
stays in the error feedback permanently; a peer of weight 0 feeds an old gradient back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import torch
from hivemind import compression
from hivemind.averaging.group_info import GroupInfo
from hivemind.averaging.partition import AllreduceException
from hivemind.optim.power_sgd_averager import AllReducePhases, PowerSGDGradientAverager

from skep.core.project.manifest import Sync
from skep.worker.swarm.averaging.averagers import CheckedGradientAverager
from skep.worker.swarm.averaging.honest_averager import Gathered, in_thread
from skep.worker.swarm.plausible import copies, finite, restore
from skep.worker.swarm.state.download import Wanted
from skep.worker.swarm.state.pieces import Piece

INDEPENDENT: Final = 1e-3
"""Least part of a column that is independent of the columns before it; below this it holds only rounding errors."""
MOST_TARGETS: Final = 2
"""How many times the target of samples one peer may have for an epoch, which ends at the target: while its round is
formed, it goes on."""


class LowRankGradientAverager(CheckedGradientAverager, PowerSGDGradientAverager):
    """Vogels et al., "PowerSGD", arXiv:1905.13727: each gradient M as P Q^T, where P is orthonormal and Q = M^T P.

    What a round leaves out is added to this peer's next gradients (error feedback, `_ms`). `_qs` are initially equal on
    all peers, and are sent to newcomers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for factor in self._qs:
            factor.zero_()
        self._seed_empty_columns()

    def forget(self) -> None:
        """Drop the error feedback too, which belongs to those parameters."""
        super().forget()
        with self.lock_averaged_tensors:
            for feedback in self._ms:
                feedback.zero_()

    def catch_up(self) -> None:
        """Forget, and take over the swarm's Q."""
        super().catch_up()
        self.load_factors()  # without it the first rounds only leave out more

    def load_factors(self) -> bool:
        """Take over another peer's Q; return whether a peer offered one. Raises SwarmError for another model's."""
        pieces = (Piece(tuple(factor.shape), factor.dtype, factor.nbytes) for factor in self._qs)
        loaded = self.download(Wanted(tuple(pieces))).wait()
        if loaded is None:
            return False
        with torch.no_grad(), self.lock_averaged_tensors:
            for own, other in zip(self._qs, loaded[1], strict=True):
                own.copy_(other)
        return True

    async def _aggregate_with_group(self, group_info: GroupInfo, min_vector_size: int, **kwargs: Any) -> Gathered:
        feedback, factors = await in_thread(copies, self._ms), copies(self._qs)
        self._seed_empty_columns()
        try:
            gathered: Gathered = await super()._aggregate_with_group(group_info, min_vector_size, **kwargs)
        except BaseException:
            # the gradients are stored elsewhere, and the next attempt, if any, adds them again
            restore(self._ms, feedback)
            restore(self._qs, factors)
            raise
        kept = await in_thread(finite, self._ms)
        if not (kept and finite(self._qs)):
            restore(self._qs, factors)  # the optimizer will reject the gradients themselves
        if kwargs.get("weight") == 0 or not kept:
            restore(self._ms, feedback)
        return gathered

    async def _run_allreduce_inplace_(
        self, tensors: Sequence[torch.Tensor], group_info: GroupInfo, group_id: bytes | None = None, **kwargs: Any
    ) -> None:
        basis = group_id == group_info.group_id + AllReducePhases.PHASE_P.name.encode()
        if not basis:
            await super()._run_allreduce_inplace_(tensors, group_info, group_id, **kwargs)
            return
        # all peers need the same P: it is small and sent uncompressed, and unusable if parts are missing
        await super()._run_allreduce_inplace_(
            tensors, group_info, group_id, **(kwargs | {"compression": compression.NoCompression()})
        )
        if self._running_groups[group_id].result().tensor_part_container.failed_size:
            raise AllreduceException("part of the common basis did not arrive")
        for matrix in tensors:
            await in_thread(orthonormalise_, matrix)

    @torch.no_grad()
    def _seed_empty_columns(self) -> None:
        """Set zero columns to the same arbitrary direction on every peer, so that they can become non-zero later."""
        for number, factor in enumerate(self._qs):
            empty = factor.norm(dim=0) == 0
            if empty.any():
                seeds = torch.randn(factor.shape, generator=torch.Generator().manual_seed(number))
                factor.copy_(torch.where(empty, seeds, factor))


@torch.no_grad()
def orthonormalise_(matrix: torch.Tensor) -> None:
    """Make the columns of `matrix` orthonormal in place, and linearly dependent ones zero.

    Gram-Schmidt, each column twice. A matrix that is not finite is not changed.
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


def gradient_averager(sync: Sync, options: dict[str, Any]) -> Callable[..., CheckedGradientAverager]:
    """The factory of the gradient averager that a manifest requires."""
    options = {"most_samples": float(MOST_TARGETS * sync.target_batch_size), **options}
    if sync.powersgd is None:
        return partial(CheckedGradientAverager, **options)
    ratio = sync.powersgd.min_compression_ratio
    return partial(LowRankGradientAverager, averager_rank=sync.powersgd.rank, min_compression_ratio=ratio, **options)


# RPC handler names are derived from class names: with ours, stock peers would not find us
LowRankGradientAverager.__name__ = PowerSGDGradientAverager.__name__
