"""Projects, recipes and training data as the engine knows them: files, layouts of samples, tensor shapes. Pure."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass

import msgspec

from skep.core.project.addresses import Reach, reach_of


@dataclass(frozen=True)
class ShardRef:
    """A file of training samples, identified by its hash. `sha256` is 64 lower-case hex digits."""

    sha256: str
    bytes: int
    samples: int


@dataclass(frozen=True)
class FileRef:
    """A file that a recipe needs in addition to its samples, identified by its hash.

    `name` is shown on screen; `bytes` 0 means that the size is not known before the download.
    """

    name: str
    sha256: str
    bytes: int
    address: str


class TextLayout(msgspec.Struct, frozen=True, tag=True):
    """Shards of token ids below `vocabulary`, with `sequence_length` tokens per sample."""

    sequence_length: int
    vocabulary: int


class ImageLayout(msgspec.Struct, frozen=True, tag=True):
    """Shards of square images of `size` x `size` pixels, each with a label below `classes`."""

    channels: int
    size: int
    classes: int


Layout = TextLayout | ImageLayout


@dataclass(frozen=True)
class ShardIndex:
    """The shards of a project. `held_out` is never trained on; it may be empty.

    `files` are the other files that a peer needs: those of the recipe, which the manifest names, not the index on the
    web, and the signed checkpoint, if the project demands one. `checkpoint` is the text of the publisher's note of it.
    """

    layout: Layout
    shards: tuple[ShardRef, ...]
    held_out: tuple[ShardRef, ...] = ()
    files: tuple[FileRef, ...] = ()
    checkpoint: str = ""


@dataclass(frozen=True)
class Project:
    """The data of a project that front ends show. `source` is where its manifest came from."""

    id: str
    title: str
    run_id: str
    fingerprint: str
    revision: int
    source: str

    @property
    def reach(self) -> Reach:
        """The addresses that its downloads may reach."""
        return reach_of(self.source)


# --- the recipe: which tensors its model has, what its samples are, which files it needs

Shape = tuple[int, ...]
Shapes = Counter[Shape]
"""The number of tensors of each shape. More than two dimensions are given as the first and the product of the rest."""


def times(count: int, shapes: Shapes) -> Shapes:
    return Counter({shape: count * number for shape, number in shapes.items()})


def values(shapes: Shapes) -> int:
    """The total number of values in the tensors."""
    return sum(number * math.prod(shape) for shape, number in shapes.items())


@dataclass(frozen=True)
class Recipe(ABC):
    """The recipe in a manifest, with each field checked. The recipes are defined in `skep.recipes`.

    Two peers average together only when all fields of their recipes are equal, except addresses.
    """

    name: str

    @property
    @abstractmethod
    def model_type(self) -> str:
        """The name of the kind of model, such as "gpt2"."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The layout of this recipe's shards; an index may declare a smaller vocabulary."""

    @property
    @abstractmethod
    def positions(self) -> int:
        """The number of vectors that the model computes for a sample: tokens of a text, or patches of an image."""

    @property
    @abstractmethod
    def trained(self) -> Shapes:
        """The tensors that have gradients and are averaged."""

    @property
    def frozen(self) -> Shapes:
        """The tensors that are part of the model and never change."""
        return Counter()

    @property
    def largest_part(self) -> Shapes:
        """The tensors of the largest part that one of several devices has whole: a block, or an embedding."""
        return self.trained + self.frozen

    @property
    def activations(self) -> int:
        """Values that training keeps for one sample, with one activation for each block; 0 where that is unknown."""
        return 0

    @property
    def files(self) -> tuple[FileRef, ...]:
        """The files that the recipe needs for training, in addition to samples."""
        return ()

    @abstractmethod
    def check(self) -> None:
        """Raise FieldError for a model that cannot be built, or cannot be trained on such samples."""
