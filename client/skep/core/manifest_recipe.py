"""The recipe of a manifest: its fields for every recipe and kind of model, and what must hold between them. Pure."""

from __future__ import annotations

from typing import Final

from skep.core.manifest_fields import (
    HASH,
    Choice,
    Field,
    FieldError,
    Flag,
    Number,
    Object,
    Several,
    Tokenizer,
    Variant,
    WebAddress,
    Whole,
)
from skep.core.recipe_types import (
    BYTE_VOCABULARY,
    Adapters,
    AlbertShape,
    BaseFile,
    CausalRecipe,
    Gpt2Base,
    HashedFile,
    ImageRecipe,
    LlamaBase,
    LoraRecipe,
    MaskedRecipe,
    ModelShape,
    Recipe,
    VisionShape,
)

GPT2_TARGETS: Final = ("c_attn", "c_proj", "c_fc")
LLAMA_TARGETS: Final = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

_SIZES: Final[dict[str, Field]] = {"layers": Whole(1, 128), "heads": Whole(1, 256), "width": Whole(8, 16384)}
_TEXT: Final[dict[str, Field]] = {**_SIZES, "vocabulary": Whole(2, 1_000_000)}
_SEED: Final = Whole(0, 2**32 - 1)
_SAMPLES: Final[dict[str, Field]] = {
    "sequence_length": Whole(8, 32768),
    "tokenizer": Tokenizer({"url": WebAddress(), "sha256": HASH}, HashedFile),
    "seed": _SEED,
}

RECIPE: Final = Variant(
    "name",
    {
        "causal-lm": Object(
            CausalRecipe,
            {
                "model": Variant("type", {"gpt2": Object(ModelShape, _TEXT), "llama": Object(ModelShape, _TEXT)}),
                **_SAMPLES,
            },
        ),
        "masked-lm": Object(
            MaskedRecipe,
            {
                "model": Variant(
                    "type",
                    {
                        "albert": Object(AlbertShape, {**_TEXT, "embedding_width": Whole(8, 16384)}),
                        "bert": Object(ModelShape, _TEXT),
                    },
                ),
                **_SAMPLES,
            },
        ),
        "image-classifier": Object(
            ImageRecipe,
            {
                "model": Variant(
                    "type",
                    {
                        "vit": Object(
                            VisionShape,
                            {
                                **_SIZES,
                                "image_size": Whole(8, 1024),
                                "patch_size": Whole(2, 64),
                                "channels": Whole(1, 4),
                                "classes": Whole(2, 100_000),
                            },
                        )
                    },
                ),
                "seed": _SEED,
            },
        ),
        "lora": Object(
            LoraRecipe,
            {
                "model": Variant(
                    "type",
                    {
                        "gpt2": Object(Gpt2Base, {**_TEXT, "positions": Whole(8, 1_000_000)}),
                        "llama": Object(
                            LlamaBase,
                            {
                                **_TEXT,
                                "key_value_heads": Whole(1, 256),
                                "feed_forward": Whole(8, 131_072),
                                "rope_base": Number(1, 1e9),
                                "norm_epsilon": Number(0, 0.01, above=True),
                                "tied_embeddings": Flag(),
                            },
                        ),
                    },
                ),
                "base": Object(BaseFile, {"url": WebAddress(), "sha256": HASH, "bytes": Whole(1, 2**40)}),
                "adapters": Object(
                    Adapters,
                    {
                        "rank": Whole(1, 1024),
                        "alpha": Whole(1, 65536),
                        "targets": Several(Choice((*GPT2_TARGETS, *LLAMA_TARGETS)), 1, len(LLAMA_TARGETS)),
                    },
                ),
                **_SAMPLES,
            },
        ),
    },
)


def check_recipe(recipe: Recipe) -> None:
    """Raise FieldError for a model that cannot be built, or not be trained on such samples."""
    shape = recipe.model
    if shape.width % shape.heads:
        raise FieldError("recipe.model.width", "must be a multiple of heads")
    if shape.type == "llama" and shape.width // shape.heads % 2:
        raise FieldError("recipe.model.width", "must be an even multiple of heads for llama")
    if isinstance(recipe, ImageRecipe):
        _check_patches(recipe.model)
    else:
        _check_tokens(recipe)
    if isinstance(recipe, LoraRecipe):
        _check_base(recipe)


def _check_patches(shape: VisionShape) -> None:
    if shape.image_size % shape.patch_size:
        raise FieldError("recipe.model.image_size", "must be a multiple of patch_size")


def _check_tokens(recipe: CausalRecipe) -> None:
    # where tokens are hidden, one more value says so
    expected = BYTE_VOCABULARY + isinstance(recipe, MaskedRecipe)
    if isinstance(recipe.tokenizer, str) and recipe.model.vocabulary != expected:
        raise FieldError("recipe.model.vocabulary", f"must be {expected} with the tokenizer bytes")


def _check_base(recipe: LoraRecipe) -> None:
    shape, targets = recipe.model, recipe.adapters.targets
    known = LLAMA_TARGETS if shape.type == "llama" else GPT2_TARGETS
    if other := [target for target in targets if target not in known]:
        raise FieldError("recipe.adapters.targets", f'has "{other[0]}", which {shape.type} has not')
    if len(set(targets)) < len(targets):
        raise FieldError("recipe.adapters.targets", "names a target twice")
    if isinstance(shape, Gpt2Base) and recipe.sequence_length > shape.positions:
        raise FieldError("recipe.sequence_length", "must not be above the base's positions")
    if isinstance(shape, LlamaBase) and shape.heads % shape.key_value_heads:
        raise FieldError("recipe.model.key_value_heads", "must divide heads")
