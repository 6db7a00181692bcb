import importlib.util
import json
import re
from pathlib import Path

import pytest

from manifests import images, lora, masked, raw
from skep.core.project.manifest import PROTOCOL
from skep.recipes.registry import parse_manifest

ROOT = Path(__file__).parents[3]
MANUAL = (ROOT / "docs" / "manifest.md").read_text()
AUTHORS = (ROOT / "docs" / "for-project-authors.md").read_text()
EXAMPLES = re.findall(r'^    ("recipe": \{.*?\})$\n\n', AUTHORS, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("manifest_reference", ROOT / "assets" / "manifest_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_example_of_a_recipe_is_one(text):
    whole = text.replace("https://…", "https://example.org").replace("…", "c" * 64)
    assert parse_manifest(raw(recipe=json.loads(f"{{{whole}}}")["recipe"]))


def test_every_recipe_that_has_fields_of_its_own_has_an_example():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"recipe": lora(), "optimizer__weight_decay": 0},
        {"recipe": lora("gpt2", ["c_attn"])},
        {"recipe": masked("albert"), "schedule__kind": "constant"},
        {"recipe": images(), "sync__grad_compression": "size-adaptive", "optimizer__learning_rate": 1.0},
        {"sync__powersgd": {"rank": 4, "min_compression_ratio": 0.5}},
    ],
)
def test_the_documented_derivation_gives_the_run_id(changes):
    (code,) = re.findall(r"^```python$\n(.*?)^```$", MANUAL, flags=re.MULTILINE | re.DOTALL)
    documented = {}
    exec(code, documented)
    manifest, body = parse_manifest(raw(**changes)), json.loads(raw(**changes))
    assert documented["run_id"](body) == documented["run_id"](body, PROTOCOL) == manifest.run_id
    assert documented["run_id"](body, PROTOCOL + 1) == manifest.run_id_of(PROTOCOL + 1) != manifest.run_id


def test_the_reference_is_what_is_declared(reference):
    page = reference.PAGE.read_text()
    assert reference.page(page) == page, "run `make docs`"


def test_a_field_without_a_meaning_is_named(reference, monkeypatch):
    sections = dict(reference.SECTIONS)
    sections["Data and needs"] = {k: v for k, v in sections["Data and needs"].items() if k != "needs.disk_gb"}
    monkeypatch.setattr(reference, "SECTIONS", sections)
    with pytest.raises(ValueError, match=r"needs\.disk_gb"):
        reference.tables()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("recipe.model.layers", ""),
        ("recipe.model.embedding_width", "Only with `albert` in `masked-lm`: "),
        ("recipe.tokenizer", "Only with `causal-lm`, `masked-lm`, `lora`: "),
        ("sync.mode", ""),
    ],
)
def test_a_row_says_which_recipes_have_the_field(reference, path, words):
    assert reference.Reference().only(path) == words
