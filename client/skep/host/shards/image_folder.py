"""A local dataset of images: a folder for each class, read with Pillow, cut square and to one size.

It must not write anything, and holds one image at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from skep.core.errors import BadInput
from skep.core.project.shards import permutation
from skep.core.text import Text
from skep.host.shards.corpus import HELD_OUT_SHARE, find_files, unreadable

MODES: Final = {1: "L", 3: "RGB"}
"""Pillow's names of grey and colour, by channels."""


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
    """The middle of the image, as large a square as fits, as a camera meant it to be held."""
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
    except OSError as error:
        raise unreadable(path, error) from None
    return np.asarray(square, dtype=np.uint8)
