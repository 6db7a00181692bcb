"""The process that checks the training stack, `python -m skep.host.inspection`, for `skep self-test`.

It imports every module of the worker and of the recipes, and trains every kind of model for one tiny step, so that
parts missing from a build are found here. It prints one JSON line and does not use the network.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from skep.core.project.data import Recipe
from skep.recipes.registry import RECIPES, open_recipe
from skep.worker.process import processes

LIBRARIES: Final = ("torch", "hivemind", "transformers", "peft", "tokenizers", "safetensors", "numpy")


def main() -> None:
    processes.use_fork()
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    try:
        said = look()
    except Exception as error:  # noqa: BLE001 - whatever a build lacks is what is looked for
        traceback.print_exc()
        said = {"missing": f"{type(error).__name__}: {error}"}
    print(json.dumps(said), flush=True)  # noqa: T201 - the protocol
    sys.exit("missing" in said)


def look() -> dict[str, Any]:
    """Versions by library, modules imported, models that made a step, devices. Raises whatever importing raises."""
    modules = [importlib.import_module(name) for name in _stack_modules()]
    return {
        "versions": {name: version(name) for name in LIBRARIES},
        "modules": len(modules),
        "models": [_one_step(recipe) for kind in RECIPES.values() for recipe in kind.smallest],
        "adapters": _adapters(),
        "devices": _devices(),
        "p2pd": _p2pd(),
    }


def _stack_modules() -> Iterator[str]:
    """The modules of the worker and of the recipes."""
    import skep.recipes  # noqa: PLC0415 - in the child's own time
    import skep.worker  # noqa: PLC0415 - in the child's own time

    for package in (skep.worker, skep.recipes):
        yield from (each.name for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))


def _one_step(recipe: Recipe) -> str:
    """Build the model, compute a step and write it; returns its name."""
    import torch  # noqa: PLC0415 - in the child's own time

    opened = open_recipe(recipe)
    model = opened.build()
    optimizer = torch.optim.AdamW(model.parameters())
    with torch.autocast("cpu", torch.bfloat16):
        loss = opened.loss(model, opened.example(2))
    loss.backward()
    optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(Path(folder))  # type: ignore[operator]
    return recipe.model_type


def _adapters() -> int:
    """How many numbers low-rank adapters of a tiny model train."""
    from peft import LoraConfig, inject_adapter_in_model  # noqa: PLC0415 - as above

    model = open_recipe(RECIPES["causal-lm"].smallest[0]).build()
    made = inject_adapter_in_model(LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True), model)
    return sum(parameter.numel() for parameter in made.parameters() if parameter.requires_grad)


def _devices() -> list[str]:
    import torch  # noqa: PLC0415 - as above

    return ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]


def _p2pd() -> str:
    """The path of p2pd. Raises PermissionError if it is not executable."""
    import hivemind  # noqa: PLC0415 - as above

    path = Path(hivemind.__file__).parent / "hivemind_cli" / "p2pd"
    if not os.access(path, os.X_OK):
        raise PermissionError(f"{path} cannot be run")
    return str(path)


if __name__ == "__main__":
    main()
