"""A project, what it trains and its training data as the engine knows them: files, layouts of samples, the recipe. Pure."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True)
class ShardRef:
    """A file of training samples, known by its hash. `sha256` is 64 lower-case hex digits."""

    sha256: str
    bytes: int
    samples: int


@dataclass(frozen=True)
class FileRef:
    """A file a recipe needs beside its samples, known by its hash.

    `name` is what it is called on screen; `bytes` 0 means that its size is not known before it is here.
    """

    name: str
    sha256: str
    bytes: int
    address: str


class TextLayout(msgspec.Struct, frozen=True, tag=True):
    """Shards of token ids below `vocabulary`, `sequence_length` to a sample."""

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

    `files` are what its recipe needs beside them; the manifest names those, not the index on the web.
    """

    layout: Layout
    shards: tuple[ShardRef, ...]
    held_out: tuple[ShardRef, ...] = ()
    files: tuple[FileRef, ...] = ()


@dataclass(frozen=True)
class Project:
    """What is shown of a project. `source` is where its manifest came from."""

    id: str
    title: str
    run_id: str
    fingerprint: str
    revision: int
    source: str


# --- the recipe: which tensors its model has, what its samples are, which files it needs

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
