"""Entry of the process that exports a checkpoint, `python -m skep.host.export.model_folder`: a model folder that transformers loads.

Prints one JSON line, what was written or a problem. It must not reach a network: the model is built from skep's own
fields, and the folder is there whole or not at all.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from skep.core.errors import SkepError, StorageError
from skep.core.text import NOTHING, Text, as_data
from skep.host.recipe_files import find_files
from skep.recipes.registry import open_recipe, parse_manifest


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("checkpoint", type=Path)
    made.add_argument("folder", type=Path)
    made.add_argument("--files", type=Path)
    arguments = made.parse_args()
    try:
        said = export(arguments.checkpoint, arguments.folder, arguments.files)
    except SkepError as error:
        said = {"title": as_data(error.title), "hint": as_data(error.hint)}
    except Exception as error:  # noqa: BLE001 - the last resort; whoever started us shows the sentence
        traceback.print_exc()
        said = {
            "title": as_data(Text("model_folder.not_exported", error=type(error).__name__)),
            "hint": as_data(NOTHING),
        }
    print(json.dumps(said))  # noqa: T201 - the protocol
    sys.exit(1 if "title" in said else 0)


def export(source: Path, folder: Path, files: Path | None = None) -> dict[str, Any]:
    """Write the model of a checkpoint into `folder`, which must not be there yet or be empty.

    `files` is the folder of what its recipe needs beside samples. Raises SkepError.
    """
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    from skep.host.server.checkpoints import read  # noqa: PLC0415 - torch takes seconds

    checkpoint = read(source)
    model = _model(checkpoint, files)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
            written = Path(temporary) / "model"
            model.save_pretrained(written)
            written.rename(folder)  # onto an empty folder or none; anything else is an error
    except OSError as error:
        raise StorageError(
            Text("model_folder.model_cannot_written", folder=str(folder), reason=str(error.strerror or error)),
            Text("model_folder.choose_another_folder"),
        ) from None
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
