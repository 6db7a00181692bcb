"""The interfaces that a recipe implements, and the fields and tensors that several kinds of models share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

from skep.core.project.data import Recipe, Shape, Shapes, values
from skep.core.project.fields import FieldError, Whole
from skep.core.text import Text

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

    `recipe` declares its fields in a manifest. `open` raises DataError for a file that does not fit. `libraries` are
    the modules that its models need: they take seconds to import, which is done before it is opened.
    `smallest` are recipes without files that every kind of its models can be tried with in a second.
    """

    recipe: type[Recipe]
    open: Callable[[Any, Files], OpenRecipe]
    libraries: tuple[str, ...]
    smallest: tuple[Recipe, ...] = ()


# --- the fields and tensors that several kinds of models have in common

SEED: Final = Whole(0, 2**32 - 1)


@dataclass(frozen=True)
class TransformerShape:
    """A model of `type`, whose layers look at several parts (`heads`) of their `width` each on its own."""

    type: str
    layers: Annotated[int, Whole(1, 128)]
    heads: Annotated[int, Whole(1, 256)]
    width: Annotated[int, Whole(8, 16384)]

    def check_heads(self) -> None:
        """Raise FieldError unless each head gets an equal part of the width."""
        if self.width % self.heads:
            raise FieldError("recipe.model.width", Text("field.must_multiple_heads"))


def tensors(*shapes: Shape) -> Shapes:
    return Counter(shapes)


def linear(inputs: int, outputs: int) -> Shapes:
    """The weight and the bias of torch.nn.Linear."""
    return tensors((outputs, inputs), (outputs,))


def norm(width: int) -> Shapes:
    """The weight and the bias of torch.nn.LayerNorm."""
    return tensors((width,), (width,))


def encoder_layer(width: int) -> Shapes:
    """One layer of bert, albert or vit: attention, and a feed-forward part four times as wide."""
    attention = [linear(width, width)] * 4
    feed_forward = [linear(width, 4 * width), linear(4 * width, width)]
    return sum([*attention, *feed_forward, norm(width), norm(width)], Counter())


def larger(*parts: Shapes) -> Shapes:
    """The one with the most values."""
    return max(parts, key=values)


BLOCK_VALUES: Final = 28
"""Values that a block keeps for each value of its input until it has gone backward; measured: 28 in a gpt2, 22 in a llama,
16 in a bert or a vit, with an attention that keeps no scores."""
PREDICTION_VALUES: Final = 3
"""The same for each value that is predicted: itself, its copy in float32, its gradient."""


def transformer_activations(shape: TransformerShape, positions: int, predicted: int) -> int:
    """Values kept for one sample of so many `positions`, while one activation is kept for each layer.

    `predicted` values are predicted in all.
    """
    return positions * shape.width * (shape.layers + BLOCK_VALUES) + PREDICTION_VALUES * predicted
