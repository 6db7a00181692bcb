"""What can be trained; one file per recipe, and `open_recipe`, which knows them all.

To add one: write its file, name it here, declare its class in `skep.core.recipe_types` and its fields in
`skep.core.manifest_recipe`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

import torch

from skep.core.recipe_types import ImageRecipe, LoraRecipe, MaskedRecipe, Recipe
from skep.worker.batches import Batch

Files = Mapping[str, Path]
"""Where the files lie that a recipe needs, by the names its manifest's `files` have."""
NO_FILES: Final[Files] = MappingProxyType({})


class OpenRecipe(Protocol):
    """One recipe, ready to make its model."""

    def build(self) -> torch.nn.Module:
        """The model, the same on every computer: from the recipe's seed and its files. float32, on the CPU.

        What requires no gradient is neither trained nor averaged. Raises DataError when a file is not what it must be.
        """

    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        """Mean loss in nats per prediction; every sample weighs the same."""

    def example(self, size: int) -> Batch:
        """A batch of `size` samples of chance, for the dry run."""


def open_recipe(recipe: Recipe, files: Files = NO_FILES) -> OpenRecipe:
    """The recipe's own code. Each file is imported when it is needed, and with it the library it stands on."""
    # ruff: noqa: PLC0415 - see above
    match recipe:
        case ImageRecipe():
            from skep.worker.recipes.image_classifier import ImageClassifier

            return ImageClassifier(recipe)
        case MaskedRecipe():
            from skep.worker.recipes.masked_lm import MaskedLM

            return MaskedLM(recipe, files)
        case LoraRecipe():
            from skep.worker.recipes.lora import Lora

            return Lora(recipe, files)
        case _:
            from skep.worker.recipes.causal_lm import CausalLM

            return CausalLM(recipe)
