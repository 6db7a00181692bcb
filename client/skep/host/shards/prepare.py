"""Converting an author's files to a dataset that any web server can serve. The same files always give the same hashes.

Text goes through `corpus`. Images are read with Pillow, one at a time, from a folder for each class, cut square and to
one size.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from skep.core.errors import BadInput
from skep.core.project.data import ImageLayout, TextLayout
from skep.core.project.manifest import BYTES
from skep.core.project.shards import permutation
from skep.core.text import Text
from skep.host.shards.corpus import (
    HELD_OUT_SHARE,
    Segment,
    divide,
    find_files,
    open_encoder,
    readable,
    samples,
)
from skep.host.shards.dataset import Dataset, Spool, new_folder, write_dataset

MODES: Final = {1: "L", 3: "RGB"}
"""Pillow's names of grey and colour, by channels."""
_SPOOLS: Final = (".training", ".held_out")


@dataclass(frozen=True)
class Cut:
    """The author's options: `samples_per_shard` None chooses it automatically, `held_out` is the most held out."""

    samples_per_shard: int | None
    held_out: int


def prepare_text(sources: Sequence[Path], folder: Path, tokenizer: str, length: int, cut: Cut) -> Dataset:
    """Shards of token ids in `folder`. Raises BadInput, DataError, StorageError."""
    encoder = open_encoder(tokenizer)
    layout = TextLayout(length, encoder.vocabulary)
    corpus = divide(find_files(sources), hold_out=cut.held_out > 0)

    def take(spool: Spool, segments: Iterable[Segment], most: int | None = None) -> None:
        for rows in samples(segments, encoder, length):
            spool.add(rows if most is None else rows[: most - spool.count])
            if spool.count == most:
                return

    with new_folder(folder) as hidden:
        training, held_out = (Spool(hidden / name, (length,), encoder.dtype) for name in _SPOOLS)
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


@dataclass(frozen=True)
class Picture:
    path: Path
    label: int


@dataclass(frozen=True)
class Pictures:
    """Class names in the order of their labels, and their images in two disjoint parts."""

    classes: tuple[str, ...]
    training: tuple[Picture, ...]
    held_out: tuple[Picture, ...]


def find_pictures(folder: Path, *, hold_out: bool) -> Pictures:
    """The images below each class's folder; of every class one in twenty is held out. Raises BadInput."""
    if not folder.is_dir():
        raise BadInput(
            Text("image_folder.there_no_folder", folder=str(folder)), Text("image_folder.name_folder_has_folder_images")
        )
    names = sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    if len(names) < 2:  # noqa: PLR2004 - one class teaches nothing
        raise BadInput(
            Text("image_folder.has_not_folder_each_two", folder=str(folder)),
            Text("image_folder.sort_images_into_folders"),
        )
    training: list[Picture] = []
    held_out: list[Picture] = []
    for label, name in enumerate(names):
        files = find_files([folder / name])
        order = permutation(f"skep: images {name}".encode(), len(files))
        own = [Picture(files[place], label) for place in order]
        kept = len(own) // HELD_OUT_SHARE if hold_out else 0
        held_out += own[:kept]
        training += own[kept:]
    return Pictures(tuple(names), tuple(training), tuple(held_out))


def read_pictures(
    pictures: Sequence[Picture], size: int, channels: int
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int32]]]:
    """Each image as uint8 [1, channels, size, size] with its label, int32 [1]. Raises BadInput."""
    for picture in pictures:
        pixels = _read(picture.path, size, channels).reshape(size, size, channels).transpose(2, 0, 1)
        yield pixels[None], np.array([picture.label], dtype=np.int32)


def _read(path: Path, size: int, channels: int) -> NDArray[np.uint8]:
    """The largest centred square of the image, rotated by its EXIF orientation."""
    with readable(path):
        try:
            with Image.open(path) as opened:
                upright = ImageOps.exif_transpose(opened)
                square = ImageOps.fit(upright.convert(MODES[channels]), (size, size))
        except UnidentifiedImageError:
            raise BadInput(
                Text("image_folder.not_image_can_read", path=str(path)), Text("image_folder.leave_out_convert_png")
            ) from None
        except (Image.DecompressionBombError, SyntaxError, ValueError) as error:
            raise BadInput(
                Text("image_folder.cannot_used", path=str(path), reason=str(error)[:120]),
                Text("image_folder.leave_out_make_anew"),
            ) from None
    return np.asarray(square, dtype=np.uint8)
