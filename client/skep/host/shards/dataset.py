"""Writes a dataset: samples are spooled to the disk as they come, dealt out to shards, and listed in an index.

A folder appears when all of it is there. However large the data, one shard at a time is held in memory. It must not
know what samples are made from.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from skep.core.errors import BadInput, DataError, SkepError, StorageError
from skep.core.project.data import ImageLayout, Layout, ShardIndex, ShardRef
from skep.core.project.shards import SHARD_BYTES_LIMIT, SHARD_SAMPLES_LIMIT, format_index, parse_index, shard_name
from skep.core.text import Text

INDEX_NAME: Final = "index.json"
SHARD_BYTES: Final = 8 * 1024 * 1024
"""What a shard holds where nobody says how many samples: a few seconds' download."""
FEWEST_SHARDS: Final = 8
"""Less data is cut smaller, so that peers need not begin with the same shard."""
MOST_SHARDS: Final = 12_000
"""As many as an index has room for; more data makes larger shards."""
GOLDEN: Final = (math.sqrt(5) - 1) / 2

Array = NDArray[Any]


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
    """A stride that meets every sample once, and in a row ever far from those before (the golden section)."""
    step = max(1, round(count * GOLDEN))
    while math.gcd(step, count) != 1:
        step += 1
    return step


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A hidden folder beside `folder`, which takes its place when all went well, and is gone otherwise.

    Raises BadInput when there is something already, StorageError when the disk is full or may not be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(
            Text("dataset.exists_already", folder=str(folder)), Text("dataset.name_another_folder_out_remove")
        )
    hidden: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        hidden = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        hidden.chmod(0o755)
        yield hidden
        hidden.replace(folder)
    except SkepError:
        raise
    except OSError as error:
        raise StorageError(
            Text("dataset.training_data_cannot_written", folder=str(folder), reason=str(error.strerror or error)),
            Text("dataset.free_some_space_choose_another"),
        ) from None
    finally:
        if hidden is not None:
            shutil.rmtree(hidden, ignore_errors=True)


def write_dataset(
    folder: Path, layout: Layout, training: Spool, held_out: Spool, samples_per_shard: int | None
) -> tuple[ShardIndex, str]:
    """Shards and index from what was spooled; the index and its hash. Raises BadInput, DataError."""
    count = _samples_per_shard(layout, training, samples_per_shard)
    index = ShardIndex(
        layout,
        tuple(_write_shard(folder, tensors) for tensors in training.shards(count)),
        tuple(_write_shard(folder, tensors) for tensors in held_out.shards(count)),
    )
    raw = format_index(index)
    try:
        # what a volunteer's computer would refuse is refused here
        parse_index(raw, layout)
    except DataError as error:
        raise DataError(
            Text("dataset.data_makes_no_dataset", title=error.title), Text("dataset.does_repeat_itself")
        ) from None
    (folder / INDEX_NAME).write_bytes(raw)
    return index, hashlib.sha256(raw).hexdigest()


def _samples_per_shard(layout: Layout, training: Spool, asked: int | None) -> int:
    size = _sample_size(layout)
    most = min(SHARD_SAMPLES_LIMIT, SHARD_BYTES_LIMIT // 2 // size)
    if asked is None:
        # few samples are cut small, and very many large
        wanted = min(SHARD_BYTES // size, -(-training.count // FEWEST_SHARDS))
        asked = min(most, max(1, wanted, -(-training.count // MOST_SHARDS)))
    if not 1 <= asked <= most:
        raise BadInput(Text("dataset.shard_may_hold_1_samples", most=most), Text("dataset.change_samples_per_shard"))
    return asked


def _sample_size(layout: Layout) -> int:
    """Bytes of the largest kind of sample."""
    if isinstance(layout, ImageLayout):
        return layout.channels * layout.size**2
    return 4 * layout.sequence_length


def _write_shard(folder: Path, tensors: dict[str, Array]) -> ShardRef:
    raw = save(tensors)
    sha256 = hashlib.sha256(raw).hexdigest()
    (folder / shard_name(sha256)).write_bytes(raw)
    return ShardRef(sha256, len(raw), len(next(iter(tensors.values()))))
