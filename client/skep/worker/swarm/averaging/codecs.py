"""How tensors are compressed on their way to other peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hivemind import compression

CODECS: Final[dict[str, Callable[[], compression.CompressionBase]]] = {
    "none": compression.NoCompression,
    "float16": compression.Float16Compression,
    "scaled-float16": compression.ScaledFloat16Compression,
    "uniform-8bit": compression.Uniform8BitQuantization,
}


def round_codec(name: str, threshold: int) -> compression.CompressionBase:
    """How tensors are sent in a round; `threshold` is the number of values from which size-adaptive takes 8 bits."""
    if name == "size-adaptive":
        return compression.SizeAdaptiveCompression(
            threshold, less=compression.Float16Compression(), greater_equal=compression.Uniform8BitQuantization()
        )
    return CODECS[name]()


def loading_codec(name: str, threshold: int) -> compression.CompressionBase:
    """How a state is sent to a newcomer: parameters with the named codec, the optimizer's statistics uncompressed.

    Rounded to 16 or 8 bits, second moments may become zero or negative, and the newcomer's first step arbitrary.
    """
    return compression.RoleAdaptiveCompression(
        parameter=Shaped(round_codec(name, threshold)), default=compression.NoCompression()
    )


class Shaped(compression.SizeAdaptiveCompression):
    """A codec for tensors of at least one dimension; scalars, unsupported by some codecs, are sent uncompressed."""

    def __init__(self, codec: compression.CompressionBase) -> None:
        super().__init__(0, less=compression.NoCompression(), greater_equal=codec)

    def choose_compression(self, info: compression.CompressionInfo) -> compression.CompressionBase:
        return self.greater_equal if len(info.descriptor.size) else self.less
