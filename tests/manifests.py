"""Builds manifests for tests: the example manifest, changed field by field, signed with a key of the test."""

import json
from copy import deepcopy
from pathlib import Path

from skep.adapters.storage import signing
from skep.core.project.fields import key_text

PEER = "/ip4/127.0.0.1/tcp/31337/p2p/QmZtmD2qt6fJot32nabSP3CUjicnypEBz7bHVDhPQt9aAy"

EXAMPLE = {
    "format": 1,
    "id": "tiny-code-lm",
    "revision": 3,
    "title": "Tiny code model",
    "summary": "A 3.3 M parameter model that learns to write Python.",
    "publisher": {"name": "Example Lab", "key": "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
    "homepage": "https://example.org",
    "license": "Apache-2.0",
    "expires": "2097-12-31T00:00:00Z",
    "membership": "open",
    "initial_state": "swarm",
    "peers": ["/dns4/seed1.example.org/tcp/443/p2p/QmZtmD2qt6fJot32nabSP3CUjicnypEBz7bHVDhPQt9aAy", PEER],
    "recipe": {
        "name": "causal-lm",
        "model": {"type": "gpt2", "layers": 4, "heads": 4, "width": 256, "vocabulary": 256},
        "sequence_length": 256,
        "tokenizer": "bytes",
        "seed": 0,
    },
    "optimizer": {
        "name": "adamw",
        "learning_rate": 6e-4,
        "betas": [0.9, 0.95],
        "weight_decay": 0.1,
        "clip_norm": 1.0,
    },
    "schedule": {"kind": "cosine", "warmup_epochs": 20, "total_epochs": 2000},
    "sync": {
        "target_batch_size": 512,
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
        "matchmaking_seconds": 5,
        "averaging_timeout_seconds": 30,
    },
    "precision": "auto",
    "activation_checkpointing": "auto",
    "data": {"index": "https://example.org/tiny/index.json", "sha256": "0" * 64},
    "needs": {"memory_gb": 2, "vram_gb": 2, "disk_gb": 1, "upload_mbit": 5},
}

REMOVED = object()


def masked(kind="bert", **shape):
    """A small recipe masked-lm on bytes, with changes to its model."""
    sizes = {"layers": 2, "heads": 2, "width": 16, "vocabulary": 257}
    own = {"embedding_width": 8} if kind == "albert" else {}
    return {
        "name": "masked-lm",
        "model": {"type": kind} | sizes | own | shape,
        "sequence_length": 32,
        "tokenizer": "bytes",
        "seed": 0,
    }


def images(**shape):
    """A small recipe image-classifier, with changes to its model."""
    sizes = {"layers": 2, "heads": 2, "width": 16, "image_size": 8, "patch_size": 4, "channels": 3, "classes": 4}
    return {"name": "image-classifier", "model": {"type": "vit"} | sizes | shape, "seed": 0}


_PUBLISHED = {
    "llama": {
        "key_value_heads": 2,
        "feed_forward": 48,
        "rope_base": 10000,
        "norm_epsilon": 1e-5,
        "tied_embeddings": True,
    },
    "gpt2": {"positions": 64},
}


def lora(kind="llama", targets=("q_proj", "v_proj"), **shape):
    """A small recipe lora on bytes, with changes to its model. A Llama with changed `heads` has as many key heads."""
    sizes = {"layers": 2, "heads": 2, "width": 16, "vocabulary": 256}
    own = dict(_PUBLISHED[kind])
    if "heads" in shape and kind == "llama":
        own["key_value_heads"] = shape["heads"]
    vocabulary = (sizes | shape)["vocabulary"]
    file = {"url": "https://example.org/tokenizer.json", "sha256": "c" * 64}
    return {
        "name": "lora",
        "model": {"type": kind} | sizes | own | shape,
        "sequence_length": 32,
        "tokenizer": "bytes" if vocabulary == 256 else file,
        "seed": 0,
        "base": {"url": "https://example.org/base.safetensors", "sha256": "b" * 64, "bytes": 13_000_000_000},
        "adapters": {"rank": 8, "alpha": 16, "targets": list(targets)},
    }


def example(**changes):
    """The example with changes, as `changed` takes them."""
    return changed(EXAMPLE, **changes)


def changed(manifest, **changes):
    """A copy with changes by dotted path, written with double underscores: sync__mode="local"."""
    body = deepcopy(manifest)
    for path, value in changes.items():
        *parents, name = path.split("__")
        place = body
        for parent in parents:
            place = place[parent]
        if value is REMOVED:
            del place[name]
        else:
            place[name] = value
    return body


def raw(**changes):
    return json.dumps(example(**changes)).encode()


def signed(folder, key=None, name="manifest.json", **changes):
    """A signed manifest file in `folder`, with the key at `key` (created there if it is missing)."""
    folder = Path(folder)
    key = key or folder / "publisher.key"
    public = signing.ensure_key(key)
    path = folder / name
    path.write_text(json.dumps(example(publisher__key=key_text(public), **changes)))
    signing.sign_manifest(path, key)
    return path
