"""The manifest: all a volunteer's computer needs to know about a project, and all it obeys. Data, never code.

Every field is declared here once, with its bounds, and `parse` reads a manifest by that. The signature over the bytes
is verified before this is called (adapters.signing).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from skep.core.errors import ManifestError
from skep.core.manifest_fields import (
    HASH,
    Choice,
    FieldError,
    Flag,
    Later,
    Moment,
    Nullable,
    Number,
    Object,
    Pattern,
    PeerAddress,
    PublicKey,
    Several,
    Text,
    WebAddress,
    Whole,
)
from skep.core.manifest_recipe import RECIPE
from skep.core.manifest_rules import check_flags, check_rules
from skep.core.manifest_types import (
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
from skep.core.recipe_types import CausalRecipe, ImageRecipe, LoraRecipe, MaskedRecipe, ModelShape, Recipe
from skep.core.strict_json import read_object

__all__ = [
    "CausalRecipe",
    "DataSource",
    "ImageRecipe",
    "LoraRecipe",
    "Manifest",
    "MaskedRecipe",
    "ModelShape",
    "Needs",
    "OptimizerSpec",
    "PowerSGD",
    "Publisher",
    "Recipe",
    "Schedule",
    "Sync",
    "check_expiry",
    "fingerprint",
    "invalid",
    "parse",
]

ID: Final = Pattern("[a-z0-9-]{3,40}", "3 to 40 lower-case letters, digits and dashes")
COMPRESSION: Final = Choice(("none", "float16", "scaled-float16", "uniform-8bit", "size-adaptive"))

OPTIMIZER: Final = Object(
    OptimizerSpec,
    {
        "name": Choice(("adamw", "sgd", "lamb")),
        "learning_rate": Number(0, 10, above=True),
        "betas": Several(Number(0, 0.99999), 2, 2),
        "weight_decay": Number(0, 10),
        "clip_norm": Nullable(Number(0, 1e6, above=True)),
    },
)
SCHEDULE: Final = Object(
    Schedule,
    {
        "kind": Choice(("constant", "linear", "cosine", "exponential")),
        "warmup_epochs": Whole(0, 1_000_000),
        "total_epochs": Whole(1, 10_000_000),
    },
)
SYNC: Final = Object(
    Sync,
    {
        "target_batch_size": Whole(2, 10_000_000),
        "offload_optimizer": Flag(),
        "reuse_grad_buffers": Flag(),
        "delay_optimizer_step": Flag(),
        "delay_grad_averaging": Flag(),
        "delay_state_averaging": Flag(),
        "grad_compression": COMPRESSION,
        "state_compression": COMPRESSION,
        "load_compression": COMPRESSION,
        "size_adaptive_threshold": Whole(1, 2**31),
        "powersgd": Nullable(
            Object(PowerSGD, {"rank": Whole(1, 1024), "min_compression_ratio": Number(0, 0.99, above=True)})
        ),
        "average_state_every": Whole(1, 1000),
        "mode": Choice(("global",), ("local",)),
        "matchmaking_seconds": Number(2, 600, why=", since a peer may take a good part of a second to answer"),
        "averaging_timeout_seconds": Number(5, 3600),
    },
)
MANIFEST: Final = Object(
    lambda format, **fields: Manifest(**fields),  # noqa: A006, ARG005 - the file's own name for its version
    {
        "format": Whole(1, 1),
        "id": ID,
        "revision": Whole(1, 2**31),
        "title": Text(80),
        "summary": Text(400),
        "publisher": Object(Publisher, {"name": Text(80), "key": PublicKey()}),
        "homepage": WebAddress(empty=True),
        "license": Text(80),
        "expires": Moment(),
        "membership": Choice(("open", "invited")),
        "peers": Several(PeerAddress(), 1, 64),
        "recipe": RECIPE,
        "optimizer": OPTIMIZER,
        "schedule": SCHEDULE,
        "sync": SYNC,
        "precision": Choice(("auto", "fp32", "bf16", "fp16")),
        "activation_checkpointing": Choice(("auto", "on", "off")),
        "data": Object(DataSource, {"index": WebAddress(), "sha256": HASH}),
        "needs": Object(
            Needs,
            {
                "memory_gb": Number(0, 4096),
                "vram_gb": Number(0, 4096),
                "disk_gb": Number(0, 65536),
                "upload_mbit": Number(0, 100_000),
            },
        ),
    },
)

PUBLISHER: Final = "Tell the project's publisher; nothing of it was used."


def parse(raw: bytes) -> Manifest:
    """The manifest in `raw`, every field checked. Raises ManifestError with a sentence that names the field."""
    body = read_object(raw, MANIFEST_BYTES_LIMIT, invalid)
    try:
        manifest: Manifest = _read(body)
        check_rules(manifest.sync, manifest.recipe, manifest.schedule)
    except Later as error:
        raise ManifestError(
            f"The manifest's {error}.", "Update skep, or ask the publisher for another setting."
        ) from None
    except FieldError as error:
        raise invalid(str(error)) from None
    return manifest


def _read(body: dict[str, Any]) -> Manifest:
    try:
        read: Manifest = MANIFEST.read(body, "")
    except Later:
        # what can never work is said before what does not work yet
        check_flags(body["sync"])
        raise
    return read


def invalid(phrase: str) -> ManifestError:
    return ManifestError(f"The manifest is not valid: {phrase}.", PUBLISHER)


def check_expiry(manifest: Manifest, now: datetime) -> None:
    """Raise ManifestError when the manifest has expired at `now` (aware)."""
    if manifest.expires <= now:
        raise ManifestError(
            f'The manifest of "{manifest.title}" expired on {manifest.expires:%Y-%m-%d}.',
            "Ask its publisher for a newer one.",
        )
