"""The files a recipe needs beside samples, found in a folder of the operator's. It must not download any."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

from skep.core.errors import BadInput
from skep.core.project.data import FileRef
from skep.core.project.recipe import Recipe
from skep.core.text import Text


def find_files(recipe: Recipe, folder: Path | None) -> dict[str, Path]:
    """Where each file of the recipe lies in `folder`, under the name it has in its address, by what it is called.

    Raises BadInput for the first that is missing or another one.
    """
    return {wanted.name: _found(wanted, folder) for wanted in recipe.files}


def _found(wanted: FileRef, folder: Path | None) -> Path:
    name = Path(urlsplit(wanted.address).path).name or wanted.sha256
    if folder is None:
        raise BadInput(
            Text("recipe_files.project_needed_build_model", name=wanted.name),
            Text("recipe_files.give_folder_holds", name=name),
        )
    path = folder / name
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(
            Text(
                "recipe_files.project_cannot_read_from",
                name=wanted.name,
                path=str(path),
                reason=str(error.strerror or error),
            ),
            Text("recipe_files.download_from_address_manifest_into"),
        ) from None
    if digest != wanted.sha256:
        raise BadInput(
            Text("recipe_files.not_file_manifest_names", path=str(path)),
            Text("recipe_files.download_again_from_address_manifest"),
        )
    return path
