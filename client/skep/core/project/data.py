"""A project and its training data as the engine knows them: files by hash, layouts of samples. Data only."""

from __future__ import annotations

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
