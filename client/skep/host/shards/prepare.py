"""From an author's files to a dataset that any web server can serve: the same files always give the same hashes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from skep.core.errors import BadInput
from skep.core.project.data import ImageLayout, TextLayout
from skep.core.project.types import BYTES
from skep.core.text import Text
from skep.host.shards.corpus import ByteEncoder, Segment, divide, find_files, open_encoder, samples
from skep.host.shards.dataset import Dataset, Spool, new_folder, write_dataset
from skep.host.shards.image_folder import MODES, find_pictures, read_pictures

_SPOOLS: Final = (".training", ".held_out")


@dataclass(frozen=True)
class Cut:
    """How the author wants it: `samples_per_shard` None means chosen here, `held_out` is the most that is held out."""

    samples_per_shard: int | None
    held_out: int


def prepare_text(sources: Sequence[Path], folder: Path, tokenizer: str, length: int, cut: Cut) -> Dataset:
    """Shards of token ids in `folder`. Raises BadInput, DataError, StorageError."""
    encoder = open_encoder(tokenizer)
    layout = TextLayout(length, encoder.vocabulary)
    corpus = divide(find_files(sources), hold_out=cut.held_out > 0)
    dtype = np.uint8 if isinstance(encoder, ByteEncoder) else np.int32

    def take(spool: Spool, segments: Iterable[Segment], most: int | None = None) -> None:
        for rows in samples(segments, encoder, length):
            spool.add(rows if most is None else rows[: most - spool.count])
            if spool.count == most:
                return

    with new_folder(folder) as hidden:
        training, held_out = (Spool(hidden / name, (length,), dtype) for name in _SPOOLS)
        with closing(training), closing(held_out):
            take(training, corpus.training)
            take(held_out, corpus.held_out, cut.held_out)
            if not training.count:
                raise BadInput(
                    Text("prepare.files_hold_too_little_text", length=length),
                    Text("prepare.add_text_choose_smaller_sequence"),
                )
            index, sha256 = write_dataset(hidden, layout, training, held_out, cut.samples_per_shard)
        if tokenizer != BYTES:
            shutil.copyfile(tokenizer, hidden / "tokenizer.json")
    return Dataset(folder, index, sha256)


def prepare_images(source: Path, folder: Path, size: int, channels: int, cut: Cut) -> tuple[Dataset, tuple[str, ...]]:
    """Shards of images in `folder`, and the classes' names. Raises BadInput, DataError, StorageError."""
    if channels not in MODES:
        one, other = MODES
        raise BadInput(
            Text("prepare.image_has_channels_not", one=one, other=other, channels=channels),
            Text("prepare.change_channels"),
        )
    pictures = find_pictures(source, hold_out=cut.held_out > 0)
    layout = ImageLayout(channels, size, len(pictures.classes))
    with new_folder(folder) as hidden:
        training, held_out = (Spool(hidden / name, (channels, size, size), np.uint8) for name in _SPOOLS)
        with closing(training), closing(held_out):
            for pixels, label in read_pictures(pictures.training, size, channels):
                training.add(pixels, label)
            for pixels, label in read_pictures(pictures.held_out[: cut.held_out], size, channels):
                held_out.add(pixels, label)
            index, sha256 = write_dataset(hidden, layout, training, held_out, cut.samples_per_shard)
    return Dataset(folder, index, sha256), pictures.classes
