from collections import Counter
from pathlib import Path

import pytest
import torch

from manifests import example, images, lora, masked, raw
from skep.core.manifest import parse
from skep.core.matrices import trained_matrices
from skep.core.parameters import Parameters, expected_parameters
from skep.worker.recipes import lora as lora_module
from skep.worker.recipes import open_recipe


def causal(kind, layers, heads, width, vocabulary, length):
    shape = {"type": kind, "layers": layers, "heads": heads, "width": width, "vocabulary": vocabulary}
    tokenizer = "bytes" if vocabulary == 256 else {"url": "https://example.org/t", "sha256": "c" * 64}
    return example()["recipe"] | {"model": shape, "sequence_length": length, "tokenizer": tokenizer}


ALL_LLAMA = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
RECIPES = [
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


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_number_of_parameters_is_known_without_building_the_model(recipe, monkeypatch):
    plan = parse(raw(recipe=recipe)).recipe
    monkeypatch.setattr(lora_module, "load_base", lambda model, path: None)
    with torch.device("meta"):
        model = open_recipe(plan, {"base weights": Path("none")}).build()
    counts = {False: 0, True: 0}
    for parameter in model.parameters():
        counts[parameter.requires_grad] += parameter.numel()
    assert expected_parameters(plan) == Parameters(trained=counts[True], frozen=counts[False])
    known = Counter()
    for matrix, times in trained_matrices(plan):
        known[tuple(sorted(matrix))] += times
    assert known == Counter(rows_and_columns(p) for p in model.parameters() if p.requires_grad and p.ndim > 1)


def rows_and_columns(parameter):
    rows = parameter.size(0)
    return tuple(sorted((rows, parameter.numel() // rows)))
