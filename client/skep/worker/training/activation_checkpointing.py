"""Activation checkpointing: one activation per layer is kept, and the rest computed again in the backward pass.

Without re-entrance, which torch.autograd.grad (fp16) could not go through. It must not decide when that is worth it.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import torch
from torch.utils.checkpoint import checkpoint

ALONE: Final = "AlbertLayerGroup"
"""The layers of the one family that transformers does not do it for."""


def recompute_activations(model: Any) -> None:
    """Turn it on for a model of transformers, for good."""
    if model.supports_gradient_checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
        return
    layers = [module for module in model.modules() if type(module).__name__ == ALONE]
    assert layers, f"{type(model).__name__} has no layers that are known here"
    for layer in layers:
        layer.forward = partial(_again, layer.forward)


def _again(forward: Any, *inputs: torch.Tensor, **options: Any) -> Any:
    return checkpoint(forward, *inputs, use_reentrant=False, **options)
