"""Counts computed by hand: embeddings, each layer, and the rest; test_fit_matches_model.py uses the real models."""

from typing import NamedTuple

import pytest

from manifests import images, lora, masked, raw
from skep.core.project.data import values
from skep.core.project.fit import lone_processor_rate
from skep.recipes.causal_lm import CausalRecipe, ModelShape, llama_intermediate
from skep.recipes.registry import parse_manifest


class Counted(NamedTuple):
    trained: int
    frozen: int


def counted(body):
    recipe = parse_manifest(raw(recipe=body)).recipe
    return Counted(values(recipe.trained), values(recipe.frozen))


def layer(w):
    return (4 * w * w + 4 * w) + (8 * w * w + 5 * w) + 4 * w


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("gpt2", (3 + 4) * 2 + layer(2) + 2 * 2),
        ("llama", 3 * 2 + (4 * 4 + 3 * 2 * 64 + 2 * 2) + 2),
    ],
)
def test_a_model_that_predicts_the_next_token(kind, count):
    recipe = CausalRecipe("causal-lm", ModelShape(kind, layers=1, heads=1, width=2, vocabulary=3), 4, "bytes", 0)
    assert (values(recipe.trained), values(recipe.frozen)) == (count, 0)


def test_a_model_that_predicts_hidden_tokens():
    w, v, positions = 16, 257, 32
    head = w * w + w + 2 * w + v
    assert counted(masked(layers=3)).trained == (v + positions + 1) * w + 2 * w + 3 * layer(w) + head
    e = 8
    narrow = (v + positions + 1) * e + 2 * e + (e * w + w)
    # one shared layer for all uses
    assert counted(masked("albert", layers=3)).trained == narrow + layer(w) + (w * e + e + 2 * e + v)


def test_a_model_of_images():
    w, patches = 16, 4
    assert counted(images()).trained == (patches + 2) * w + (3 * 16 * w + w) + 2 * layer(w) + 2 * w + w * 4 + 4


def test_adapters_are_trained_and_their_base_is_not():
    w, narrow, inner = 16, 8, 48
    one = 2 * w * w + 2 * w * narrow + 3 * w * inner + 2 * w
    tied = Counted(trained=2 * 8 * (2 * w + w + narrow), frozen=256 * w + 2 * one + w)
    assert counted(lora(key_value_heads=1)) == tied
    assert counted(lora(key_value_heads=1, tied_embeddings=False)).frozen == tied.frozen + 256 * w
    everywhere = counted(lora(targets=["gate_proj", "up_proj", "down_proj", "k_proj", "o_proj"], key_value_heads=1))
    assert everywhere.trained == 2 * 8 * (3 * (w + inner) + w + narrow + 2 * w)


def test_adapters_on_gpt2():
    w = 16
    made = counted(lora("gpt2", ["c_attn", "c_proj", "c_fc"]))
    assert made.trained == 2 * 8 * (4 * w + 2 * w + 5 * w + 5 * w)
    assert made.frozen == (256 + 64) * w + 2 * layer(w) + 2 * w


@pytest.mark.parametrize(("width", "inner"), [(96, 256), (128, 384), (192, 512), (256, 704)])
def test_the_feed_forward_width_of_llama(width, inner):
    assert llama_intermediate(width) == inner


def test_a_patch_costs_what_a_token_costs_and_a_frozen_parameter_less_than_a_trained_one():
    pictures = parse_manifest(raw(recipe=images()))
    assert lone_processor_rate(pictures) == pytest.approx(50e9 / (6 * counted(images()).trained * 4))
    made = counted(lora())
    flops = 6 * made.trained + 4 * made.frozen
    assert lone_processor_rate(parse_manifest(raw(recipe=lora()))) == pytest.approx(50e9 / (flops * 32))
