"""Every recipe: the same model on every computer, a loss that falls, batches that can be split, checks of files."""

import subprocess
import sys

import pytest
import torch
from safetensors.torch import save

from english import in_english, raises
from manifests import example, images, masked
from recipe_files import (
    lora_recipe,
    pattern_text,
    plain_images,
    published,
    recipe_of,
    tokenizer,
    weights,
)
from skep.core.errors import DataError
from skep.recipes.registry import RECIPES, open_recipe
from skep.recipes.tensors.batches import Batch, text_batch

CAUSAL = example()["recipe"] | {
    "model": {"type": "llama", "layers": 2, "heads": 2, "width": 16, "vocabulary": 256},
    "sequence_length": 32,
}
FILES = {"url": "https://example.org/tokenizer.json", "sha256": "c" * 64}


def opened(kind, folder, **changes):
    match kind:
        case "causal-lm":
            body, files = CAUSAL, {}
        case "image-classifier":
            body, files = images(), {}
        case "bert" | "albert":
            body, files = masked(kind), {}
        case "lora-gpt2":
            body, files = lora_recipe(folder, "gpt2", ["c_attn", "c_proj", "c_fc"])
        case _:
            body, files = lora_recipe(folder, targets=["q_proj", "v_proj", "o_proj", "down_proj"])
    recipe = recipe_of(body | changes)
    return open_recipe(recipe, files), recipe


KINDS = ["causal-lm", "bert", "albert", "image-classifier", "lora", "lora-gpt2"]


def learnable(recipe, count, seed=0):
    if recipe.name == "image-classifier":
        made = plain_images(count, recipe.layout, seed)
        return Batch(made["pixels"], torch.arange(count), made["labels"].long())
    return text_batch(pattern_text(count, recipe.sequence_length, seed).long())


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_model_whatever_happened_before(kind, tmp_path):
    recipe, _ = opened(kind, tmp_path)
    first = recipe.build().state_dict()
    torch.manual_seed(12345)
    again = recipe.build().state_dict()
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.items())
    other = opened(kind, tmp_path, seed=1)[0].build()
    trained = [name for name, parameter in other.named_parameters() if parameter.requires_grad]
    assert any(not torch.equal(first[name], other.state_dict()[name]) for name in trained)


