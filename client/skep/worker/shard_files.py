"""Opens shards and checks that they are what the index promises, before anything of them is trained on.

It must not know where a shard comes from, nor in which order its samples are used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open

from skep.core.errors import DataError
from skep.core.model import ImageLayout, Layout, ShardRef, TextLayout
from skep.worker.batches import Rows

_TOKENS: Final = ("tokens",)
_IMAGES: Final = ("labels", "pixels")
_TOKEN_KINDS: Final = ("U8", "I32")


def open_shard(path: Path, shard: ShardRef, layout: Layout) -> Rows:
    """The samples of a shard, memory-mapped, every token and label in range.

    Raises FileNotFoundError, and DataError when the file is not what the index promised.
    """
    if path.stat().st_size != shard.bytes:
        raise _unusable(shard, "it has not the size the index promises")
    try:
        with safe_open(path, framework="pt") as file:
            return (
                _open_text(file, shard, layout) if isinstance(layout, TextLayout) else _open_images(file, shard, layout)
            )
    except SafetensorError:
        raise _unusable(shard, "it is not a safetensors file") from None


def _open_text(file: Any, shard: ShardRef, layout: TextLayout) -> Rows:
    _check_names(file, shard, _TOKENS)
    part = file.get_slice("tokens")
    if part.get_dtype() not in _TOKEN_KINDS:
        raise _unusable(shard, "its tokens are neither uint8 nor int32")
    if tuple(part.get_shape()) != (shard.samples, layout.sequence_length):
        raise _unusable(shard, f"it does not hold {shard.samples} samples of {layout.sequence_length} tokens")
    tokens: torch.Tensor = file.get_tensor("tokens")
    _check_range(tokens, shard, "tokens", layout.vocabulary)
    return Rows(tokens)


def _open_images(file: Any, shard: ShardRef, layout: ImageLayout) -> Rows:
    _check_names(file, shard, _IMAGES)
    pixels, labels = file.get_slice("pixels"), file.get_slice("labels")
    if pixels.get_dtype() != "U8":
        raise _unusable(shard, "its pixels are not uint8")
    if labels.get_dtype() != "I32":
        raise _unusable(shard, "its labels are not int32")
    channels, size = layout.channels, layout.size
    if tuple(pixels.get_shape()) != (shard.samples, channels, size, size):
        raise _unusable(shard, f"it does not hold {shard.samples} images of {channels} x {size} x {size}")
    if tuple(labels.get_shape()) != (shard.samples,):
        raise _unusable(shard, "it has not one label for each image")
    rows = Rows(file.get_tensor("pixels"), file.get_tensor("labels"))
    assert rows.labels is not None
    _check_range(rows.labels, shard, "labels", layout.classes)
    return rows


def _check_names(file: Any, shard: ShardRef, names: tuple[str, ...]) -> None:
    if tuple(sorted(file.keys())) == names:
        return
    quoted = " and ".join(f'"{name}"' for name in names)
    raise _unusable(shard, f"it does not hold exactly {'one tensor' if len(names) == 1 else 'two tensors'} {quoted}")


def _check_range(values: torch.Tensor, shard: ShardRef, name: str, count: int) -> None:
    least, most = (int(value) for value in torch.aminmax(values))
    if least < 0 or most >= count:
        raise _unusable(shard, f"it has {name} outside 0 to {count - 1}")


def _unusable(shard: ShardRef, why: str) -> DataError:
    return DataError(f"The shard {shard.sha256[:12]}… cannot be used: {why}.", "Tell the project's publisher.")
