"""`skep project export` from the terminal's side: which checkpoint, and the process that writes the model's folder.

It must not import the training stack.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

from skep.adapters.programs import module_command
from skep.core.errors import BadInput, SkepError
from skep.core.manifest import Manifest
from skep.host.host_folder import HostFolder

SECONDS: Final = 600.0
SUFFIX: Final = ".safetensors"


def newest_checkpoint(folder: HostFolder, manifest: Manifest) -> Path:
    """The newest checkpoint that this home's host wrote of a project. Raises BadInput."""
    kept = folder.checkpoints(manifest.run_id)
    # epochs stand in the names with leading zeros
    newest = max(kept.glob(f"epoch-*{SUFFIX}"), default=None)
    if newest is None:
        raise BadInput(
            f"There is no checkpoint of {manifest.title} in this home.",
            "Give the path of one, or the --home in which skep host runs.",
        )
    return newest


def export(checkpoint: Path, folder: Path, files: Path | None = None) -> dict[str, Any]:
    """Write the model into `folder`; where, which epoch and of which run.

    `files` is the folder of what the recipe needs beside samples. Raises SkepError.
    """
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there already and not empty.", "Choose a new folder.")
    needed = ["--files", str(files)] if files else []
    done = subprocess.run(
        [*module_command("skep.host.export"), str(checkpoint), str(folder), *needed],
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    try:
        said: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise SkepError(
            "The export ended unexpectedly.", "This computer may have run out of memory; close other programs."
        ) from None
    if "title" in said:
        raise SkepError(said["title"], said["hint"])
    return said
