"""torch's communication hooks, as they are given to Lightning's DDPStrategy, as the options that skep has for them."""

from __future__ import annotations

from typing import Any, Final

from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import (
    bf16_compress_hook,
    bf16_compress_wrapper,
    fp16_compress_hook,
    fp16_compress_wrapper,
)
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

from skep.core.text import Text
from skep.training.words import refused
from skep.worker.ranks.hooks import Compress, Hook, PostLocalSGD, PowerSGD, check

UNUSED: Final = (
    "process_group",
    "orthogonalization_epsilon",
    "batch_tensors_with_same_shape",
    "compression_stats_logging_frequency",
)
"""Options of PowerSGDState that skep sets itself."""
WRAPPERS: Final[dict[Any, str]] = {None: "", fp16_compress_wrapper: "fp16", bf16_compress_wrapper: "bf16"}


def options_of(hook: Any, state: Any, wrapper: Any) -> Hook | None:
    """The options of a hook, its state and its wrapper. Raises BadInput for what is not known here, or cannot be used."""
    found = _known(hook, state, wrapper)
    if found is None and (hook, state, wrapper) != (None, None, None):
        raise refused(Text("lightning.comm_hook_not_known"), Text("lightning.comm_hooks_are"))
    if found is not None:
        check(found, local_steps=False)
    return found


def _known(hook: Any, state: Any, wrapper: Any) -> Hook | None:
    if (hook, wrapper) == (fp16_compress_hook, None):
        return Compress("fp16")
    if (hook, wrapper) == (bf16_compress_hook, None):
        return Compress("bf16")
    if hook is powerSGD_hook and isinstance(state, PowerSGDState) and wrapper in WRAPPERS:
        _check_unused(state)
        return PowerSGD(
            state.matrix_approximation_rank,
            state.start_powerSGD_iter,
            state.warm_start,
            state.use_error_feedback,
            WRAPPERS[wrapper],
            state.min_compression_rate,
        )
    if hook is post_localSGD_hook and isinstance(state, PostLocalSGDState):
        return PostLocalSGD(state.start_localSGD_iter)
    return None


def _check_unused(state: PowerSGDState) -> None:
    """Raise BadInput for an option that would have no effect."""
    default = PowerSGDState(None)
    changed = [name for name in UNUSED if getattr(state, name) != getattr(default, name)]
    if _seed_of(state.rng) != _seed_of(default.rng):
        changed.append("random_seed")
    if changed:
        raise refused(Text("lightning.comm_state_option", name=changed[0]), Text("lightning.leave_option_out"))


def _seed_of(rng: Any) -> int:
    """Of a generator of numpy that was not used yet: the first word of its state."""
    return int(rng.get_state()[1][0])
