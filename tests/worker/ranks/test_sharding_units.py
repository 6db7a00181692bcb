"""Which modules are gathered together."""

import pytest
import torch
from torch import nn

from manifests import images, masked, raw
from recipe_files import lora_recipe
from skep.core.project.data import values
from skep.recipes.registry import open_recipe, parse_manifest
from skep.worker.ranks.sharding_units import TiedEmbedding, TiedHead, separate_heads, units


def built(recipe):
    with torch.device("meta"):
        model = open_recipe(parse_manifest(raw(recipe=recipe)).recipe).build()
    separate_heads(model)
    return model


def names(model):
    known = {module: name for name, module in model.named_modules()}
    return [known[each] for each in units(model)]


CAUSAL = {"name": "causal-lm", "sequence_length": 16, "tokenizer": "bytes", "seed": 0}


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (
            CAUSAL | {"model": {"type": "llama", "layers": 2, "heads": 2, "width": 32, "vocabulary": 256}},
            {"model.embed_tokens", "model.norm", "model.layers.0", "model.layers.1"},
        ),
        (
            CAUSAL | {"model": {"type": "gpt2", "layers": 1, "heads": 2, "width": 32, "vocabulary": 256}},
            {"transformer.wte", "transformer.wpe", "transformer.ln_f", "transformer.h.0"},
        ),
        (
            masked("bert", layers=1),
            {
                "bert.embeddings.word_embeddings",
                "bert.embeddings.position_embeddings",
                "bert.embeddings.token_type_embeddings",
                "bert.embeddings.LayerNorm",
                "bert.encoder.layer.0",
                "cls.predictions",
            },
        ),
        (
            images(layers=1),
            {
                "vit.embeddings",
                "vit.embeddings.patch_embeddings.projection",
                "vit.layers.0",
                "vit.layernorm",
                "classifier",
            },
        ),
    ],
    ids=["llama", "gpt2", "bert", "vit"],
)
def test_each_block_and_each_module_outside_of_them_is_a_unit(recipe, expected):
    assert set(names(built(recipe))) == expected


@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_every_parameter_is_in_one_unit_and_none_is_left_for_the_root(kind):
    model = built(masked(kind, layers=2))
    seen, inside = set(), set()
    for unit in units(model):
        own = set(unit.parameters()) - inside
        assert own
        seen |= own
        inside |= own
    assert seen == set(model.parameters())
    assert model not in units(model)


@pytest.mark.parametrize(
    "recipe",
    [
        *(
            CAUSAL | {"model": {"type": kind, "layers": 2, "heads": 2, "width": width, "vocabulary": 256}, **longer}
            for kind in ("gpt2", "llama")
            for width, longer in ((8, {}), (8, {"sequence_length": 512}), (64, {}))
        ),
        masked("bert"),
        masked("bert", width=64),
        masked("albert"),
        masked("albert", width=64, embedding_width=64),
        images(),
        images(width=8, image_size=128),
        images(classes=1000),
        images(width=8, image_size=64, patch_size=32),
    ],
)
def test_the_largest_unit_is_the_one_that_the_fit_check_counts(recipe):
    model, largest, inside = built(recipe), 0, set()
    for unit in units(model):
        own = set(unit.parameters()) - inside
        inside |= own
        largest = max(largest, sum(each.numel() for each in own))
    assert values(parse_manifest(raw(recipe=recipe)).recipe.largest_part) == largest


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("width", [16, 64])
def test_a_base_with_adapters_too_and_its_weights_are_not_read_for_shards(tmp_path, kind, width):
    recipe, files = lora_recipe(tmp_path, kind, ["v_proj"] if kind == "llama" else ["c_attn"])
    recipe["model"]["width"] = width  # other than in the file
    parsed = parse_manifest(raw(recipe=recipe)).recipe
    with torch.device("meta"):
        model = open_recipe(parsed, files).build()
    separate_heads(model)
    assert values(parsed.largest_part) == max(sum(each.numel() for each in unit.parameters()) for unit in units(model))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head, self.other = nn.Embedding(5, 4), nn.Linear(4, 5), nn.Linear(4, 5, bias=False)
        self.head.weight = self.other.weight = self.words.weight

    def forward(self, words):
        hidden = self.words(words)
        return self.head(hidden) + self.other(hidden)


def test_heads_that_share_an_embeddings_weight_predict_through_it():
    torch.manual_seed(0)
    model, words = Tied(), torch.tensor([[1, 2], [3, 4]])
    before, names_before = model(words), {name for name, _ in model.named_parameters()}
    before.sum().backward()
    gradient = model.words.weight.grad.clone()
    model.zero_grad()
    separate_heads(model)
    assert type(model.words) is TiedEmbedding
    assert {type(model.head), type(model.other)} == {TiedHead}
    assert {name for name, _ in model.named_parameters()} == names_before
    after = model(words)
    after.sum().backward()
    assert torch.allclose(after, before)
    assert torch.allclose(model.words.weight.grad, gradient)


def test_other_modules_that_share_a_parameter_are_one_unit():
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)))
    model[1][2].weight = model[1][0].weight
    separate_heads(model)
    assert set(names(model)) == {"0", "1"}
    model[0].weight = model[1][0].weight
    assert names(model) == [""]


def test_blocks_between_modules_that_share_a_parameter_are_units_of_their_own():
    model = nn.Sequential(nn.Embedding(4, 4), nn.ModuleList([nn.Linear(4, 4)]), nn.Linear(4, 4))
    model[2].weight = model[0].weight
    assert names(model) == ["1.0", ""]
