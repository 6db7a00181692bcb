"""What can be trained; one file per recipe, and this table that names them.

A recipe is a module with `build(recipe) -> model` and `loss(model, tokens) -> scalar tensor`. To add one: write its
file, name it here, and let `skep.core.manifest` accept its name and fields.
"""

from __future__ import annotations

from typing import Final, Protocol, cast

import torch

from skep.core.manifest import Recipe
from skep.worker.recipes import causal_lm


class RecipeModule(Protocol):
    def build(self, recipe: Recipe) -> torch.nn.Module:
        """The model with parameters made from the recipe's seed. float32, on the CPU."""

    def loss(self, model: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
        """Mean loss in nats per token. `tokens`: int64 [samples, sequence_length]."""


RECIPES: Final[dict[str, RecipeModule]] = {
    "causal-lm": cast("RecipeModule", causal_lm),
}
