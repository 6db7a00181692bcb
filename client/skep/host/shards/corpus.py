"""A corpus of text: its files, the part of them that is held out, and their tokens as a stream.

Only a piece of a file is in memory at a time.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from skep.adapters.storage.files import unreadable
from skep.core.errors import BadInput, DataError
from skep.core.project.manifest import BYTE_VOCABULARY, BYTES
from skep.core.project.shards import permutation
from skep.core.text import Text
from skep.recipes.tensors.tokenizer_file import open_tokenizer

HELD_OUT_SHARE: Final = 20
"""One file in this many is held out; of fewer files, this part of each."""
PIECE: Final = 1024 * 1024
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
"""The bytes with which no UTF-8 character begins."""

Tokens = NDArray[np.uint8] | NDArray[np.int32]


@dataclass(frozen=True)
class Segment:
    """The bytes of a file from `start` up to `end`."""

    path: Path
    start: int
    end: int


@dataclass(frozen=True)
class Corpus:
    """Two disjoint parts, in an order that mixes files and depends on their number alone."""

    training: tuple[Segment, ...]
    held_out: tuple[Segment, ...]


def find_files(sources: Sequence[Path]) -> list[Path]:
    """The files given, and those below folders given, in a fixed order; names that begin with a dot are left out.

    Raises BadInput when there are none, or a source is missing.
    """
    found = [file for source in sources for file in _below(source)]
    if not found:
        raise BadInput(Text("corpus.there_no_files", sources=str(sources[0])), Text("corpus.name_folder_text_files"))
    return found


def _below(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise BadInput(Text("corpus.there_no_file_folder", source=str(source)), Text("corpus.check_name"))
    return sorted(_walk(source), key=lambda path: path.relative_to(source).parts)


def _walk(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        with readable(Path(str(error.filename))):
            raise error

    for here, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(here, name) for name in names if not name.startswith(".") and Path(here, name).is_file())


def readable(path: Path) -> AbstractContextManager[None]:
    return unreadable(path, Text("corpus.leave_out_make_readable"), BadInput)


def divide(files: Sequence[Path], *, hold_out: bool) -> Corpus:
    """What is trained on and what is held out. Raises BadInput when a file cannot be read."""
    shuffled = [files[place] for place in permutation(b"skep: files", len(files))]
    whole = [Segment(path, 0, _size(path)) for path in shuffled]
    if not hold_out:
        return Corpus(tuple(whole), ())
    if len(whole) >= HELD_OUT_SHARE:
        count = len(whole) // HELD_OUT_SHARE
        return Corpus(tuple(whole[count:]), tuple(whole[:count]))
    places = [_boundary(each) for each in whole]
    heads = tuple(Segment(each.path, 0, place) for each, place in zip(whole, places, strict=True))
    rests = tuple(Segment(each.path, place, each.end) for each, place in zip(whole, places, strict=True))
    return Corpus(rests, heads)


def _size(path: Path) -> int:
    with readable(path):
        return path.stat().st_size


def _boundary(whole: Segment) -> int:
    """Where the held-out part of a file ends: between two characters."""
    place = whole.end // HELD_OUT_SHARE
    with readable(whole.path), whole.path.open("rb") as file:
        file.seek(place)
        following = file.read(4)
    return place + len(following) - len(following.lstrip(_CONTINUATION))


@dataclass(frozen=True)
class Encoder:
    """Makes tokens, of `dtype`, of a piece of text."""

    vocabulary: int
    dtype: type[np.uint8 | np.int32]
    encode: Callable[[str], Tokens]


def open_encoder(name: str) -> Encoder:
    """`name` is "bytes" or the path of a tokenizer.json. Raises BadInput."""
    if name == BYTES:
        return Encoder(BYTE_VOCABULARY, np.uint8, lambda text: np.frombuffer(text.encode(), dtype=np.uint8))
    path = Path(name)
    if not path.is_file():
        raise BadInput(Text("corpus.there_no_tokenizer", path=str(path)), Text("corpus.name_tokenizer_json_bytes"))
    try:
        tokenizer = open_tokenizer(path)
    except DataError as error:
        raise BadInput(Text("corpus.no_tokenizer", path=str(path), title=error.title), error.hint) from None

    def encode(text: str) -> Tokens:
        # without the special tokens around a text
        return np.asarray(tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    return Encoder(int(tokenizer.get_vocab_size()), np.int32, encode)


def samples(segments: Iterable[Segment], encoder: Encoder, length: int) -> Iterator[Tokens]:
    """Complete samples, [samples, length], piece by piece. Texts are concatenated; the remainder is dropped."""
    rest: Tokens = encoder.encode("")
    for text in _pieces(segments):
        tokens = np.concatenate([rest, encoder.encode(text)])
        whole = len(tokens) // length
        if whole:
            yield tokens[: whole * length].reshape(whole, length)
        rest = tokens[whole * length :]


def _pieces(segments: Iterable[Segment]) -> Iterator[str]:
    """The text of the segments, in pieces that end with a line where lines are not endless. Raises BadInput."""
    for segment in segments:
        decoder = codecs.getincrementaldecoder("utf-8")()
        text, place = "", segment.start
        for raw in _raw_pieces(segment):
            try:
                text += decoder.decode(raw, final=place + len(raw) >= segment.end)
            except UnicodeDecodeError as error:
                raise BadInput(
                    Text("corpus.not_utf_8_text_near", path=str(segment.path), place=place + error.start),
                    Text("corpus.convert_utf_8_leave_out"),
                ) from None
            place += len(raw)
            ready, newline, later = text.rpartition("\n")
            if newline and len(later) < PIECE:
                yield ready + newline
                text = later
            elif len(text) >= PIECE:
                yield text
                text = ""
        if text:
            yield text


def _raw_pieces(segment: Segment) -> Iterator[bytes]:
    left = segment.end - segment.start
    with readable(segment.path), segment.path.open("rb") as file:
        file.seek(segment.start)
        while left > 0 and (raw := file.read(min(PIECE, left))):
            left -= len(raw)
            yield raw
