"""Whether this computer can carry a project: an estimate before anything is downloaded. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skep.core.manifest_types import Manifest, OptimizerSpec
from skep.core.matrices import trained_matrices
from skep.core.model import Device, DeviceKind
from skep.core.parameters import expected_parameters
from skep.core.traffic import Tensors, gradient_bytes, state_bytes

GB: Final = 1_000_000_000
FLOAT: Final = 4
"""Bytes of one fp32 value: a weight, a gradient or one of the optimizer's statistics."""
PEAK: Final = 2.0
"""Loading or serving a state holds a second copy for a while."""
CPU_PEAK_EXTRA_BYTES: Final = 20
"""Per parameter at that peak, above device and host together, where the model itself lies in the host's memory too;
measured: 43.5 in all with offload and reuse, whose arithmetic is 24."""
BASE_BYTES: Final = 700_000_000
"""What a training process takes before the model: the training stack and its helper processes."""
GENTLE: Final = 0.7
"""Above this part of what is there, it fits, but only just."""


class Verdict(StrEnum):
    FITS = "fits"
    FITS_GENTLY = "fits gently"
    TOO_BIG = "too big"


@dataclass(frozen=True)
class Fit:
    """The verdict, and a sentence for everything there is to say about it."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Traffic:
    """Bytes each way and epoch, with the gradients and the state averaged once."""

    up: int
    down: int


@dataclass(frozen=True)
class Needed:
    """Bytes of the host's memory, of the disk, and of a GPU's memory where one is used."""

    memory: float
    disk: float
    device: float | None = None


@dataclass(frozen=True)
class _Want:
    what: str
    needed: float
    there: float | None


def parameters_of(manifest: Manifest) -> int:
    """How many parameters are trained and averaged."""
    return expected_parameters(manifest.recipe).trained


def frozen_bytes(manifest: Manifest) -> int:
    """What a frozen base takes, in fp32, on the device and in memory while it is loaded."""
    return expected_parameters(manifest.recipe).frozen * FLOAT


def files_bytes(manifest: Manifest) -> int:
    """What the recipe's own files take on the disk, as far as it is known."""
    return sum(file.bytes for file in manifest.recipe.files)


def traffic_per_epoch(manifest: Manifest) -> Traffic:
    """An upper bound: in a group of n peers, each sends and receives (n-1)/n of this twice."""
    sync, tensors = manifest.sync, tensors_of(manifest)
    gradients = gradient_bytes(sync, tensors)
    state = state_bytes(sync, tensors) // sync.average_state_every
    return Traffic(up=2 * (gradients + state), down=2 * (gradients + state))


def tensors_of(manifest: Manifest) -> tuple[Tensors, ...]:
    """What is averaged: the trained matrices, and single values for all the rest."""
    matrices = trained_matrices(manifest.recipe)
    rest = parameters_of(manifest) - sum(times * rows * columns for (rows, columns), times in matrices)
    return (*matrices, ((1, 1), rest))


def optimizer_bytes(spec: OptimizerSpec) -> int:
    """Per parameter, of the optimizer's statistics: two moments of Adam and LAMB, the momentum of SGD."""
    return 2 * FLOAT if spec.name != "sgd" else FLOAT if spec.betas[0] > 0 else 0


def device_bytes(manifest: Manifest) -> int:
    """Per parameter on the device: weights, gradients, and what is not kept elsewhere."""
    sync = manifest.sync
    accumulators = 0 if sync.reuse_grad_buffers else FLOAT
    return 2 * FLOAT + accumulators + (0 if sync.offload_optimizer else optimizer_bytes(manifest.optimizer))


def host_bytes(manifest: Manifest) -> int:
    """Per parameter in the host's memory: averaged weights and gradients, and what is offloaded there."""
    sync = manifest.sync
    feedback = FLOAT if sync.powersgd else 0
    return 2 * FLOAT + feedback + (optimizer_bytes(manifest.optimizer) if sync.offload_optimizer else 0)


def check(manifest: Manifest, devices: Sequence[Device], *, memory: int, disk_free: int) -> Fit:
    """Compare what the project needs with `memory` (total bytes), `disk_free` (bytes) and the best usable device."""
    gpu = best_gpu(devices)
    want = needed(manifest, on_gpu=gpu is not None)
    wants = [_Want("of disk space", want.disk, disk_free), _Want("of memory", want.memory, memory)]
    if gpu is not None and want.device is not None:
        wants.append(_Want(f"of memory on {gpu.name}", want.device, gpu.memory_total))
    return _judge(wants)


def needed(manifest: Manifest, *, on_gpu: bool) -> Needed:
    """What the manifest asks for, or what its model takes where that is more."""
    count, frozen, needs = parameters_of(manifest), frozen_bytes(manifest), manifest.needs
    disk = max(needs.disk_gb * GB, files_bytes(manifest))
    if not on_gpu:
        peak = device_bytes(manifest) + host_bytes(manifest) + CPU_PEAK_EXTRA_BYTES
        return Needed(max(needs.memory_gb * GB, BASE_BYTES + count * peak + frozen), disk)
    in_memory = max(needs.memory_gb * GB, BASE_BYTES + count * host_bytes(manifest) * PEAK + frozen)
    return Needed(in_memory, disk, max(needs.vram_gb * GB, count * device_bytes(manifest) + frozen))


def best_gpu(devices: Sequence[Device]) -> Device | None:
    """The usable one with the most memory; None where only the processor can train."""
    usable = [d for d in devices if d.kind is not DeviceKind.CPU and d.unusable is None]
    return max(usable, key=lambda device: device.memory_total or 0, default=None)


def _judge(wants: Sequence[_Want]) -> Fit:
    known = [(want, want.there) for want in wants if want.there is not None]
    if too_big := tuple(_too_big(want, there) for want, there in known if want.needed > there):
        return Fit(Verdict.TOO_BIG, too_big)
    tight = tuple(_tight(want, there) for want, there in known if want.needed > there * GENTLE)
    return Fit(Verdict.FITS_GENTLY if tight else Verdict.FITS, tight)


def _too_big(want: _Want, there: float) -> str:
    needed, have = _differently(want.needed, there)
    return f"Too big: needs {needed} {want.what}, you have {have}."


def _tight(want: _Want, there: float) -> str:
    return f"It needs {_gb(want.needed)} {want.what}, and you have {_gb(there)}."


def _gb(count: float) -> str:
    return _rounded(count, 0 if count >= 10 * GB else 1)


def _differently(needed: float, there: float) -> tuple[str, str]:
    """Both in words; with more digits where rounding would make them the same, which explains nothing."""
    words = _gb(needed), _gb(there)
    return words if words[0] != words[1] else (_rounded(needed, 3), _rounded(there, 3))


def _rounded(count: float, digits: int) -> str:
    return f"{count / GB:.{digits}f} GB"
