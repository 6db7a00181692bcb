"""What must hold between the fields of a manifest: combinations that hivemind refuses late or mistrains silently. Pure.

The combinations were measured on hivemind 1.1.12; the swarm tests train every legal one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skep.core.manifest_fields import FieldError
from skep.core.manifest_recipe import check_recipe
from skep.core.manifest_types import Schedule, Sync
from skep.core.matrices import trained_matrices
from skep.core.recipe_types import Recipe
from skep.core.traffic import low_rank


def check_rules(sync: Sync, recipe: Recipe, schedule: Schedule) -> None:
    """Raise FieldError for what cannot work."""
    check_flags(vars(sync))
    _check_times(sync)
    check_recipe(recipe)
    _check_schedule(schedule)
    _check_powersgd(sync, recipe)


def check_flags(sync: Mapping[str, Any]) -> None:
    """Raise FieldError for a combination of flags that can never train."""
    if sync["delay_grad_averaging"] and not sync["delay_optimizer_step"]:
        raise FieldError("sync.delay_grad_averaging", "needs delay_optimizer_step: there is no gradient to step on yet")
    if sync["delay_optimizer_step"] and not sync["offload_optimizer"]:
        raise FieldError("sync.delay_optimizer_step", "needs offload_optimizer: the step runs beside training")
    if sync["delay_optimizer_step"] and not sync["delay_state_averaging"]:
        raise FieldError("sync.delay_optimizer_step", "needs delay_state_averaging: the state follows the step")


def _check_times(sync: Sync) -> None:
    if sync.averaging_timeout_seconds <= sync.matchmaking_seconds:
        raise FieldError("sync.averaging_timeout_seconds", "must be longer than matchmaking_seconds")


def _check_schedule(schedule: Schedule) -> None:
    if schedule.warmup_epochs >= schedule.total_epochs:
        raise FieldError("schedule.warmup_epochs", "must be below total_epochs")


def _check_powersgd(sync: Sync, recipe: Recipe) -> None:
    matrices, powersgd = trained_matrices(recipe), sync.powersgd
    if powersgd and not any(low_rank(shape, powersgd) for shape, _ in matrices):
        raise FieldError(
            "sync.powersgd.rank",
            f"is too high: no matrix of this model is sent with {powersgd.min_compression_ratio:.0%} less",
        )
