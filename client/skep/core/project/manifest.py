"""The manifest: all a volunteer's computer needs to know about a project, and all it obeys. Data, never code.

Its fields are declared in `types`, those of a recipe in its own file in `skep.recipes`; here are the rules between them.
The signature over the bytes is verified before they are parsed (adapters.signing).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from skep.core.errors import ManifestError
from skep.core.project.fields import Field, FieldError, Later, Object, Whole, declared
from skep.core.project.recipe import Recipe
from skep.core.project.sizes import low_rank
from skep.core.project.types import (
    ID,
    MANIFEST_BYTES_LIMIT,
    DataSource,
    Manifest,
    Needs,
    OptimizerSpec,
    PowerSGD,
    Publisher,
    Schedule,
    Sync,
    fingerprint,
)
from skep.core.strict_json import read_object
from skep.core.text import Text


def check_rules(sync: Sync, recipe: Recipe, schedule: Schedule) -> None:
    """Raise FieldError for what cannot work."""
    check_flags(vars(sync))
    _check_times(sync)
    recipe.check()
    _check_schedule(schedule)
    _check_powersgd(sync, recipe)


def check_flags(sync: Mapping[str, Any]) -> None:
    """Raise FieldError for a combination of flags that can never train."""
    if sync["delay_grad_averaging"] and not sync["delay_optimizer_step"]:
        raise FieldError("sync.delay_grad_averaging", Text("manifest.needs_delay_optimizer_step_there"))
    if sync["delay_optimizer_step"] and not sync["offload_optimizer"]:
        raise FieldError("sync.delay_optimizer_step", Text("manifest.needs_offload_optimizer_step_runs"))
    if sync["delay_optimizer_step"] and not sync["delay_state_averaging"]:
        raise FieldError("sync.delay_optimizer_step", Text("manifest.needs_delay_state_averaging_state"))


def _check_times(sync: Sync) -> None:
    if sync.averaging_timeout_seconds <= sync.matchmaking_seconds:
        raise FieldError("sync.averaging_timeout_seconds", Text("manifest.must_longer_than_matchmaking_seconds"))


def _check_schedule(schedule: Schedule) -> None:
    if schedule.warmup_epochs >= schedule.total_epochs:
        raise FieldError("schedule.warmup_epochs", Text("manifest.must_below_total_epochs"))


def _check_powersgd(sync: Sync, recipe: Recipe) -> None:
    powersgd = sync.powersgd
    if powersgd and not any(low_rank(shape, powersgd) for shape in recipe.trained):
        raise FieldError(
            "sync.powersgd.rank",
            Text("manifest.too_high_no_matrix_model", min_compression_ratio=powersgd.min_compression_ratio),
        )


__all__ = [
    "ID",
    "DataSource",
    "Manifest",
    "Needs",
    "OptimizerSpec",
    "PowerSGD",
    "Publisher",
    "Schedule",
    "Sync",
    "check_expiry",
    "fingerprint",
    "invalid",
    "parse",
]


def declaration(recipe: Field) -> Object:
    """The manifest's fields, with those of its recipe."""
    fields = declared(Manifest, recipe=recipe).fields
    # "format" is the file's own name for its version
    return Object(lambda format, **rest: Manifest(**rest), {"format": Whole(1, 1), **fields})  # noqa: A006, ARG005


PUBLISHER: Final = Text("manifest.tell_project_publisher_nothing_was")


def parse(raw: bytes, recipe: Field) -> Manifest:
    """The manifest in `raw`, every field checked, its recipe read by `recipe`.

    Raises ManifestError with a sentence that names the field.
    """
    body = read_object(raw, MANIFEST_BYTES_LIMIT, invalid)
    try:
        manifest = _read(body, recipe)
        check_rules(manifest.sync, manifest.recipe, manifest.schedule)
    except Later as error:
        raise ManifestError(
            Text("manifest.manifest", reason=error.text), Text("manifest.update_skep_ask_publisher_another")
        ) from None
    except FieldError as error:
        raise invalid(error.text) from None
    return manifest


def _read(body: dict[str, Any], recipe: Field) -> Manifest:
    try:
        read: Manifest = declaration(recipe).read(body, "")
    except Later:
        # what can never work is said before what does not work yet
        check_flags(body["sync"])
        raise
    return read


def invalid(phrase: Text) -> ManifestError:
    return ManifestError(Text("manifest.manifest_not_valid", phrase=phrase), PUBLISHER)


def check_expiry(manifest: Manifest, now: datetime) -> None:
    """Raise ManifestError when the manifest has expired at `now` (aware)."""
    if manifest.expires <= now:
        raise ManifestError(
            Text("manifest.manifest_expired", title=manifest.title, expires=f"{manifest.expires:%Y-%m-%d}"),
            Text("manifest.ask_publisher_newer_one"),
        )
