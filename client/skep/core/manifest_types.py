"""A checked manifest as frozen dataclasses. `manifest.parse` is the only way from bytes to one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from skep.core.recipe_types import Recipe

MANIFEST_BYTES_LIMIT: Final = 64 * 1024


@dataclass(frozen=True)
class Publisher:
    name: str
    key: bytes
    """Raw Ed25519 public key, 32 bytes."""


@dataclass(frozen=True)
class OptimizerSpec:
    """`betas` are Adam's and LAMB's; of SGD the first is the momentum, and the second has no meaning."""

    name: str
    learning_rate: float
    betas: tuple[float, float]
    weight_decay: float
    clip_norm: float | None


@dataclass(frozen=True)
class Schedule:
    kind: str
    warmup_epochs: int
    total_epochs: int


@dataclass(frozen=True)
class PowerSGD:
    """Gradients sent as products of two thin matrices of `rank` columns, where that saves `min_compression_ratio`."""

    rank: int
    min_compression_ratio: float


@dataclass(frozen=True)
class Sync:
    target_batch_size: int
    offload_optimizer: bool
    reuse_grad_buffers: bool
    delay_optimizer_step: bool
    delay_grad_averaging: bool
    delay_state_averaging: bool
    grad_compression: str
    state_compression: str
    load_compression: str
    size_adaptive_threshold: int
    powersgd: PowerSGD | None
    average_state_every: int
    mode: str
    matchmaking_seconds: float
    averaging_timeout_seconds: float

    @property
    def size_adaptive(self) -> bool:
        """Whether the threshold decides how gradients or parameters are sent in a round."""
        return "size-adaptive" in {self.grad_compression, self.state_compression}


@dataclass(frozen=True)
class DataSource:
    index: str
    """Address of the shard index."""
    sha256: str


@dataclass(frozen=True)
class Needs:
    memory_gb: float
    vram_gb: float
    disk_gb: float
    upload_mbit: float


@dataclass(frozen=True)
class Manifest:
    id: str
    revision: int
    title: str
    summary: str
    publisher: Publisher
    homepage: str
    license: str
    expires: datetime
    """Aware, UTC."""
    membership: str
    peers: tuple[str, ...]
    recipe: Recipe
    optimizer: OptimizerSpec
    schedule: Schedule
    sync: Sync
    precision: str
    activation_checkpointing: str
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
