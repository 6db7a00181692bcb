"""Cuts byte-level shards from text files, such as the Python sources of the running interpreter's own library.

It must not serve or fetch anything; it writes a folder that any web server can serve.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from skep.core.errors import BadInput, DataError, StorageError
from skep.core.project.data import ShardIndex, ShardRef, TextLayout
from skep.core.project.shards import SHARD_BYTES_LIMIT, SHARD_SAMPLES_LIMIT, format_index, permutation, shard_name
from skep.core.project.types import BYTE_VOCABULARY
from skep.core.text import Text

INDEX_NAME: Final = "index.json"

_LEFT_OUT: Final = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
_HELD_OUT_SHARE: Final = 20
"""One file in this many is held out."""
_NO_SOURCES_HINT: Final = Text("shard_builder.install_python_sources")

Samples = NDArray[np.uint8]


def library_sources() -> list[Path]:
    """The Python files of this interpreter's standard library, tests left out, in a fixed order. Raises DataError."""
    root = Path(sysconfig.get_paths()["stdlib"])
    sources = sorted(_python_files(root))
    if not sources:
        raise DataError(Text("shard_builder.there_no_python_sources_make", root=str(root)), _NO_SOURCES_HINT)
    return sources


def _python_files(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in _LEFT_OUT]
        yield from (Path(folder, name) for name in files if name.endswith(".py"))


def build_shards(
    sources: Iterable[Path],
    folder: Path,
    *,
    sequence_length: int,
    samples_per_shard: int,
    max_shards: int,
    held_out_samples: int,
) -> tuple[Path, str, ShardIndex]:
    """Writes shards and their index into `folder`; returns the index's path, its sha256, and the index.

    The same files in the same order give the same bytes. Held-out samples come from files of their own, a little from
    each, so that both sides are of one mix. Raises BadInput, DataError (too little text), StorageError.
    """
    _check_sizes(sequence_length, samples_per_shard, max_shards, held_out_samples)
    held_out_files, training_files = _split(list(sources))
    held_out = _cut_held_out(held_out_files, held_out_samples, sequence_length)
    training = _cut_training(training_files, max_shards * samples_per_shard, sequence_length)
    if not len(training) or len(held_out) < held_out_samples:
        raise DataError(Text("shard_builder.files_hold_too_little_text"), _NO_SOURCES_HINT)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        index = ShardIndex(
            TextLayout(sequence_length, BYTE_VOCABULARY),
            tuple(_write_shards(training, samples_per_shard, folder)),
            tuple(_write_shards(held_out, samples_per_shard, folder)),
        )
        return _write_index(index, folder)
    except OSError as error:
        raise StorageError(
            Text("dataset.training_data_cannot_written", folder=str(folder), reason=str(error.strerror or error)),
            Text("shard_builder.free_some_space_choose_another"),
        ) from None


def _check_sizes(sequence_length: int, samples_per_shard: int, max_shards: int, held_out_samples: int) -> None:
    if samples_per_shard > SHARD_SAMPLES_LIMIT or samples_per_shard * sequence_length > SHARD_BYTES_LIMIT // 2:
        raise BadInput(
            Text(
                "shard_builder.shard_samples_tokens_too_large",
                samples_per_shard=samples_per_shard,
                sequence_length=sequence_length,
            ),
            Text("shard_builder.make_shards_smaller"),
        )
    if min(sequence_length, samples_per_shard, max_shards) < 1 or held_out_samples < 0:
        raise BadInput(Text("shard_builder.sizes_shards_whole_numbers_above"), Text("shard_builder.give_other_sizes"))


def _split(sources: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Held-out files and training files, both shuffled."""
    shuffled = [sources[place] for place in permutation(b"skep: files", len(sources))]
    held_out = max(1, len(shuffled) // _HELD_OUT_SHARE)
    return shuffled[:held_out], shuffled[held_out:]


def _cut_held_out(files: Sequence[Path], wanted: int, sequence_length: int) -> Samples:
    """Up to `wanted` samples, one from each file in turn, from anywhere in the file: heads of files are alike."""
    if wanted == 0:
        return _as_samples(b"", sequence_length)
    by_file = [_shuffled(_as_samples(_read(path), sequence_length)) for path in files]
    longest = max((len(samples) for samples in by_file), default=0)
    turns = ((samples[turn] for samples in by_file if turn < len(samples)) for turn in range(longest))
    taken = [sample for sample, _ in zip(chain.from_iterable(turns), range(wanted), strict=False)]
    return np.stack(taken) if taken else _as_samples(b"", sequence_length)


def _cut_training(files: Sequence[Path], wanted: int, sequence_length: int) -> Samples:
    """Up to `wanted` samples of as many files as that takes, shuffled so that every shard has the same mix."""
    text = bytearray()
    for path in files:
        if len(text) >= wanted * sequence_length:
            break
        text += _read(path)
    return _shuffled(_as_samples(bytes(text), sequence_length)[:wanted])


def _shuffled(samples: Samples) -> Samples:
    return samples[list(permutation(b"skep: samples", len(samples)))]


def _as_samples(text: bytes, sequence_length: int) -> Samples:
    """Whole samples, [samples, sequence_length]; what is left over at the end is dropped."""
    whole = len(text) // sequence_length
    return np.frombuffer(text, dtype=np.uint8, count=whole * sequence_length).reshape(whole, sequence_length)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            Text("shard_builder.file_cannot_read", path=str(path), reason=str(error.strerror or error)),
            Text("corpus.leave_out_make_readable"),
        ) from None


def _write_shards(samples: Samples, samples_per_shard: int, folder: Path) -> Iterator[ShardRef]:
    for start in range(0, len(samples), samples_per_shard):
        part = np.ascontiguousarray(samples[start : start + samples_per_shard])
        raw = save({"tokens": part})
        sha256 = hashlib.sha256(raw).hexdigest()
        _write(folder / shard_name(sha256), raw)
        yield ShardRef(sha256, len(raw), len(part))


def _write_index(index: ShardIndex, folder: Path) -> tuple[Path, str, ShardIndex]:
    raw = format_index(index)
    _write(folder / INDEX_NAME, raw)
    return folder / INDEX_NAME, hashlib.sha256(raw).hexdigest(), index


def _write(path: Path, raw: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(raw)
    part.replace(path)
