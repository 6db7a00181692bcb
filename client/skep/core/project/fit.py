"""The fit check: whether this computer can train a project, and the resources needed, before any download. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skep.core.device import Device, DeviceKind
from skep.core.project.data import Shape, Shapes, values
from skep.core.project.manifest import Manifest, OptimizerSpec, Sync
from skep.core.text import NOTHING, Text
from skep.core.traffic import DOWNLOAD, MBIT, UPLOAD, Caps

GB: Final = 1_000_000_000
FLOAT: Final = 4
"""Bytes of one fp32 value: a weight, a gradient or one of the optimizer's statistics."""
PEAK: Final = 2.0
"""Factor for the second copy that exists while a state is loaded or served."""
CPU_PEAK_EXTRA_BYTES: Final = 20
"""Per parameter at that peak, in addition to device and host together, where the model is in the host's memory too;
measured: 43.5 in total with offload and reuse, calculated as 24 without this."""
BASE_BYTES: Final = 700_000_000
"""Memory of a training process without the model: the training stack and its helper processes."""
TIGHT: Final = 0.7
"""Above this fraction of what is available, the project fits only just."""


class Verdict(StrEnum):
    FITS = "fits"
    FITS_GENTLY = "fits gently"
    TOO_BIG = "too big"


@dataclass(frozen=True)
class Fit:
    """The verdict, and its explanation in sentences."""

    verdict: Verdict
    reasons: tuple[Text, ...] = ()


@dataclass(frozen=True)
class Needed:
    """Bytes of the host's memory, of the disk, and of a GPU's memory if one is used."""

    memory: float
    disk: float
    device: float | None = None


@dataclass(frozen=True)
class _Want:
    what: Text
    needed: float
    there: float | None


def parameters_of(manifest: Manifest) -> int:
    """The number of parameters that are trained and averaged."""
    return values(manifest.recipe.trained)


def frozen_bytes(manifest: Manifest) -> int:
    """Bytes of a frozen base in fp32, on the device, and in memory while it is loaded."""
    return values(manifest.recipe.frozen) * FLOAT


def files_bytes(manifest: Manifest) -> int:
    """Bytes of the recipe's files on the disk, as far as known."""
    return sum(file.bytes for file in manifest.recipe.files)


def traffic_per_epoch(manifest: Manifest) -> int:
    """The most bytes each way in an epoch, with the gradients and the state averaged once.

    In a group of n peers, each sends and receives (n-1)/n of it.
    """
    sync, shapes = manifest.sync, manifest.recipe.trained
    gradients = gradient_bytes(sync, shapes)
    state = state_bytes(sync, shapes) // sync.average_state_every
    return 2 * (gradients + state)


def optimizer_bytes(spec: OptimizerSpec) -> int:
    """Bytes per parameter of the optimizer's statistics: two moments for Adam and LAMB, the momentum for SGD."""
    match spec.name:
        case "adamw" | "lamb":
            return 2 * FLOAT
        case "sgd":
            return FLOAT if spec.betas[0] > 0 else 0


def device_bytes(manifest: Manifest, card: Device | None = None) -> int:
    """Bytes per parameter on the device: weights, gradients, and the statistics that are not offloaded.

    In fp16 a micro-batch's gradients are kept apart until it is known that they did not overflow. A `card` without
    bf16 computes in fp16 if the manifest leaves the choice.
    """
    sync, without_bf16 = manifest.sync, card is not None and card.bf16 is False
    accumulators = 0 if sync.reuse_grad_buffers else FLOAT
    apart = FLOAT if manifest.precision == "fp16" or (manifest.precision == "auto" and without_bf16) else 0
    return 2 * FLOAT + accumulators + apart + (0 if sync.offload_optimizer else optimizer_bytes(manifest.optimizer))


