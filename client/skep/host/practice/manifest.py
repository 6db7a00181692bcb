"""The manifest of the practice swarm: a small byte-level model that two cores can train in minutes. Pure data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

SEQUENCE_LENGTH: Final = 128
PROJECT_ID: Final = "practice"


def practice_manifest(
    *,
    revision: int,
    publisher_key: str,
    peers: Sequence[str],
    index_address: str,
    index_sha256: str,
    now: datetime,
) -> dict[str, Any]:
    """The manifest as the JSON object that is written and signed. `now` is aware; it expires a week later."""
    return {
        "format": 1,
        "id": PROJECT_ID,
        "revision": revision,
        "title": "Practice swarm",
        "summary": "A small model on this computer that learns to write Python. Nothing leaves the machine.",
        "publisher": {"name": "This computer", "key": publisher_key},
        "homepage": "",
        "license": "Apache-2.0",
        "expires": (now + timedelta(days=7)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "membership": "open",
        "peers": list(peers),
        "recipe": {
            "name": "causal-lm",
            "model": {"type": "gpt2", "layers": 2, "heads": 4, "width": 128, "vocabulary": 256},
            "sequence_length": SEQUENCE_LENGTH,
            "tokenizer": "bytes",
            "seed": 0,
        },
        "optimizer": {
            "name": "adamw",
            "learning_rate": 3e-3,
            "betas": [0.9, 0.95],
            "weight_decay": 0.01,
            "clip_norm": 1.0,
        },
        "schedule": {"kind": "constant", "warmup_epochs": 4, "total_epochs": 1000},
        "sync": {
            "target_batch_size": 1024,
            "offload_optimizer": True,
            "reuse_grad_buffers": True,
            "delay_optimizer_step": True,
            "delay_grad_averaging": False,
            "delay_state_averaging": True,
            "grad_compression": "float16",
            "state_compression": "float16",
            "load_compression": "none",
            "size_adaptive_threshold": 65537,
            "powersgd": None,
            "average_state_every": 1,
            "mode": "global",
            "matchmaking_seconds": 3,
            "averaging_timeout_seconds": 20,
        },
        "precision": "auto",
        "activation_checkpointing": "auto",
        "data": {"index": index_address, "sha256": index_sha256},
        "needs": {"memory_gb": 1, "vram_gb": 1, "disk_gb": 0.1, "upload_mbit": 1},
    }
