"""What the core knows of a recipe: which tensors its model has, what its samples are, which files it needs. Pure."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass

from skep.core.project.data import FileRef, Layout

Shape = tuple[int, ...]
Shapes = Counter[Shape]
"""How many tensors there are of each shape. One of more than two dimensions is given as its rows and all the rest."""


def times(count: int, shapes: Shapes) -> Shapes:
    return Counter({shape: count * number for shape, number in shapes.items()})


def values(shapes: Shapes) -> int:
    """How many numbers the tensors hold."""
    return sum(number * math.prod(shape) for shape, number in shapes.items())


@dataclass(frozen=True)
class Recipe(ABC):
    """A recipe as a manifest names it, its fields checked one by one. `skep.recipes` has them all.

    Two peers average together only when all their fields are equal, addresses apart.
    """

    name: str

    @property
    @abstractmethod
    def model_type(self) -> str:
        """What its kind of model is called, such as "gpt2"."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """What a shard of this recipe holds; an index may declare a smaller vocabulary."""

    @property
    @abstractmethod
    def positions(self) -> int:
        """How many vectors the model computes for a sample: the tokens of a text, the patches of an image."""

    @property
    @abstractmethod
    def trained(self) -> Shapes:
        """The tensors that have gradients, and that are averaged."""

    @property
    def frozen(self) -> Shapes:
        """The tensors that are part of the model and never change."""
        return Counter()

    @property
    def files(self) -> tuple[FileRef, ...]:
        """What the recipe cannot be trained without, beside samples."""
        return ()

    @abstractmethod
    def check(self) -> None:
        """Raise FieldError for a model that cannot be built, or not be trained on such samples."""