def host_bytes(manifest: Manifest) -> int:
    """Bytes per parameter in the host's memory: averaged weights and gradients, and what is offloaded there."""
    sync = manifest.sync
    feedback = FLOAT if sync.powersgd else 0
    return 2 * FLOAT + feedback + (optimizer_bytes(manifest.optimizer) if sync.offload_optimizer else 0)


def check(manifest: Manifest, devices: Sequence[Device], *, memory: int, disk_free: int | None) -> Fit:
    """Compare what the project needs with `memory` (total bytes), `disk_free` (bytes) and the best usable device.

    What is None is not compared.
    """
    gpu = best_gpu(devices)
    want = memory_needed(manifest, gpu)
    wants = [_Want(Text("fit.disk_space"), want.disk, disk_free), _Want(Text("fit.of_memory"), want.memory, memory)]
    if gpu is not None and want.device is not None:
        wants.append(_Want(Text("fit.of_memory_on_device", name=gpu.name), want.device, gpu.memory_total))
    return _judge(wants)


def memory_needed(manifest: Manifest, card: Device | None) -> Needed:
    """The requirements in the manifest, or those calculated from its model where they are higher.

    Without a `card` the processor trains.
    """
    count, frozen, needs = parameters_of(manifest), frozen_bytes(manifest), manifest.needs
    disk = max(needs.disk_gb * GB, files_bytes(manifest))
    if card is None:
        peak = device_bytes(manifest) + host_bytes(manifest) + CPU_PEAK_EXTRA_BYTES
        return Needed(max(needs.memory_gb * GB, BASE_BYTES + count * peak + frozen), disk)
    in_memory = max(needs.memory_gb * GB, BASE_BYTES + count * host_bytes(manifest) * PEAK + frozen)
    return Needed(in_memory, disk, max(needs.vram_gb * GB, count * device_bytes(manifest, card) + frozen))


def best_gpu(devices: Sequence[Device]) -> Device | None:
    """The usable GPU with the most memory; None where only the processor can train."""
    usable = [d for d in devices if d.kind is not DeviceKind.CPU and d.unusable is None]
    return max(usable, key=lambda device: device.memory_total or 0, default=None)


PART_BYTES: Final = 512 * 1024
"""Bytes of the largest part in which hivemind sends tensors."""


def least_rate(manifest: Manifest) -> float:
    """Bytes per second each way with which a round of PEERS peers ends before its deadlines.

    In the time that is left after matchmaking all of it has to move; and each groupmate, to which a part of our data and
    an average are on their way at the same time, has to get something before it thinks that we are gone.
    """
    sync, shapes = manifest.sync, manifest.recipe.trained
    whole = 2 * max(gradient_bytes(sync, shapes), state_bytes(sync, shapes)) * (PEERS - 1) / PEERS
    parts = min(2 * (PEERS - 1) * PART_BYTES, whole)
    return max(whole / (sync.averaging_timeout_seconds - sync.matchmaking_seconds), parts / sync.silence_seconds)


def slow_rounds(manifest: Manifest, caps: Caps) -> tuple[Text, ...]:
    """A sentence for each limit of the settings with which rounds are likely to fail."""
    least = least_rate(manifest)
    return tuple(
        Text("fit.slow_rounds", setting=key, mbit=cap / MBIT, least=math.ceil(least / MBIT))
        for key, cap in zip((UPLOAD, DOWNLOAD), caps, strict=True)
        if 0 < cap < least
    )


def limited(found: Fit, manifest: Manifest, caps: Caps) -> Fit:
    """The fit of a computer with these limits."""
    slow = slow_rounds(manifest, caps)
    verdict = Verdict.FITS_GENTLY if slow and found.verdict is Verdict.FITS else found.verdict
    return Fit(verdict, (*found.reasons, *slow))


def _judge(wants: Sequence[_Want]) -> Fit:
    known = [(want, want.there) for want in wants if want.there is not None]
    if too_big := tuple(_too_big(want, there) for want, there in known if want.needed > there):
        return Fit(Verdict.TOO_BIG, too_big)
    tight = tuple(_tight(want, there) for want, there in known if want.needed > there * TIGHT)
    return Fit(Verdict.FITS_GENTLY if tight else Verdict.FITS, tight)


