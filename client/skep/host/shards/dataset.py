"""Writing datasets: shards, and the index that lists them, in a folder that any web server can serve.

`write_dataset` spools an author's samples to the disk as they arrive, so that only one shard at a time is in memory.
`build_shards` cuts byte-level shards in memory from text files, such as the Python sources of this interpreter's
library.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from skep.adapters.storage.files import os_errors
from skep.core.errors import BadInput, DataError
from skep.core.project.data import ImageLayout, Layout, ShardIndex, ShardRef, TextLayout
from skep.core.project.manifest import BYTE_VOCABULARY
from skep.core.project.shards import (
    SHARD_BYTES_LIMIT,
    SHARD_SAMPLES_LIMIT,
    format_index,
    parse_index,
    permutation,
    shard_name,
)
from skep.core.text import Text
from skep.host.shards.corpus import HELD_OUT_SHARE

INDEX_NAME: Final = "index.json"
SHARD_BYTES: Final = 8 * 1024 * 1024
"""Size of a shard if the author gives no number of samples: a few seconds' download."""
FEWEST_SHARDS: Final = 8
"""Small datasets get smaller shards, so that peers can begin with different ones."""
MOST_SHARDS: Final = 12_000
"""Limit of an index; large datasets get larger shards."""
GOLDEN: Final = (math.sqrt(5) - 1) / 2
LIBRARY: Final = Path(sysconfig.get_paths()["stdlib"])
_LEFT_OUT: Final = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
_NO_SOURCES_HINT: Final = Text("shard_builder.install_python_sources")

Array = NDArray[Any]
ByteSamples = NDArray[np.uint8]


@dataclass(frozen=True)
class Dataset:
    """What was written, and what a manifest's `data.sha256` must be."""

    folder: Path
    index: ShardIndex
    sha256: str


