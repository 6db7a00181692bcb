"""Loading of published weights into a model, after a check that the tensors in the file match the model's.

The file never determines the architecture: the model is built first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open

from skep.core.errors import DataError
from skep.core.text import Text

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
                if not parameter.is_meta:  # there it has no values: they come from another process
                    parameter.copy_(_checked(file, name, parameter))
    except SafetensorError:
        raise _unusable(Text("base_weights.they_not_safetensors_file")) from None
    except OSError as error:
        raise DataError(
            Text("base_weights.project_base_weights_cannot_read", reason=str(error.strerror or error)),
            Text("training.check_cache_folder_may_read"),
        ) from None


def _check_names(found: set[str], expected: Any) -> None:
    if missing := sorted(expected - found):
        raise _unusable(Text("base_weights.missing", missing=missing[0]))
    if unknown := sorted(found - expected):
        raise _unusable(Text("base_weights.not_tensor_model", unknown=unknown[0][:80]))


def _checked(file: Any, name: str, parameter: torch.Tensor) -> torch.Tensor:
    part = file.get_slice(name)
    shape, expected = tuple(part.get_shape()), tuple(parameter.shape)
    if shape != expected:
        raise _unusable(Text("base_weights.where_model_has", name=name, shape=_sizes(shape), expected=_sizes(expected)))
    if part.get_dtype() not in KINDS:
        raise _unusable(Text("base_weights.not_one", name=name, dtype=part.get_dtype(), kinds=tuple(KINDS)))
    tensor: torch.Tensor = file.get_tensor(name)
    if not bool(torch.isfinite(tensor).all()):
        raise _unusable(Text("base_weights.has_values_not_finite", name=name))
    return tensor


def _sizes(shape: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in shape)


def _unusable(why: Text) -> DataError:
    return DataError(Text("base_weights.project_base_weights_cannot_used", why=why), Text("web.tell_project_publisher"))
