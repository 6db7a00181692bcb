"""`skep project export`: a checkpoint as a model folder that transformers loads.

The terminal's side picks the checkpoint and runs this module, `python -m skep.host.export`, as a separate process,
which builds the model and prints one JSON line: what was written, or a problem. It does not use the network: the model
is built from skep's own fields. The folder is created atomically.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, Final

from skep.adapters.process.programs import module_command
from skep.adapters.storage.files import os_errors
from skep.core.errors import BadInput, SkepError, StorageError
from skep.core.project.manifest import Manifest
from skep.core.text import NOTHING, Text, as_data, from_data
from skep.host.server.folder import HostFolder
from skep.host.server.project_files import find_files
from skep.recipes.registry import open_recipe, parse_manifest
from skep.services.results import Kept

SECONDS: Final = 600.0
SUFFIX: Final = ".safetensors"


def newest_checkpoint(folder: HostFolder, manifest: Manifest, own: Kept | None = None) -> Path:
    """The newest of the checkpoints that this home's host wrote of a project, and its worker's `own`. Raises BadInput."""
    written = folder.checkpoints(manifest.run_id).glob(f"epoch-*{SUFFIX}")
    # the names contain epochs with leading zeros
    newest = max([*written, *([own.path] if own else [])], key=lambda path: path.name, default=None)
    if newest is None:
        raise BadInput(
            Text("command.there_no_checkpoint_home", title=manifest.title),
            Text("command.give_path_one_home_skep"),
        )
    return newest


def export(checkpoint: Path, folder: Path, files: Path | None = None, pack: Path | None = None) -> dict[str, Any]:
    """Write the model into `folder`; where, which epoch and of which run.

    `files` is the folder of what the recipe needs beside samples, `pack` that of the compute pack to use. Raises
    SkepError.
    """
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(Text("command.there_already_not_empty", folder=str(folder)), Text("command.choose_new_folder"))
    needed = ["--files", str(files)] if files else []
    done = subprocess.run(
        [*module_command("skep.host.export", pack), str(checkpoint), str(folder), *needed],
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


# --- the process


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("checkpoint", type=Path)
    made.add_argument("folder", type=Path)
    made.add_argument("--files", type=Path)
    arguments = made.parse_args()
    try:
        said = write_model(arguments.checkpoint, arguments.folder, arguments.files)
    except SkepError as error:
        said = {"title": as_data(error.title), "hint": as_data(error.hint)}
    except Exception as error:  # noqa: BLE001 - the last resort; the terminal's side shows the sentence
        traceback.print_exc()
        unforeseen = Text("model_folder.not_exported", error=type(error).__name__)
        said = {"title": as_data(unforeseen), "hint": as_data(NOTHING)}
    print(json.dumps(said))  # noqa: T201 - the protocol
    sys.exit(1 if "title" in said else 0)


def write_model(source: Path, folder: Path, files: Path | None) -> dict[str, Any]:
    """Write the model of the checkpoint `source` into `folder`, which must not be there yet or be empty.

    `files` as in `export`. Raises SkepError.
    """
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    from skep.worker.swarm.state.checkpoints import read  # noqa: PLC0415 - torch takes seconds

    checkpoint = read(source)
    model = _model(checkpoint, files)
    with os_errors(
        Text("model_folder.model_cannot_written", folder=str(folder)), Text("model_folder.choose_another_folder")
    ):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
            written = Path(temporary) / "model"
            model.save_pretrained(written)
            written.rename(folder)  # fails unless the target is missing or an empty folder
    return {"folder": str(folder), "epoch": checkpoint.epoch, "run_id": checkpoint.run_id}


def _model(checkpoint: Any, files: Path | None) -> Any:
    """The recipe's model with the checkpoint's parameters; adapters are merged into their base."""
    import torch  # noqa: PLC0415 - as above

    recipe = parse_manifest(checkpoint.manifest.encode()).recipe
    opened = open_recipe(recipe, find_files(recipe, files))
    model = opened.build()
    trained = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
    if {name: tensor.shape for name, tensor in trained.items()} != {
        name: tensor.shape for name, tensor in checkpoint.parameters.items()
    }:
        raise StorageError(
            Text("model_folder.checkpoint_does_not_fit_model"), Text("model_folder.try_another_checkpoint")
        )
    with torch.no_grad():
        for name, tensor in trained.items():
            tensor.copy_(checkpoint.parameters[name])
    return opened.for_export(model)


if __name__ == "__main__":
    main()
