"""The manifest's words for compression as hivemind's codecs, for rounds and for the state a newcomer loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hivemind.compression import (
    CompressionBase,
    Float16Compression,
    NoCompression,
    RoleAdaptiveCompression,
    ScaledFloat16Compression,
    SizeAdaptiveCompression,
    Uniform8BitQuantization,
)
from hivemind.compression.base import CompressionInfo

PLAIN: Final[dict[str, Callable[[], CompressionBase]]] = {
    "none": NoCompression,
    "float16": Float16Compression,
    "scaled-float16": ScaledFloat16Compression,
    "uniform-8bit": Uniform8BitQuantization,
}


def of_round(name: str, threshold: int) -> CompressionBase:
    """How tensors are sent in a round; `threshold` is the number of values from which size-adaptive takes 8 bits."""
    if name == "size-adaptive":
        return SizeAdaptiveCompression(threshold, less=Float16Compression(), greater_equal=Uniform8BitQuantization())
    return PLAIN[name]()


def of_load(name: str, threshold: int) -> CompressionBase:
    """How a state is handed to a newcomer: its parameters as named, the optimizer's statistics always whole.

    Rounded to 16 or 8 bits, second moments become zero, or even negative, and the newcomer's first step is anything.
    """
    return RoleAdaptiveCompression(parameter=Shaped(of_round(name, threshold)), default=NoCompression())


class Shaped(SizeAdaptiveCompression):
    """A codec for tensors of at least one dimension; single numbers, which some codecs cannot take, are sent whole."""

    def __init__(self, codec: CompressionBase) -> None:
        super().__init__(0, less=NoCompression(), greater_equal=codec)

    def choose_compression(self, info: CompressionInfo) -> CompressionBase:
        return self.greater_equal if len(info.descriptor.size) else self.less