class Spool:
    """Samples of one shape in a file of their own, in the order they came; images with their labels."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: Any) -> None:
        self._path, self._shape, self._dtype = path, shape, np.dtype(dtype)
        self._labels: list[NDArray[np.int32]] = []
        self._file = path.open("wb")
        self.count = 0

    def add(self, rows: Array, labels: NDArray[np.int32] | None = None) -> None:
        """Append [samples, *shape]."""
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).tobytes())
        self.count += len(rows)
        if labels is not None:
            self._labels.append(labels)

    def shards(self, samples_per_shard: int) -> Iterator[dict[str, Array]]:
        """The tensors of each shard. Every shard takes from all over the samples, so that all have the same mix."""
        self._file.close()
        if not self.count:
            return
        rows = np.memmap(self._path, dtype=self._dtype, mode="r", shape=(self.count, *self._shape))
        labels = np.concatenate(self._labels) if self._labels else None
        step = _step(self.count)
        for start in range(0, self.count, samples_per_shard):
            places = np.arange(start, min(start + samples_per_shard, self.count), dtype=np.int64) * step % self.count
            chosen = np.ascontiguousarray(rows[places])
            yield {"tokens": chosen} if labels is None else {"pixels": chosen, "labels": labels[places]}

    def close(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


def _step(count: int) -> int:
    """A stride that visits every sample once, with consecutive ones far apart (the golden section)."""
    step = max(1, round(count * GOLDEN))
    while math.gcd(step, count) != 1:
        step += 1
    return step


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A hidden folder beside `folder`, which is renamed to `folder` on success, and removed otherwise.

    Raises BadInput if `folder` exists already, StorageError if the disk is full or not writable.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(
            Text("dataset.exists_already", folder=str(folder)), Text("dataset.name_another_folder_out_remove")
        )
    hidden: Path | None = None
    try:
        with _write_errors(folder, Text("dataset.free_some_space_choose_another")):
            folder.parent.mkdir(parents=True, exist_ok=True)
            hidden = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            hidden.chmod(0o755)
            yield hidden
            hidden.replace(folder)
    finally:
        if hidden is not None:
            shutil.rmtree(hidden, ignore_errors=True)


def _write_errors(folder: Path, hint: Text) -> contextlib.AbstractContextManager[None]:
    return os_errors(Text("dataset.training_data_cannot_written", folder=str(folder)), hint)


def write_dataset(
    folder: Path, layout: Layout, training: Spool, held_out: Spool, samples_per_shard: int | None
) -> tuple[ShardIndex, str]:
    """Shards and index from what was spooled; the index and its hash. Raises BadInput, DataError."""
    count = _samples_per_shard(layout, training, samples_per_shard)
    return _write(folder, layout, training.shards(count), held_out.shards(count))


def _write(
    folder: Path, layout: Layout, training: Iterable[dict[str, Array]], held_out: Iterable[dict[str, Array]]
) -> tuple[ShardIndex, str]:
    index = ShardIndex(
        layout,
        tuple(_write_shard(folder, tensors) for tensors in training),
        tuple(_write_shard(folder, tensors) for tensors in held_out),
    )
    raw = format_index(index)
    try:
        # apply the limits that joining peers apply
        parse_index(raw, layout)
    except DataError as error:
        raise DataError(
            Text("dataset.data_makes_no_dataset", title=error.title), Text("dataset.does_repeat_itself")
        ) from None
    (folder / INDEX_NAME).write_bytes(raw)
    return index, hashlib.sha256(raw).hexdigest()


def _samples_per_shard(layout: Layout, training: Spool, asked: int | None) -> int:
    # bytes of the largest kind of sample
    size = layout.channels * layout.size**2 if isinstance(layout, ImageLayout) else 4 * layout.sequence_length
    most = min(SHARD_SAMPLES_LIMIT, SHARD_BYTES_LIMIT // 2 // size)
    if asked is None:
        # few samples are cut small, and very many large
        wanted = min(SHARD_BYTES // size, -(-training.count // FEWEST_SHARDS))
        asked = min(most, max(1, wanted, -(-training.count // MOST_SHARDS)))
    if not 1 <= asked <= most:
        raise BadInput(Text("dataset.shard_may_hold_1_samples", most=most), Text("dataset.change_samples_per_shard"))
    return asked


def _write_shard(folder: Path, tensors: dict[str, Array]) -> ShardRef:
    raw = save(tensors)
    sha256 = hashlib.sha256(raw).hexdigest()
    (folder / shard_name(sha256)).write_bytes(raw)
    return ShardRef(sha256, len(raw), len(next(iter(tensors.values()))))


# --- byte-level shards from text files, cut in memory


def library_sources(root: Path = LIBRARY) -> list[Path]:
    """The Python files of the standard library below `root`, tests left out, in a fixed order. Raises DataError."""
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
    with _write_errors(folder, Text("shard_builder.free_some_space_choose_another")):
        folder.mkdir(parents=True, exist_ok=True)
        layout = TextLayout(sequence_length, BYTE_VOCABULARY)
        shards = (_byte_shards(samples, samples_per_shard) for samples in (training, held_out))
        index, sha256 = _write(folder, layout, *shards)
    return folder / INDEX_NAME, sha256, index


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
    held_out = max(1, len(shuffled) // HELD_OUT_SHARE)
    return shuffled[:held_out], shuffled[held_out:]


def _cut_held_out(files: Sequence[Path], wanted: int, sequence_length: int) -> ByteSamples:
    """Up to `wanted` samples, one from each file in turn, from anywhere in the file: heads of files are alike."""
    if wanted == 0:
        return _as_samples(b"", sequence_length)
    by_file = [_shuffled(_as_samples(_read(path), sequence_length)) for path in files]
    longest = max((len(samples) for samples in by_file), default=0)
    turns = ((samples[turn] for samples in by_file if turn < len(samples)) for turn in range(longest))
    taken = [sample for sample, _ in zip(chain.from_iterable(turns), range(wanted), strict=False)]
    return np.stack(taken) if taken else _as_samples(b"", sequence_length)


def _cut_training(files: Sequence[Path], wanted: int, sequence_length: int) -> ByteSamples:
    """Up to `wanted` samples of as many files as that takes, shuffled so that every shard has the same mix."""
    text = bytearray()
    for path in files:
        if len(text) >= wanted * sequence_length:
            break
        text += _read(path)
    return _shuffled(_as_samples(bytes(text), sequence_length)[:wanted])


def _shuffled(samples: ByteSamples) -> ByteSamples:
    return samples[list(permutation(b"skep: samples", len(samples)))]


def _as_samples(text: bytes, sequence_length: int) -> ByteSamples:
    """Whole samples, [samples, sequence_length]; what is left over at the end is dropped."""
    whole = len(text) // sequence_length
    return np.frombuffer(text, dtype=np.uint8, count=whole * sequence_length).reshape(whole, sequence_length)


def _read(path: Path) -> bytes:
    with os_errors(
        Text("shard_builder.file_cannot_read", path=str(path)), Text("corpus.leave_out_make_readable"), DataError
    ):
        return path.read_bytes()


def _byte_shards(samples: ByteSamples, samples_per_shard: int) -> Iterator[dict[str, Array]]:
    for start in range(0, len(samples), samples_per_shard):
        yield {"tokens": np.ascontiguousarray(samples[start : start + samples_per_shard])}
