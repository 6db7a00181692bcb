"""Puts published weights into a model built here, after checking that every tensor is the one the model has.

It must not download them, nor let the file decide what is built: the model comes first, the file fills it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open

from skep.core.errors import DataError

KINDS: Final = ("F32", "F16", "BF16")
"""What weights are published in; they are computed with in float32."""


@torch.no_grad()
def load_base(model: torch.nn.Module, path: Path) -> None:
    """Fill every parameter of `model` (float32, on the CPU) from the safetensors file at `path`, tensor by tensor.

    Parameters that are one, such as tied embeddings, stand in the file once, under their first name. Raises DataError.
    """
    parameters = dict(model.named_parameters())
    try:
        with safe_open(path, framework="pt") as file:
            _check_names(set(file.keys()), parameters.keys())
            for name, parameter in parameters.items():
                parameter.copy_(_checked(file, name, parameter))
    except SafetensorError:
        raise _unusable("they are not a safetensors file") from None
    except OSError as error:
        raise DataError(
            f"The project's base weights cannot be read: {error.strerror or error}.",
            "Check that the cache folder may be read.",
        ) from None


def _check_names(found: set[str], expected: Any) -> None:
    if missing := sorted(expected - found):
        raise _unusable(f"{missing[0]} is missing")
    if unknown := sorted(found - expected):
        raise _unusable(f"{unknown[0][:80]} is not a tensor of this model")


def _checked(file: Any, name: str, parameter: torch.Tensor) -> torch.Tensor:
    part = file.get_slice(name)
    shape, expected = tuple(part.get_shape()), tuple(parameter.shape)
    if shape != expected:
        raise _unusable(f"{name} is {_sizes(shape)} where the model has {_sizes(expected)}")
    if part.get_dtype() not in KINDS:
        raise _unusable(f"{name} is {part.get_dtype()}, not one of {', '.join(KINDS)}")
    tensor: torch.Tensor = file.get_tensor(name)
    if not bool(torch.isfinite(tensor).all()):
        raise _unusable(f"{name} has values that are not finite")
    return tensor


def _sizes(shape: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in shape)


def _unusable(why: str) -> DataError:
    return DataError(f"The project's base weights cannot be used: {why}.", "Tell the project's publisher.")