@pytest.mark.parametrize("kind", KINDS)
def test_in_training_there_is_no_chance_and_every_trained_parameter_gets_a_gradient(kind, tmp_path):
    recipe, _ = opened(kind, tmp_path)
    model = recipe.build().train()
    batch = recipe.example(4)
    first, again = (recipe.loss(model, batch) for _ in range(2))
    assert torch.equal(first, again)
    first.backward()
    for name, parameter in model.named_parameters():
        assert parameter.requires_grad is (parameter.grad is not None), name
        assert parameter.dtype is torch.float32


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_gives_the_same_gradients_however_it_is_cut(kind, tmp_path):
    recipe, plan = opened(kind, tmp_path)
    batch = learnable(plan, 6)
    found = []
    for sizes in (6, 4, 1):
        model = recipe.build()
        for part in batch.split(sizes):
            (recipe.loss(model, part) * len(part) / 6).backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.requires_grad]))
    assert found[0].abs().max() > 0
    torch.testing.assert_close(found[1], found[0], atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(found[2], found[0], atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_falls_on_what_can_be_learnt(kind, tmp_path):
    recipe, plan = opened(kind, tmp_path)
    model = recipe.build()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-2)
    fresh = learnable(plan, 64, seed=99)
    with torch.no_grad():
        before = float(recipe.loss(model, fresh))
    for step in range(60):
        recipe.loss(model, learnable(plan, 32, seed=step)).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        # adapters on an untrained base reach less
        assert float(recipe.loss(model, fresh)) < before - (0.1 if plan.name == "lora" else 0.3)


# --- masked-lm


@pytest.fixture
def hiding():
    return opened("bert", None)[0]


def test_a_fixed_share_of_every_sample_is_chosen_and_mostly_hidden(hiding):
    tokens = torch.randint(256, (500, 32))
    shown, labels = hiding.hide(text_batch(tokens))
    chosen = labels != -100
    assert chosen.sum(dim=1).unique().tolist() == [5]
    assert torch.equal(labels[chosen], tokens[chosen])
    assert torch.equal(shown[~chosen], tokens[~chosen])
    hidden, same = (shown == 256) & chosen, (shown == tokens) & chosen
    assert hidden.sum() / chosen.sum() == pytest.approx(0.8, abs=0.03)
    assert same.sum() / chosen.sum() == pytest.approx(0.1, abs=0.03)
    # all positions are chosen about equally often
    assert 40 < chosen.sum(dim=0).min() <= chosen.sum(dim=0).max() < 120


def test_what_is_hidden_depends_on_the_number_of_the_sample_and_the_seed_alone(hiding):
    tokens = torch.randint(256, (8, 32))
    batch = text_batch(tokens)
    whole, parts = hiding.hide(batch), [hiding.hide(part) for part in batch.split(3)]
    assert torch.equal(whole[0], torch.cat([shown for shown, _ in parts]))
    next_pass = hiding.hide(Batch(tokens, batch.draws + 1_000_000))
    assert not torch.equal(whole[0], next_pass[0])
    assert not torch.equal(whole[0], opened("bert", None, seed=1)[0].hide(batch)[0])


def test_what_is_hidden_is_the_same_on_every_computer(hiding):
    """The positions for three samples, recorded once."""
    _, labels = hiding.hide(text_batch(torch.zeros(3, 32, dtype=torch.int64)))
    places = [row.nonzero().flatten().tolist() for row in labels != -100]
    assert places == PLACES


PLACES = [[6, 12, 13, 20, 27], [3, 13, 20, 22, 26], [7, 11, 17, 23, 30]]


def test_the_shortest_sample_has_one_token_to_predict():
    recipe, _ = opened("bert", None, sequence_length=8)
    _, labels = recipe.hide(recipe.example(20))
    assert (labels != -100).sum(dim=1).unique().tolist() == [1]


def test_the_mask_token_comes_from_the_tokenizer(tmp_path):
    body = masked(vocabulary=4) | {"tokenizer": FILES}
    recipe = open_recipe(recipe_of(body), {"tokenizer": tokenizer(tmp_path, ("x", "y", "z", "[MASK]"))})
    shown, labels = recipe.hide(text_batch(torch.zeros(50, 32, dtype=torch.int64)))
    assert (shown[labels != -100] == 3).sum() > 150


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("[MASK]", "a", "b", "c", "d"), "The project's tokenizer has 5 tokens, and the model has 4."),
        (("a", "b"), "The project's tokenizer has no token [MASK] or <mask>, which masked-lm needs."),
    ],
)
def test_a_tokenizer_that_does_not_fit_the_model_is_one_sentence(tmp_path, words, said):
    body = masked(vocabulary=4) | {"tokenizer": FILES}
    with pytest.raises(DataError) as refused:
        open_recipe(recipe_of(body), {"tokenizer": tokenizer(tmp_path, words)})
    assert in_english(refused.value.title) == said


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b'{"model": 3}'])
def test_a_file_that_is_no_tokenizer_is_one_sentence(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    body = masked(vocabulary=4) | {"tokenizer": FILES}
    with raises(DataError, match=r"The tokenizer cannot be read: .*\.$"):
        open_recipe(recipe_of(body), {"tokenizer": path})


# --- lora


@pytest.mark.parametrize(("kind", "targets"), [("llama", ["q_proj"]), ("gpt2", ["c_attn"])])
def test_before_training_the_adapted_model_says_what_its_base_says(kind, targets, tmp_path):
    body, files = lora_recipe(tmp_path, kind, targets)
    model = open_recipe(recipe_of(body), files).build()
    tokens = torch.randint(256, (2, 32))
    with torch.no_grad():
        torch.testing.assert_close(model(tokens).logits, published(kind)(tokens).logits, atol=1e-5, rtol=1e-4)


def test_training_leaves_the_base_as_it_was(tmp_path):
    recipe, plan = opened("lora", tmp_path)
    model = recipe.build()
    base = {name: p.clone() for name, p in model.named_parameters() if not p.requires_grad}
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.1)
    recipe.loss(model, learnable(plan, 4)).backward()
    optimizer.step()
    assert base
    for name, parameter in model.named_parameters():
        assert name not in base or torch.equal(parameter, base[name])


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_weights_published_in_half_precision_are_taken(tmp_path, kind):
    model = published().to(kind)
    body, files = lora_recipe(tmp_path, content=weights(model))
    built = open_recipe(recipe_of(body), files).build().state_dict()
    assert torch.equal(built["model.norm.weight"], model.model.norm.weight.float())


