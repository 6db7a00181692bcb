"""How the gradients of the devices of one computer are communicated: torch's hooks of DistributedDataParallel.

torch's own hooks do the work (torch.distributed.algorithms). What is mended here, each shown by a test: with its defaults
PowerSGD makes NaN of a gradient that is zero, keeps the NaN of one overflow for ever in its error feedback and warm
start, and with a warm start never again communicates a matrix whose gradient was zero once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.nn.parallel import DistributedDataParallel

from skep.core.errors import BadInput
from skep.core.text import Text
from skep.worker.ranks import rendezvous

EPSILON: Final = {"": 1e-8, "bf16": 1e-8, "fp16": 1e-7}
"""Added to the norms of the factors, so that those of a gradient of zeros are not divided by zero; 1e-8 is 0 in fp16."""
FIRST_ITERATION: Final = 2
"""torch rebuilds the buckets of gradients after its first iteration; what is remembered per bucket has to be newer."""
HALVES: Final = ("fp16", "bf16")


@dataclass(frozen=True)
class Compress:
    """Gradients are rounded to 16 bits before they are sent: half the bytes. `precision` is "fp16" or "bf16"."""

    precision: str = "fp16"


@dataclass(frozen=True)
class PowerSGD:
    """Each matrix of gradients is sent as two factors, by Vogels et al., "PowerSGD", arXiv:1905.13727.

    Of n x m values, (n + m) x `matrix_approximation_rank` are sent, from iteration `start_powerSGD_iter` on. With
    `use_error_feedback`, what a step leaves out is added to the gradient of the next one; with `warm_start` a step begins
    with the factors of the last one. `wrapper` "fp16" or "bf16" rounds what is sent to 16 bits as well. A tensor is sent
    whole if it would be less than `min_compression_rate` times as large as its factors.
    """

    matrix_approximation_rank: int = 1
    start_powerSGD_iter: int = 1000  # noqa: N815 - torch's name
    warm_start: bool = True
    use_error_feedback: bool = True
    wrapper: str = ""
    min_compression_rate: float = 2.0

    def compresses(self, shape: Sequence[int]) -> bool:
        """Whether the gradient of a parameter of this shape is sent as factors, as torch decides it."""
        if not shape:
            return False
        rows, columns = shape[0], torch.Size(shape[1:]).numel()
        sent = (rows + columns) * min(rows, columns, self.matrix_approximation_rank)
        return sent * self.min_compression_rate < rows * columns


@dataclass(frozen=True)
class PostLocalSGD:
    """Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", arXiv:1808.07217.

    From iteration `start_localSGD_iter` on gradients are not sent: each device steps on its own ones, and after every
    `period` steps the parameters of all are averaged.
    """

    start_localSGD_iter: int = 1000  # noqa: N815 - torch's name
    period: int = 4


Hook = Compress | PowerSGD | PostLocalSGD
AfterStep = Callable[[], object]


def check(options: Hook, *, local_steps: bool) -> None:
    """Raise BadInput, with a sentence, for options that cannot be used.

    `local_steps` says that each device has an optimizer that steps, not that gradients are handed to a round of a swarm.
    """
    match options:
        case Compress(precision=precision):
            if precision not in HALVES:
                raise BadInput(Text("hooks.precision_not_known", given=precision))
        case PowerSGD():
            _check_powersgd(options)
        case PostLocalSGD():
            if not local_steps:
                raise BadInput(Text("hooks.local_steps_needed"))
            if options.start_localSGD_iter < 0 or options.period < FIRST_ITERATION:
                raise BadInput(Text("hooks.period_too_short"))


def _check_powersgd(options: PowerSGD) -> None:
    if options.matrix_approximation_rank < 1 or options.min_compression_rate <= 0:
        raise BadInput(Text("hooks.rank_too_low"))
    if options.wrapper not in {"", *HALVES}:
        raise BadInput(Text("hooks.precision_not_known", given=options.wrapper))
    remembers = options.warm_start or options.use_error_feedback
    if options.start_powerSGD_iter < (FIRST_ITERATION if remembers else 0):
        raise BadInput(Text("hooks.starts_too_early", least=FIRST_ITERATION))


def register(ddp: DistributedDataParallel, options: Hook, *, local_steps: bool = False) -> AfterStep:
    """Make `ddp` communicate as the options say; returns what has to be called after each local optimizer step.

    That does nothing but for PostLocalSGD. Raises BadInput as `check`, and where PowerSGD would compress no matrix.
    """
    check(options, local_steps=local_steps)
    rendezvous.settle_at_exit()
    match options:
        case Compress(precision="fp16"):
            ddp.register_comm_hook(ddp.process_group, default_hooks.fp16_compress_hook)
        case Compress():
            ddp.register_comm_hook(ddp.process_group, _renamed(default_hooks.bf16_compress_hook))
        case PowerSGD():
            _register_powersgd(ddp, options)
        case PostLocalSGD():
            return _register_local(ddp, options)
    return _nothing


def _nothing() -> None:
    """The gradients are averaged before the step."""


def _register_powersgd(ddp: DistributedDataParallel, options: PowerSGD) -> None:
    rank = options.matrix_approximation_rank
    if not any(options.compresses(each.shape) for each in _trained(ddp)):
        raise BadInput(Text("hooks.no_matrix_is_compressed", rank=rank))
    state = PowerSGDState(
        ddp.process_group,
        matrix_approximation_rank=rank,
        start_powerSGD_iter=options.start_powerSGD_iter,
        min_compression_rate=options.min_compression_rate,
        use_error_feedback=options.use_error_feedback,
        warm_start=options.warm_start,
        orthogonalization_epsilon=EPSILON[options.wrapper],
    )
    wrappers = {
        "": _powersgd,
        "fp16": default_hooks.fp16_compress_wrapper(_powersgd),
        "bf16": default_hooks.bf16_compress_wrapper(_powersgd),
    }
    ddp.register_comm_hook(state, _renamed(wrappers[options.wrapper]))


def _renamed(hook: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The hook under no name: torch refuses those for bf16 by their names where there is no NCCL, but gloo can add bf16."""
    return lambda state, bucket: hook(state, bucket)  # noqa: PLW0108 - the hook itself has the name