def _too_big(want: _Want, there: float) -> Text:
    needed, have = _differently(want.needed, there)
    return Text("fit.too_big_needs_you_have", needed=needed, what=want.what, have=have)


def _tight(want: _Want, there: float) -> Text:
    return Text("fit.needs_you_have", gb=_gb(want.needed), what=want.what, gb_2=_gb(there))


def _gb(count: float) -> Text:
    return Text("fit.whole_gb" if count >= 10 * GB else "fit.gb", gb=round(count / GB, 0 if count >= 10 * GB else 1))


def _differently(needed: float, there: float) -> tuple[Text, Text]:
    """Both sizes as texts, with more digits where rounding would make them equal."""
    words = _gb(needed), _gb(there)
    return (
        words if words[0] != words[1] else (Text("fit.exact_gb", gb=needed / GB), Text("fit.exact_gb", gb=there / GB))
    )


SHORT: Final = 3
"""Epochs up to this many times the matchmaking time are short: in tests, newcomers never caught up with such swarms."""
PROCESSOR_FLOPS: Final = 50e9
"""Floating point operations per second measured in training on a processor with two cores."""
FLOPS_PER_PARAMETER: Final = 6
"""For each token: two in the forward pass, four in the backward pass."""
FLOPS_PER_FROZEN: Final = 4


def warnings(manifest: Manifest, samples_per_second: float | None = None) -> tuple[Text, ...]:
    """Warnings about the manifest at the swarm's rate.

    `samples_per_second` is the measured rate of the whole swarm. While it is unknown, the rate of a single computer
    without a GPU is used: no swarm is much slower, so warnings are given only for epochs that are certainly too short.
    """
    measured = max(samples_per_second or 0.0, 0.0)
    rate = measured or lone_processor_rate(manifest)
    epoch, matchmaking = manifest.sync.target_batch_size / rate, manifest.sync.matchmaking_seconds
    if epoch > SHORT * matchmaking:
        return ()
    seconds = Text("fit.about_s", seconds=epoch) if epoch >= 1 else Text("fit.less_than_1_s")
    if measured:
        return (Text("fit.short_epochs", seconds=seconds, matchmaking=matchmaking),)
    return (Text("fit.short_epochs_of_one_computer", seconds=seconds, matchmaking=matchmaking),)


def lone_processor_rate(manifest: Manifest) -> float:
    """The expected samples per second of one computer without a GPU."""
    recipe = manifest.recipe
    # a frozen parameter needs no weight gradient, only the gradient of its input
    flops = FLOPS_PER_PARAMETER * values(recipe.trained) + FLOPS_PER_FROZEN * values(recipe.frozen)
    return PROCESSOR_FLOPS / (flops * recipe.positions)


HOUR: Final = 3600
CORES: Final = 2
"""Cores of the processor on which PROCESSOR_FLOPS was measured."""
CARD_FLOPS: Final = 2e12
"""Floating point operations per second in training on a small card: a few tenths of the nominal rate of such cards."""
PEERS: Final = 4
"""The assumed size of the swarm: computers like this one, this one included."""


@dataclass(frozen=True)
class Estimate:
    """`memory`, `device` and `disk` in bytes, `device` of a GPU's memory and None without one.

    `samples` is what this computer processes per hour at full share; `traffic` is bytes per hour each way in a swarm of
    PEERS computers like this one, `most` is the upper bound of it for any swarm.
    """

    memory: int
    device: int | None
    disk: int
    samples: int
    traffic: int
    most: int


