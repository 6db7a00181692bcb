"""`skep project export` from the terminal's side: which checkpoint, and the process that writes the model's folder.

It must not import the training stack.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

from skep.adapters.process.programs import module_command
from skep.core.errors import BadInput, SkepError
from skep.core.project.manifest import Manifest
from skep.core.text import Text, from_data
from skep.host.server.folder import HostFolder

SECONDS: Final = 600.0
SUFFIX: Final = ".safetensors"


def newest_checkpoint(folder: HostFolder, manifest: Manifest) -> Path:
    """The newest checkpoint that this home's host wrote of a project. Raises BadInput."""
    kept = folder.checkpoints(manifest.run_id)
    # epochs stand in the names with leading zeros
    newest = max(kept.glob(f"epoch-*{SUFFIX}"), default=None)
    if newest is None:
        raise BadInput(
            Text("command.there_no_checkpoint_home", title=manifest.title),
            Text("command.give_path_one_home_skep"),
        )
    return newest


def export(checkpoint: Path, folder: Path, files: Path | None = None) -> dict[str, Any]:
    """Write the model into `folder`; where, which epoch and of which run.

    `files` is the folder of what the recipe needs beside samples. Raises SkepError.
    """
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(Text("command.there_already_not_empty", folder=str(folder)), Text("command.choose_new_folder"))
    needed = ["--files", str(files)] if files else []
    done = subprocess.run(
        [*module_command("skep.host.export.model_folder"), str(checkpoint), str(folder), *needed],
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    try:
        said: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise SkepError(Text("command.export_ended_unexpectedly"), Text("command.computer_may_have_run_out")) from None
    if "title" in said:
        raise SkepError(from_data(said["title"]), from_data(said["hint"]))
    return said
