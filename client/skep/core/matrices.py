"""The shapes of what a recipe trains, known without building it; a test compares with the models themselves. Pure.

A shape is rows and columns as an all-reduce sees a tensor: of one with more dimensions the first, and all the others
together. w is the width, v the vocabulary. Vectors are left out: nothing depends on their lengths.
"""

from __future__ import annotations

from skep.core.parameters import adapter_sides, llama_intermediate, patches
from skep.core.recipe_types import AlbertShape, ImageRecipe, LoraRecipe, ModelShape, Recipe, VisionShape
from skep.core.traffic import Tensors


def trained_matrices(recipe: Recipe) -> tuple[Tensors, ...]:
    """Each shape, and how many there are of it."""
    if isinstance(recipe, ImageRecipe):
        return _vit(recipe.model)
    if isinstance(recipe, LoraRecipe):
        return _adapters(recipe)
    return _from_nothing(recipe.model, recipe.sequence_length)


def _from_nothing(shape: ModelShape, positions: int) -> tuple[Tensors, ...]:
    w, v, layers = shape.width, shape.vocabulary, shape.layers
    match shape.type:
        case "llama":
            return ((v, w), 1), ((w, w), 4 * layers), ((llama_intermediate(w), w), 3 * layers)
        case "bert":
            return ((v, w), 1), ((positions, w), 1), ((1, w), 1), *_layers(w, layers), ((w, w), 1)
        case "albert":
            assert isinstance(shape, AlbertShape)
            e = shape.embedding_width
            return ((v, e), 1), ((positions, e), 1), ((1, e), 1), ((w, e), 1), *_layers(w, 1), ((e, w), 1)
        case _:
            layer = ((w, 3 * w), layers), ((w, w), layers), ((w, 4 * w), 2 * layers)
            return ((v, w), 1), ((positions, w), 1), *layer


def _layers(w: int, count: int) -> tuple[Tensors, ...]:
    return ((w, w), 4 * count), ((4 * w, w), 2 * count)


def _vit(shape: VisionShape) -> tuple[Tensors, ...]:
    w = shape.width
    patch = (w, shape.channels * shape.patch_size**2), 1
    places = (1, (patches(shape) + 1) * w), 1
    return ((1, w), 1), places, patch, *_layers(w, shape.layers), ((shape.classes, w), 1)


def _adapters(recipe: LoraRecipe) -> tuple[Tensors, ...]:
    rank, layers = recipe.adapters.rank, recipe.model.layers
    sides = adapter_sides(recipe.model, recipe.adapters)
    return tuple(each for side in sides for each in (((rank, side[0]), layers), ((side[1], rank), layers)))
