"""A checked manifest as frozen dataclasses, every field declared with its bounds. `skep.recipes.registry.parse_manifest` is the only way from bytes to one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from skep.core.project.data import Project
from skep.core.project.fields import (
    HASH,
    Choice,
    Moment,
    Nullable,
    Number,
    Pattern,
    PeerAddress,
    PlainText,
    PublicKey,
    Several,
    WebAddress,
    Whole,
)
from skep.core.project.recipe import Recipe
from skep.core.text import Text

BYTES: Final = "bytes"
BYTE_VOCABULARY: Final = 256
MANIFEST_BYTES_LIMIT: Final = 64 * 1024


@dataclass(frozen=True)
class Publisher:
    name: Annotated[str, PlainText(80)]
    key: Annotated[bytes, PublicKey()]
    """Raw Ed25519 public key, 32 bytes."""


OptimizerName = Literal["adamw", "sgd", "lamb"]
ScheduleKind = Literal["constant", "linear", "cosine", "exponential"]
Compression = Literal["none", "float16", "scaled-float16", "uniform-8bit", "size-adaptive"]
ID: Final = Pattern("[a-z0-9-]{3,40}", Text("manifest.3_40_lower_case_letters"))


@dataclass(frozen=True)
class OptimizerSpec:
    """`betas` are Adam's and LAMB's; of SGD the first is the momentum, and the second has no meaning."""

    name: OptimizerName
    learning_rate: Annotated[float, Number(0, 10, above=True)]
    betas: Annotated[tuple[float, float], Several(Number(0, 0.99999), 2, 2)]
    weight_decay: Annotated[float, Number(0, 10)]
    clip_norm: Annotated[float | None, Nullable(Number(0, 1e6, above=True))]


@dataclass(frozen=True)
class Schedule:
    kind: ScheduleKind
    warmup_epochs: Annotated[int, Whole(0, 1_000_000)]
    total_epochs: Annotated[int, Whole(1, 10_000_000)]


@dataclass(frozen=True)
class PowerSGD:
    """Gradients sent as products of two thin matrices of `rank` columns, where that saves `min_compression_ratio`."""

    rank: Annotated[int, Whole(1, 1024)]
    min_compression_ratio: Annotated[float, Number(0, 0.99, above=True)]


SYNC_MODES: Final = {
    "global": "global_rounds",
}
"""How peers may keep in step, and the module of `skep.worker.swarm` that does it."""


@dataclass(frozen=True)
class Sync:
    target_batch_size: Annotated[int, Whole(2, 10_000_000)]
    offload_optimizer: bool
    reuse_grad_buffers: bool
    delay_optimizer_step: bool
    delay_grad_averaging: bool
    delay_state_averaging: bool
    grad_compression: Compression
    state_compression: Compression
    load_compression: Compression
    size_adaptive_threshold: Annotated[int, Whole(1, 2**31)]
    powersgd: PowerSGD | None
    average_state_every: Annotated[int, Whole(1, 1000)]
    mode: Annotated[str, Choice(tuple(SYNC_MODES), ("local",))]
    matchmaking_seconds: Annotated[float, Number(2, 600, why=Text("manifest.since_peer_may_take_good"))]
    averaging_timeout_seconds: Annotated[float, Number(5, 3600)]

    @property
    def size_adaptive(self) -> bool:
        """Whether the threshold decides how gradients or parameters are sent in a round."""
        return "size-adaptive" in {self.grad_compression, self.state_compression}


@dataclass(frozen=True)
class DataSource:
    index: Annotated[str, WebAddress()]
    """Address of the shard index."""
    sha256: Annotated[str, HASH]


@dataclass(frozen=True)
class Needs:
    memory_gb: Annotated[float, Number(0, 4096)]
    vram_gb: Annotated[float, Number(0, 4096)]
    disk_gb: Annotated[float, Number(0, 65536)]
    upload_mbit: Annotated[float, Number(0, 100_000)]


@dataclass(frozen=True)
class Manifest:
    id: Annotated[str, ID]
    revision: Annotated[int, Whole(1, 2**31)]
    title: Annotated[str, PlainText(80)]
    summary: Annotated[str, PlainText(400)]
    publisher: Publisher
    homepage: Annotated[str, WebAddress(empty=True)]
    license: Annotated[str, PlainText(80)]
    expires: Annotated[datetime, Moment()]
    """Aware, UTC."""
    membership: Literal["open", "invited"]
    peers: Annotated[tuple[str, ...], Several(PeerAddress(), 1, 64)]
    recipe: Recipe
    optimizer: OptimizerSpec
    schedule: Schedule
    sync: Sync
    precision: Literal["auto", "fp32", "bf16", "fp16"]
    activation_checkpointing: Literal["auto", "on", "off"]
    data: DataSource
    needs: Needs

    @property
    def run_id(self) -> str:
        """`id`, a dash, and eight hex digits of what must be equal for two peers to average (no dots)."""
        optimizer, sync = self.optimizer, self.sync
        must_agree = {
            "publisher": self.publisher.key.hex(),
            "recipe": _without_addresses(asdict(self.recipe)),
            "optimizer": optimizer.name,
            # SGD keeps no state at all without momentum, and a state of other tensors cannot be loaded
            "momentum": optimizer.name == "sgd" and optimizer.betas[0] > 0,
            # they decide into how many parts a tensor is cut, and peers must cut alike
            "compression": [sync.grad_compression, sync.state_compression],
            "threshold": sync.size_adaptive_threshold if sync.size_adaptive else None,
            "powersgd": asdict(sync.powersgd) if sync.powersgd else None,
        }
        text = json.dumps(must_agree, sort_keys=True, separators=(",", ":"))
        return f"{self.id}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.publisher.key)


@dataclass(frozen=True)
class VerifiedProject(Project):
    """A project of this home. `text` is the manifest as it was signed, which the worker is given."""

    manifest: Manifest
    text: str


def _without_addresses(body: dict[str, Any]) -> dict[str, Any]:
    """A file is what its hash says, wherever it lies."""
    return {
        name: _without_addresses(value) if isinstance(value, dict) else value
        for name, value in body.items()
        if name != "url"
    }


def fingerprint(key: bytes) -> str:
    """A publisher's raw public key as people compare it: 16 hex digits of its SHA-256, in groups of four."""
    digits = hashlib.sha256(key).hexdigest()[:16]
    return " ".join(digits[place : place + 4] for place in range(0, 16, 4))
