"""Entry of the process that exports a checkpoint, `python -m skep.host.export`: a model folder that transformers loads.

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
from skep.core.manifest import parse
from skep.core.recipe_types import LoraRecipe
from skep.host.recipe_files import find_files


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("checkpoint", type=Path)
    made.add_argument("folder", type=Path)
    made.add_argument("--files", type=Path)
    arguments = made.parse_args()
    try:
        said = export(arguments.checkpoint, arguments.folder, arguments.files)
    except SkepError as error:
        said = {"title": error.title, "hint": error.hint}
    except Exception as error:  # noqa: BLE001 - the last resort; whoever started us shows the sentence
        traceback.print_exc()
        said = {"title": f"The checkpoint could not be exported ({type(error).__name__}).", "hint": ""}
    print(json.dumps(said))  # noqa: T201 - the protocol
    sys.exit(1 if "title" in said else 0)


def export(source: Path, folder: Path, files: Path | None = None) -> dict[str, Any]:
    """Write the model of a checkpoint into `folder`, which must not be there yet or be empty.

    `files` is the folder of what its recipe needs beside samples. Raises SkepError.
    """
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    from skep.host.checkpoints import read  # noqa: PLC0415 - torch takes seconds

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
            f"The model cannot be written to {folder}: {error.strerror or error}.", "Choose another folder."
        ) from None
    return {"folder": str(folder), "epoch": checkpoint.epoch, "run_id": checkpoint.run_id}


def _model(checkpoint: Any, files: Path | None) -> Any:
    """The recipe's model with the checkpoint's parameters; adapters are merged into their base."""
    import torch  # noqa: PLC0415 - as above

    from skep.worker.recipes import open_recipe  # noqa: PLC0415 - as above

    recipe = parse(checkpoint.manifest.encode()).recipe
    model = open_recipe(recipe, find_files(recipe, files)).build()
    trained = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
    if {name: tensor.shape for name, tensor in trained.items()} != {
        name: tensor.shape for name, tensor in checkpoint.parameters.items()
    }:
        raise StorageError("The checkpoint does not fit the model of its own manifest.", "Try another checkpoint.")
    with torch.no_grad():
        for name, tensor in trained.items():
            tensor.copy_(checkpoint.parameters[name])
    if isinstance(recipe, LoraRecipe):
        from skep.worker.recipes.lora import merged  # noqa: PLC0415 - as above, and peft

        return merged(model)
    return model


if __name__ == "__main__":
    main()