def test_a_base_with_output_embeddings_of_its_own_is_taken(tmp_path):
    body, files = lora_recipe(tmp_path, tied_embeddings=False)
    model = open_recipe(recipe_of(body), files).build()
    assert not torch.equal(model.lm_head.weight, model.model.embed_tokens.weight)


NORM = "model.norm.weight"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"nonsense", "they are not a safetensors file"),
        (weights(published())[:-1], "they are not a safetensors file"),
        (weights(published(), **{NORM: None}), f"{NORM} is missing"),
        (weights(published(), extra=torch.ones(1)), "extra is not a tensor of this model"),
        (weights(published(), **{NORM: torch.ones(8)}), f"{NORM} has the shape 8, and the model needs 16"),
        (weights(published(), **{NORM: torch.ones(16).double()}), f"{NORM} is F64, not one of F32, F16, BF16"),
        (weights(published(), **{NORM: torch.full((16,), torch.nan)}), f"{NORM} has values that are not finite"),
        (weights(published("gpt2")), "model.embed_tokens.weight is missing"),
        (save({}), "model.embed_tokens.weight is missing"),
    ],
)
def test_base_weights_that_do_not_fit_the_model_are_one_sentence(tmp_path, content, said):
    body, files = lora_recipe(tmp_path, content=content)
    with pytest.raises(DataError) as refused:
        open_recipe(recipe_of(body), files).build()
    assert in_english(refused.value.title) == f"The project's base weights cannot be used: {said}."
    assert in_english(refused.value.hint)


def test_base_weights_that_cannot_be_opened_are_one_sentence(tmp_path):
    body, files = lora_recipe(tmp_path)
    files["base weights"].unlink()
    with raises(DataError, match="The project's base weights cannot be read"):
        open_recipe(recipe_of(body), files).build()


STACK = ("torch", "transformers", "peft", "tokenizers", "safetensors", "hivemind", "numpy")


def imported(code, names):
    """The modules of `names` that `code` imports, in a separate process."""
    code = f"import sys\n{code}\nprint(*sorted({set(names)} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return said.stdout.split()


def test_reading_a_manifest_loads_nothing_of_the_training_stack():
    """The import contract cannot check this: the recipes' files import torch, but only inside functions."""
    assert imported("import skep.recipes.registry", STACK) == []


def test_only_the_recipe_that_needs_peft_imports_it():
    code = (
        "import skep.worker.joining; from skep.recipes.registry import RECIPES, open_recipe\n"
        "open_recipe(RECIPES['causal-lm'].smallest[0]).build()"
    )
    assert imported(code, ["peft"]) == []


OPENINGS = """
import os, sys
import torch, transformers.activations  # for all the processes forked below; no model is in them
from skep.recipes.registry import RECIPES, open_recipe

assert not [name for name in sys.modules if name.startswith("transformers.models.")]
for recipe in [each for kind in RECIPES.values() for each in kind.smallest]:
    if not os.fork():
        opened = open_recipe(recipe)
        before = set(sys.modules)
        opened.build()
        late = sorted(name for name in set(sys.modules) - before if ".modeling_" in name)
        print(recipe.name, recipe.model_type, *late, flush=True)
        os._exit(0)
    os.wait()
"""


def test_opening_a_recipe_imports_what_its_model_needs():
    """A join opens it while the network starts; a later import would delay the join."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", OPENINGS], capture_output=True, text=True, check=True)
    opened = [f"{recipe.name} {recipe.model_type}" for kind in RECIPES.values() for recipe in kind.smallest]
    assert done.stdout.splitlines() == opened, done.stderr
