"""A published project as a script takes part in it: its manifest, verified, and its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import torch

from skep.adapters.net.catalogue import current, fetch_over_web
from skep.core.project.manifest import Manifest
from skep.core.text import Text
from skep.recipes.registry import open_recipe
from skep.training.words import in_words, refused


def build_model(project: str | Path) -> torch.nn.Module:
    """The model of a project, as all its peers begin with it: float32, on the CPU, from the recipe's seed.

    `project` is the path or address of a signed manifest, or a join link. Raises TrainingError.
    """
    with in_words():
        return open_recipe(manifest_of(project).recipe).build()


def manifest_of(project: str | Path) -> Manifest:
    """The manifest, its signature, publisher and expiry checked. Raises BadInput for one that scripts cannot join."""
    _, found = current(str(project), fetch_over_web, datetime.now(UTC))
    manifest = found.manifest
    if manifest.by_invitation:
        raise refused(Text("script.project_by_invitation", title=manifest.title), Text("script.join_it_with_app"))
    if manifest.begins_signed:
        raise refused(Text("script.project_begins_signed", title=manifest.title), Text("script.join_it_with_app"))
    if manifest.recipe.files:
        raise refused(Text("script.project_needs_files", title=manifest.title), Text("script.join_it_with_app"))
    return manifest


def check_model(manifest: Manifest, parameters: Sequence[torch.nn.Parameter]) -> None:
    """Raise BadInput unless these are the tensors that the project trains."""
    if Counter(tuple(each.shape) for each in parameters) != manifest.recipe.trained:
        raise refused(Text("script.not_model_of_project", title=manifest.title), Text("script.build_model_of_project"))
