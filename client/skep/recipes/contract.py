"""What the file of a recipe declares, and what the worker trains by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from skep.core.project.fields import Object
from skep.core.project.recipe import Recipe

if TYPE_CHECKING:
    import torch

    from skep.recipes.tensors.batches import Batch

Files = Mapping[str, Path]
"""Where the files lie that a recipe needs, by the names its manifest's `files` have."""
NO_FILES: Final[Files] = MappingProxyType({})


class OpenRecipe(ABC):
    """One recipe, ready to make its model. Only the worker and the operator's processes use it: it needs torch."""

    @abstractmethod
    def build(self) -> torch.nn.Module:
        """The model, the same on every computer: from the recipe's seed and its files. float32, on the CPU.

        What requires no gradient is neither trained nor averaged. Raises DataError when a file is not what it must be.
        """

    @abstractmethod
    def loss(self, model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        """Mean loss in nats per prediction; every sample weighs the same."""

    @abstractmethod
    def example(self, size: int) -> Batch:
        """A random batch of `size` samples, for the dry run."""

    def for_export(self, model: torch.nn.Module) -> torch.nn.Module:
        """What `save_pretrained` writes of the trained `model`, which may be changed."""
        return model


@dataclass(frozen=True)
class RecipeKind:
    """What the registry knows of a recipe.

    `fields` reads it from a manifest. `open` raises DataError for a file that does not fit. `libraries` are the modules
    that its models need: they take seconds to import, which is done before it is opened.
    `smallest` are recipes without files that every kind of its models can be tried with in a second.
    """

    fields: Object
    open: Callable[[Any, Files], OpenRecipe]
    libraries: tuple[str, ...]
    smallest: tuple[Recipe, ...] = ()
