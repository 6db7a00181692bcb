"""How many parameters a recipe's model has, known without building it; a test compares with the models themselves. Pure.

w is the width, v the vocabulary; feed-forward layers are four times as wide where nothing else is said. Input and
output embeddings are one, unless a base has them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from skep.core.recipe_types import (
    Adapters,
    AlbertShape,
    Gpt2Base,
    ImageRecipe,
    LlamaBase,
    LoraRecipe,
    ModelShape,
    Recipe,
    VisionShape,
)


@dataclass(frozen=True)
class Parameters:
    """`trained` ones are averaged and have gradients and moments; `frozen` ones only lie in memory."""

    trained: int
    frozen: int = 0


def llama_intermediate(width: int) -> int:
    """Width of the feed-forward layer: 8/3 of the width, rounded up to a multiple of 64."""
    return -(-8 * width // (3 * 64)) * 64


def expected_parameters(recipe: Recipe) -> Parameters:
    """Exact numbers of parameters of the model the recipe builds."""
    if isinstance(recipe, ImageRecipe):
        return Parameters(_vit(recipe.model))
    if isinstance(recipe, LoraRecipe):
        return Parameters(_adapters(recipe.model, recipe.adapters), _base(recipe.model))
    return Parameters(_from_nothing(recipe.model, recipe.sequence_length))


def _from_nothing(shape: ModelShape, positions: int) -> int:
    match shape.type:
        case "llama":
            return _llama(shape, shape.heads, llama_intermediate(shape.width))
        case "bert":
            return _bert(shape, positions)
        case "albert":
            assert isinstance(shape, AlbertShape)
            return _albert(shape, positions)
        case _:
            return _gpt2(shape, positions)


def patches(shape: VisionShape) -> int:
    """The patches of one image: what a token is in a text."""
    return (shape.image_size // shape.patch_size) ** 2


def _layer(w: int) -> int:
    """Attention with biases, feed-forward, two norms: gpt2, bert, albert and vit have this in common."""
    attention, feed_forward, norms = 4 * w * w + 4 * w, 8 * w * w + 5 * w, 4 * w
    return attention + feed_forward + norms


def _gpt2(shape: ModelShape, positions: int) -> int:
    w = shape.width
    return (shape.vocabulary + positions) * w + shape.layers * _layer(w) + 2 * w


def _llama(shape: ModelShape, key_value_heads: int, inner: int) -> int:
    w = shape.width
    attention = 2 * w * w + 2 * w * (w // shape.heads * key_value_heads)
    return shape.vocabulary * w + shape.layers * (attention + 3 * w * inner + 2 * w) + w


def _bert(shape: ModelShape, positions: int) -> int:
    w, v = shape.width, shape.vocabulary
    # one kind of token, a norm, and a head: a square layer, a norm, a bias for each token
    return (v + positions + 1) * w + 2 * w + shape.layers * _layer(w) + w * w + w + 2 * w + v


def _albert(shape: AlbertShape, positions: int) -> int:
    w, v, e = shape.width, shape.vocabulary, shape.embedding_width
    return (v + positions + 1) * e + 2 * e + e * w + w + _layer(w) + w * e + e + 2 * e + v


def _vit(shape: VisionShape) -> int:
    w = shape.width
    patch = shape.channels * shape.patch_size**2 * w + w
    # the class has a position of its own, and a vector
    return (patches(shape) + 2) * w + patch + shape.layers * _layer(w) + 2 * w + w * shape.classes + shape.classes


def _base(shape: ModelShape) -> int:
    if isinstance(shape, LlamaBase):
        apart = 0 if shape.tied_embeddings else shape.vocabulary * shape.width
        return _llama(shape, shape.key_value_heads, shape.feed_forward) + apart
    assert isinstance(shape, Gpt2Base)
    return _gpt2(shape, shape.positions)


def _adapters(shape: ModelShape, adapters: Adapters) -> int:
    return shape.layers * adapters.rank * sum(sum(side) for side in adapter_sides(shape, adapters))


def adapter_sides(shape: ModelShape, adapters: Adapters) -> list[tuple[int, int]]:
    """Inputs and outputs of each weight of one layer that gets an adapter."""
    sides = _llama_sides(shape) if isinstance(shape, LlamaBase) else _gpt2_sides(shape.width)
    return [side for target in adapters.targets for side in sides[target]]


def _gpt2_sides(w: int) -> dict[str, list[tuple[int, int]]]:
    # c_proj stands in the attention and in the feed-forward layer
    return {"c_attn": [(w, 3 * w)], "c_proj": [(w, w), (4 * w, w)], "c_fc": [(w, 4 * w)]}


def _llama_sides(shape: LlamaBase) -> dict[str, list[tuple[int, int]]]:
    w, narrow, inner = shape.width, shape.width // shape.heads * shape.key_value_heads, shape.feed_forward
    return {
        "q_proj": [(w, w)],
        "o_proj": [(w, w)],
        "k_proj": [(w, narrow)],
        "v_proj": [(w, narrow)],
        "gate_proj": [(w, inner)],
        "up_proj": [(w, inner)],
        "down_proj": [(inner, w)],
    }
