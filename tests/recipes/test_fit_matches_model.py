from collections import Counter
from pathlib import Path

import pytest
import torch

from manifests import example, images, lora, masked, raw
from skep.recipes.registry import open_recipe, parse_manifest
from skep.recipes.tensors import base_weights


def causal(kind, layers, heads, width, vocabulary, length):
    shape = {"type": kind, "layers": layers, "heads": heads, "width": width, "vocabulary": vocabulary}
    tokenizer = "bytes" if vocabulary == 256 else {"url": "https://example.org/t", "sha256": "c" * 64}
    return example()["recipe"] | {"model": shape, "sequence_length": length, "tokenizer": tokenizer}


ALL_LLAMA = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
BODIES = [
    *(
        causal(kind, *sizes)
        for kind in ("gpt2", "llama")
        for sizes in (
            (1, 1, 8, 256, 8),
            (4, 4, 256, 256, 256),
            (3, 5, 40, 1000, 77),
            (24, 16, 2048, 256, 1024),
        )
    ),
    masked("bert"),
    masked("bert", layers=12, heads=12, width=768),
    masked("albert"),
    masked("albert", layers=12, heads=12, width=768, embedding_width=128),
    images(),
    images(layers=12, heads=12, width=768, image_size=224, patch_size=16, classes=1000),
    images(channels=1, classes=2),
    lora(),
    lora(targets=ALL_LLAMA, layers=3, heads=9, width=576, key_value_heads=3, feed_forward=1536),
    lora(tied_embeddings=False, key_value_heads=1),
    lora("gpt2", ["c_attn"]),
    lora("gpt2", ["c_attn", "c_proj", "c_fc"], layers=12, heads=12, width=768, positions=1024),
]


@pytest.mark.parametrize("body", BODIES)
def test_the_shapes_of_all_tensors_are_known_without_building_the_model(body, monkeypatch):
    recipe = parse_manifest(raw(recipe=body)).recipe
    monkeypatch.setattr(base_weights, "load_base", lambda model, path: None)
    with torch.device("meta"):
        model = open_recipe(recipe, {"base weights": Path("none")}).build()
    built = {False: Counter(), True: Counter()}
    for parameter in model.parameters():
        built[parameter.requires_grad][rows_and_columns(parameter)] += 1
    assert recipe.trained == built[True]
    assert recipe.frozen == built[False]


def rows_and_columns(parameter):
    shape = tuple(parameter.shape)
    return shape if len(shape) == 1 else (shape[0], parameter.numel() // shape[0])
