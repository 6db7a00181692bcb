"""The device that computes the gradients of a model, in 16 or 32 bits over fp32 parameters.

fp16 ends at 65504 and loses what is below 6e-8, so the loss is scaled up before the backward pass. hivemind's and
torch's own scalers undo that when the optimizer steps; here gradients of many micro-batches wait in `.grad` for a
round, so the scale is undone for each micro-batch before anything is added. `.grad` is always unscaled fp32. This
module only adds to it and never clears it. Several devices: `skep.worker.ranks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final

import torch
from torch.utils.checkpoint import checkpoint

from skep.core.device import ComputingDevice
from skep.recipes.contract import OpenRecipe
from skep.recipes.tensors.batches import Batch
from skep.worker.training.device import TrainingDevice

HALVES: Final = {"bf16": torch.bfloat16, "fp16": torch.float16}
FIRST_SCALE: Final = 2.0**16
LEAST_SCALE: Final = 2.0**-16
LARGEST_SCALE: Final = 2.0**24
"""Every scale is a power of two: multiplying and dividing by it causes no rounding."""
GROWTH_AFTER: Final = 2000
"""Consecutive micro-batches without an overflow after which a larger scale is tried; the value of torch's GradScaler."""
ALONE: Final = "AlbertLayerGroup"
"""The layer class of ALBERT, the one family that transformers cannot checkpoint."""


class ComputeGroup:
    """What computes the gradients of one model: here one `device`, in the subclass of `skep.worker.ranks` several.

    The rest of the program uses the parameters of `model` and their `.grad`, on the device `home`.
    """

    meanwhile: Callable[[], object] = staticmethod(lambda: None)
    """Called once a micro-batch was handed to the devices, which may still compute. Must not wait for them."""

    def __init__(self, device: TrainingDevice, recipe: OpenRecipe) -> None:
        self._recipe, self._device = recipe, device
        self.model = recipe.build().to(self.home)
        self.model.train()
        if device.precision != "fp32":
            keep_norms_in_fp32(self.model)
        self.loss_scale = LossScale() if device.precision == "fp16" else None

    @property
    def home(self) -> torch.device:
        """Where the parameters and their `.grad` are."""
        return self._device.device

    @property
    def name(self) -> str:
        return ", ".join(each.name for each in self.devices)

    @property
    def devices(self) -> Sequence[ComputingDevice]:
        """Those that compute now; from any thread."""
        return [ComputingDevice(str(self._device.device), self._device.name)]

    @property
    def kind(self) -> str:
        """As torch names it: "cpu", "cuda" or "mps"."""
        return self._device.device.type

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        return [p for p in self.model.parameters() if p.requires_grad]

    def tensors(self) -> Iterator[torch.Tensor]:
        """All tensors of the model on its device: parameters, their gradients, buffers."""
        gradients = (p.grad for p in self.model.parameters() if p.grad is not None)
        yield from chain(self.model.parameters(), gradients, self.model.buffers())

    def stopwatch(self) -> float:
        """Seconds of computing by the calling thread."""
        return self._device.stopwatch()

    def empty_caches(self) -> None:
        """Free the device memory that torch has cached and does not use."""
        self._device.empty_caches()

    def recompute_activations(self) -> None:
        recompute_activations(self.model)

    def add_gradients(self, batch: Batch, scale: float) -> float:
        """Add the gradients of `scale` x mean loss over the samples of `batch` to `.grad`.

        Returns the loss in nats per prediction. If it is not finite, nothing was added: the loss was not finite, or its
        gradients overflowed in fp16. If the device runs out of memory midway, complete gradients were added to some
        parameters and none to the others; if one of several devices does, none were added.
        """
        with self._device.low_priority():
            loss = self._loss(batch)
            value = float(loss.detach())
            if math.isfinite(value) and not self._backward(loss, scale):
                value = math.nan
            self.meanwhile()
        self._device.synchronize()
        return value

    def compute(self, batch: Batch, factor: float) -> tuple[float, Gradients | None]:
        """The loss as above, and the gradients of `factor` x loss, added nowhere; none if the loss is not finite."""
        with self._device.low_priority():
            loss = self._loss(batch)
            value = float(loss.detach())
            check, finite = self.loss_scale is not None, math.isfinite(value)
            found = gradients_of(loss, self.parameters, factor, check=check) if finite else None
        self._device.synchronize()
        return value, found

    @torch.no_grad()
    def loss(self, batch: Batch) -> float:
        """Mean loss over `batch`, in nats per prediction, without gradients."""
        with self._device.low_priority():
            return float(self._loss(batch))

    def loss_size(self, size: int) -> int:
        """Samples for which `loss` has room, where a micro-batch with gradients has `size`."""
        return size

    def _loss(self, batch: Batch) -> torch.Tensor:
        with autocast(self._device.precision, self.kind):
            return self._recipe.loss(self.model, batch.to(self._device.device))

    def _backward(self, loss: torch.Tensor, weight: float) -> bool:
        """Whether the gradients of `weight` x `loss` were added to `.grad`."""
        if self.loss_scale is None:
            (loss * weight).backward()
            return True
        return add_gradients(loss, weight, self.parameters, self.loss_scale)

    # --- what there is to do for several devices only

    def begin(self) -> None:
        """Let the devices find each other, once the network's processes are forked and before anything is computed."""

    def collect(self) -> None:
        """Add to `.grad` the gradients that other devices hold."""

    def forget(self) -> None:
        """Drop the gradients that other devices hold."""

    def lost(self) -> int:
        """Samples whose gradients are lost with a device, since the last call."""
        return 0


