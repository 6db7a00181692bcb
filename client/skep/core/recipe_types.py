"""What can be trained, as frozen dataclasses: one class per recipe, and the shapes of models, whitelisted field by field.

`manifest.parse` is the only way from bytes to one; the fields and their bounds are declared in `manifest_recipe`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skep.core.model import FileRef, ImageLayout, TextLayout

BYTES: Final = "bytes"
BYTE_VOCABULARY: Final = 256


@dataclass(frozen=True)
class ModelShape:
    """A transformer over token ids: gpt2, llama or bert."""

    type: str
    layers: int
    heads: int
    width: int
    vocabulary: int


@dataclass(frozen=True)
class AlbertShape(ModelShape):
    """albert: all layers share their parameters, and embeddings are narrower than the layers."""

    embedding_width: int


@dataclass(frozen=True)
class Gpt2Base(ModelShape):
    """A published gpt2 to begin from; `positions` is the longest sample it was built for."""

    positions: int


@dataclass(frozen=True)
class LlamaBase(ModelShape):
    """A published llama to begin from, with the numbers that published ones differ in."""

    key_value_heads: int
    feed_forward: int
    rope_base: float
    norm_epsilon: float
    tied_embeddings: bool


@dataclass(frozen=True)
class VisionShape:
    """vit: a transformer over square patches of square images. `image_size` and `patch_size` in pixels."""

    type: str
    layers: int
    heads: int
    width: int
    image_size: int
    patch_size: int
    channels: int
    classes: int


@dataclass(frozen=True)
class HashedFile:
    """A file on the web, known by its hash."""

    url: str
    sha256: str


@dataclass(frozen=True)
class BaseFile(HashedFile):
    bytes: int


Tokenizer = str | HashedFile
"""BYTES, or a tokenizer.json."""


@dataclass(frozen=True)
class Adapters:
    """Low-rank adapters (LoRA) beside the weights of the `targets`; their product is scaled by `alpha` / `rank`."""

    rank: int
    alpha: int
    targets: tuple[str, ...]


@dataclass(frozen=True)
class CausalRecipe:
    """Predict the next token."""

    name: str
    model: ModelShape
    sequence_length: int
    tokenizer: Tokenizer
    seed: int

    @property
    def layout(self) -> TextLayout:
        """What a shard of this recipe holds; an index may declare a smaller vocabulary."""
        return TextLayout(self.sequence_length, self.model.vocabulary)

    @property
    def files(self) -> tuple[FileRef, ...]:
        """What the recipe cannot be trained without, beside samples."""
        return ()


@dataclass(frozen=True)
class MaskedRecipe(CausalRecipe):
    """Predict hidden tokens."""

    @property
    def files(self) -> tuple[FileRef, ...]:
        """The tokenizer says which token hides another; bytes have one of their own, after the 256 values."""
        if isinstance(self.tokenizer, str):
            return ()
        return (FileRef("tokenizer", self.tokenizer.sha256, 0, self.tokenizer.url),)


@dataclass(frozen=True)
class LoraRecipe(CausalRecipe):
    """Predict the next token with a frozen base, by adapters that alone are trained and averaged."""

    base: BaseFile
    adapters: Adapters

    @property
    def files(self) -> tuple[FileRef, ...]:
        return (FileRef("base weights", self.base.sha256, self.base.bytes, self.base.url),)


@dataclass(frozen=True)
class ImageRecipe:
    """Say which class an image is of."""

    name: str
    model: VisionShape
    seed: int

    @property
    def layout(self) -> ImageLayout:
        return ImageLayout(self.model.channels, self.model.image_size, self.model.classes)

    @property
    def files(self) -> tuple[FileRef, ...]:
        return ()


Recipe = CausalRecipe | MaskedRecipe | LoraRecipe | ImageRecipe
