"""The files a recipe needs beside samples, found in a folder of the operator's. It must not download any."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

from skep.core.errors import BadInput
from skep.core.model import FileRef
from skep.core.recipe_types import Recipe


def find_files(recipe: Recipe, folder: Path | None) -> dict[str, Path]:
    """Where each file of the recipe lies in `folder`, under the name it has in its address, by what it is called.

    Raises BadInput for the first that is missing or another one.
    """
    return {wanted.name: _found(wanted, folder) for wanted in recipe.files}


def _found(wanted: FileRef, folder: Path | None) -> Path:
    name = Path(urlsplit(wanted.address).path).name or wanted.sha256
    if folder is None:
        raise BadInput(
            f"The project's {wanted.name} are needed to build its model.",
            f"Give the folder that holds {name}.",
        )
    path = folder / name
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(
            f"The project's {wanted.name} cannot be read from {path}: {error.strerror or error}.",
            "Download it from the address in the manifest into that folder.",
        ) from None
    if digest != wanted.sha256:
        raise BadInput(
            f"{path} is not the file that the manifest names.",
            "Download it again from the address in the manifest.",
        )
    return path