def _powersgd(state: PowerSGDState, bucket: Any) -> torch.futures.Future[torch.Tensor]:
    _mend(state, bucket.index())
    found: torch.futures.Future[torch.Tensor] = powerSGD_hook(state, bucket)
    return found


@torch.no_grad()
def _mend(state: PowerSGDState, index: int) -> None:
    """Make what is remembered of the last step usable, without waiting for the device.

    Zeros of the factor from which the next step begins become random numbers, equal on all ranks: a column of zeros would
    remain one. They are where the gradient of a column of the matrix was zero, so they changed nothing else.
    """
    error, factor = state.error_dict.get(index), state.q_memory_dict.get(index)
    if error is not None:
        error.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
    if factor is not None and factor.numel():
        factor.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
        chance = torch.Generator().manual_seed(state.iter)
        new = torch.randn(factor.shape, generator=chance).to(factor)
        largest = factor.abs().max()
        factor.copy_(torch.where(factor == 0, new * torch.where(largest > 0, largest, 1), factor))


def _register_local(ddp: DistributedDataParallel, options: PostLocalSGD) -> AfterStep:
    # torch's default would average the gradients within each computer, which is the only one here
    start = options.start_localSGD_iter
    state = PostLocalSGDState(ddp.process_group, None, start, post_local_gradient_allreduce=False)
    ddp.register_comm_hook(state, post_localSGD_hook)
    averager = PeriodicModelAverager(options.period, start, ddp.process_group)
    return lambda: averager.average_parameters(_trained(ddp))


def _trained(ddp: DistributedDataParallel) -> list[torch.nn.Parameter]:
    return [each for each in ddp.parameters() if each.requires_grad]
