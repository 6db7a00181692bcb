"""All recipes by their names in manifests. To add one, add its file to this package and its line to RECIPES."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from skep.core.project import manifest
from skep.core.project.data import Recipe
from skep.core.project.fields import variant
from skep.core.project.manifest import Manifest
from skep.recipes.contract import NO_FILES, Files, OpenRecipe, RecipeKind


def _kind(module: str) -> RecipeKind:
    kind: RecipeKind = import_module(f"skep.recipes.{module}").KIND
    return kind


RECIPES: Final[dict[str, RecipeKind]] = {
    "causal-lm": _kind("causal_lm"),
    "masked-lm": _kind("masked_lm"),
    "image-classifier": _kind("image_classifier"),
    "lora": _kind("lora"),
}
FIELD: Final = variant("name", {name: kind.recipe for name, kind in RECIPES.items()})


def parse_manifest(raw: bytes) -> Manifest:
    """The manifest in `raw`, every field checked. Raises ManifestError with a sentence that names the field."""
    return manifest.parse(raw, FIELD)


def open_recipe(recipe: Recipe, files: Files = NO_FILES) -> OpenRecipe:
    """The recipe, ready to build its model, its libraries imported. Raises DataError for a file that does not fit."""
    import_libraries(recipe)
    return RECIPES[recipe.name].open(recipe, files)


def import_libraries(recipe: Recipe) -> None:
    """Import what opening the recipe needs, which takes seconds."""
    for library in RECIPES[recipe.name].libraries:
        import_module(library)