def estimate(manifest: Manifest, devices: Sequence[Device], *, cores: int) -> Estimate:
    """The estimate for this computer. `cores` are the processor's. The disk space is the manifest's limit."""
    card = best_gpu(devices)
    needed = memory_needed(manifest, card)
    rate = samples_a_second(manifest, on_gpu=card is not None, cores=cores)
    sync, traffic = manifest.sync, traffic_per_epoch(manifest)
    fastest = HOUR / sync.matchmaking_seconds
    epochs = min(fastest, HOUR * PEERS * rate / sync.target_batch_size)
    # each of n peers does not send the 1/n of the data that it averages itself
    part = (PEERS - 1) / PEERS
    return Estimate(
        memory=round(needed.memory),
        device=None if needed.device is None else round(needed.device),
        disk=round(needed.disk),
        samples=round(rate * HOUR),
        traffic=round(traffic * part * epochs),
        most=round(traffic * fastest),
    )


def samples_a_second(manifest: Manifest, *, on_gpu: bool, cores: int) -> float:
    """Samples per second at full share, from the number of parameters alone: may be wrong by a factor of a few."""
    flops = CARD_FLOPS if on_gpu else PROCESSOR_FLOPS * max(1, cores) / CORES
    return lone_processor_rate(manifest) * flops / PROCESSOR_FLOPS


HINT = Text("fit.nothing_was_downloaded_setting_can", setting="compute.device")


def lacking(manifest: Manifest, devices: Sequence[Device], wanted: str) -> Text:
    """A sentence when every GPU that may be chosen is known to lack the precision; otherwise empty.

    `wanted` is the setting compute.device. The processor computes in every precision, and every GPU in fp16.
    """
    if manifest.precision != "bf16":
        return NOTHING
    candidates = [each for each in devices if _may_be_picked(each, wanted)]
    if not candidates or not all(each.bf16 is False for each in candidates):
        return NOTHING
    return Text("fit.computes_bf16_cannot", title=manifest.title, name=candidates[0].name)


def _may_be_picked(device: Device, wanted: str) -> bool:
    if device.kind is DeviceKind.CPU or device.unusable is not None:
        return False
    return wanted in ("", device.choice) or (wanted == "cuda" and device.choice == "cuda:0")


# --- bytes sent for a model's tensors, calculated from their shapes

FLOAT_BYTES: Final = {"none": 4, "float16": 2, "scaled-float16": 2, "uniform-8bit": 1}
"""Bytes sent for one fp32 value. The additional data (a scale per row, a table of 256 values) is small and ignored."""
FACTOR_BYTES: Final = FLOAT_BYTES["none"]
"""PowerSGD's left factors are not compressed further, because every peer needs the same basis."""


def bytes_per_value(compression: str, values: int, threshold: int) -> int:
    """For a tensor with `values` values; from `threshold` on, size-adaptive compression uses 8 bits instead of 16."""
    if compression == "size-adaptive":
        compression = "uniform-8bit" if values >= threshold else "float16"
    return FLOAT_BYTES[compression]


def gradient_bytes(sync: Sync, shapes: Shapes) -> int:
    """Bytes sent for one set of gradients."""
    return sum(number * _gradient_bytes(sync, shape) for shape, number in shapes.items())


def _gradient_bytes(sync: Sync, shape: Shape) -> int:
    values, powersgd = math.prod(shape), sync.powersgd
    if powersgd is None or not powersgd.applies_to(shape):
        return values * bytes_per_value(sync.grad_compression, values, sync.size_adaptive_threshold)
    rows, columns = (powersgd.rank * length for length in shape)
    return rows * FACTOR_BYTES + columns * bytes_per_value(sync.grad_compression, columns, sync.size_adaptive_threshold)


def state_bytes(sync: Sync, shapes: Shapes) -> int:
    """Bytes sent for one set of parameters in averaging."""
    sizes = [(math.prod(shape), number) for shape, number in shapes.items()]
    return sum(
        number * size * bytes_per_value(sync.state_compression, size, sync.size_adaptive_threshold)
        for size, number in sizes
    )