def autocast(precision: str, device_type: str) -> AbstractContextManager[object]:
    """A context in which matrices are multiplied in `precision` "bf16" or "fp16"; it has no effect for "fp32"."""
    half = HALVES.get(precision)
    return nullcontext() if half is None else torch.autocast(device_type, half)


def keep_norms_in_fp32(model: torch.nn.Module) -> None:
    """Make every normalisation layer take and return fp32: its sums of squares do not fit into 16 bits.

    On a GPU autocast does this already; on the processor it computes them in the type of the input.
    """
    for module in model.modules():
        if type(module).__name__.endswith("Norm"):
            module.register_forward_pre_hook(_as_fp32)


def _as_fp32(_module: torch.nn.Module, inputs: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(each.float() if torch.is_tensor(each) and each.is_floating_point() else each for each in inputs)


class LossScale:
    """The factor on the loss for fp16: halved when gradients overflow, doubled after a long time without."""

    def __init__(self, factor: float = FIRST_SCALE, growth_after: int = GROWTH_AFTER) -> None:
        self.factor = factor
        self._growth_after, self._good = growth_after, 0

    def learn(self, *, finite: bool) -> None:
        """Adapt the scale to a micro-batch; `finite` says whether its scaled gradients were."""
        self._good = self._good + 1 if finite else 0
        if not finite:
            self.factor = max(LEAST_SCALE, self.factor / 2)
        elif self._good == self._growth_after:
            self.factor, self._good = min(LARGEST_SCALE, self.factor * 2), 0


@dataclass(frozen=True)
class Gradients:
    """Gradients of one loss times a factor for fp16, which are not in `.grad` yet. `finite` is looked at in fp16 only."""

    pairs: Sequence[tuple[torch.nn.Parameter, torch.Tensor]]
    finite: bool

    @torch.no_grad()
    def add(self, factor: float) -> None:
        """Add `factor` x these gradients to `.grad`."""
        for parameter, new in self.pairs:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.add_(new, alpha=factor)


def gradients_of(
    loss: torch.Tensor, parameters: Sequence[torch.nn.Parameter], factor: float, *, check: bool
) -> Gradients:
    """The gradients of `factor` x `loss` (a scalar); with `check`, whether they are finite."""
    found: Sequence[torch.Tensor | None] = torch.autograd.grad(loss * factor, list(parameters), allow_unused=True)
    pairs = [(p, new) for p, new in zip(parameters, found, strict=True) if new is not None]
    return Gradients(pairs, not check or bool(torch.isfinite(total_norm(new for _, new in pairs))))


def add_gradients(
    loss: torch.Tensor, weight: float, parameters: Sequence[torch.nn.Parameter], scale: LossScale
) -> bool:
    """Add the gradients of `weight` x `loss` (a scalar) to `.grad`, unscaled, if they are finite; whether they were."""
    found = gradients_of(loss, parameters, scale.factor, check=True)
    if found.finite:
        found.add(weight / scale.factor)
    scale.learn(finite=found.finite)
    return found.finite


def total_norm(gradients: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.get_total_norm(list(gradients))


def recompute_activations(model: Any) -> None:
    """Keep one activation per layer of a transformers model, and recompute the rest in the backward pass.

    Uses the non-reentrant variant: torch.autograd.grad (fp16) does not work with the reentrant one.
    """
    if model.supports_gradient_checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
        return
    layers = [module for module in model.modules() if type(module).__name__ == ALONE]
    assert layers, f"{type(model).__name__} has no layers that are known here"
    for layer in layers:
        layer.forward = partial(_again, layer.forward)


def _again(forward: Any, *inputs: torch.Tensor, **options: Any) -> Any:
    return checkpoint(forward, *inputs, use_reentrant=False, **options)
