"""The fit check: whether this computer can train a project, and the resources needed, before any download. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skep.core.device import Device, DeviceKind, chosen, first_chosen
from skep.core.project.data import values
from skep.core.project.manifest import Manifest, OptimizerSpec
from skep.core.project.sent import gradient_bytes, state_bytes
from skep.core.project.spread import FLOAT, bytes_each
from skep.core.text import NOTHING, Text
from skep.core.traffic import DOWNLOAD, MBIT, UPLOAD, Caps

GB: Final = 1_000_000_000
PEAK: Final = 2.0
"""Factor for the second copy that exists while a state is loaded or served."""
CPU_PEAK_EXTRA_BYTES: Final = 20
"""Per parameter at that peak, in addition to device and host together, where the model is in the host's memory too;
measured: 43.5 in total with offload and reuse, calculated as 24 without this."""
BASE_BYTES: Final = 700_000_000
"""Memory of a training process without the model: the training stack and its helper processes."""
TIGHT: Final = 0.7
"""Above this fraction of what is available, the project fits only just."""

PAIR: Final = 2


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
    """Bytes of the host's memory, of the disk, and of the memory of each GPU that is used."""

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

    In fp16 a micro-batch's gradients are kept apart until it is known that they did not overflow.
    """
    sync = manifest.sync
    accumulators = 0 if sync.reuse_grad_buffers else FLOAT
    apart = FLOAT if _in_fp16(manifest, card) else 0
    return 2 * FLOAT + accumulators + apart + (0 if sync.offload_optimizer else optimizer_bytes(manifest.optimizer))


def _in_fp16(manifest: Manifest, card: Device | None) -> bool:
    """A `card` without bf16 computes in fp16 if the manifest leaves the choice."""
    without_bf16 = card is not None and card.bf16 is False
    return manifest.precision == "fp16" or (manifest.precision == "auto" and without_bf16)


def host_bytes(manifest: Manifest) -> int:
    """Bytes per parameter in the host's memory: averaged weights and gradients, and what is offloaded there."""
    sync = manifest.sync
    feedback = FLOAT if sync.powersgd else 0
    return 2 * FLOAT + feedback + (optimizer_bytes(manifest.optimizer) if sync.offload_optimizer else 0)


def check(
    manifest: Manifest,
    devices: Sequence[Device],
    *,
    memory: int,
    disk_free: int | None,
    together: Sequence[Device] = (),
) -> Fit:
    """Compare what the project needs with `memory` (total bytes), `disk_free` (bytes) and the best usable device.

    Where that is too small, with those that may compute one model `together`. What is None is not compared.
    """
    cards = cards_used(manifest, devices, together)
    want = memory_needed(manifest, cards)
    wants = [_Want(Text("fit.disk_space"), want.disk, disk_free), _Want(Text("fit.of_memory"), want.memory, memory)]
    if cards and want.device is not None:
        wants.append(_Want(Text("fit.of_memory_on_device", name=cards[-1].name), want.device, cards[-1].memory_total))
    found = _judge(wants)
    if found.verdict is Verdict.TOO_BIG:
        if together or not devices:
            return found
        all_of_them = check(manifest, devices, memory=memory, disk_free=disk_free, together=devices)
        if all_of_them.verdict is Verdict.TOO_BIG:
            return found
        return Fit(found.verdict, (*found.reasons, Text("fit.all_cards_have_room", setting="compute.device")))
    if len(cards) < PAIR or want.device is None:
        return found
    several = Text("fit.fits_on_several_together", count=len(cards), gb=_gb(want.device))
    both = Text("fit.fits_on_two_together", gb=_gb(want.device))
    said = several if len(_usable(together)) > PAIR else both
    return Fit(Verdict.FITS_GENTLY, (said, *found.reasons))


def memory_needed(manifest: Manifest, cards: Sequence[Device]) -> Needed:
    """The requirements in the manifest, or those calculated from its model where they are higher.

    Without `cards` the processor trains; over several cards the model is spread, each of them with a process.
    """
    count, frozen, needs = parameters_of(manifest), frozen_bytes(manifest), manifest.needs
    disk = max(needs.disk_gb * GB, files_bytes(manifest))
    if len(cards) == 1:
        in_memory = max(needs.memory_gb * GB, BASE_BYTES + count * host_bytes(manifest) * PEAK + frozen)
        return Needed(in_memory, disk, max(needs.vram_gb * GB, count * device_bytes(manifest, cards[0]) + frozen))
    # the whole model is in the host's memory
    peak = device_bytes(manifest) + host_bytes(manifest) + CPU_PEAK_EXTRA_BYTES
    in_memory = max(needs.memory_gb * GB, BASE_BYTES * max(1, len(cards)) + count * peak + frozen)
    if not cards:
        return Needed(in_memory, disk)
    fp16 = any(_in_fp16(manifest, card) for card in cards)
    each = bytes_each(manifest.recipe, len(cards), half=manifest.precision != "fp32", apart=fp16)
    return Needed(in_memory, disk, max(needs.vram_gb * GB / len(cards), each))


def cards_used(manifest: Manifest, devices: Sequence[Device], together: Sequence[Device] = ()) -> tuple[Device, ...]:
    """The GPUs that train, the largest first: the best one, or if that is too small the fewest of `together` that do.

    Of one kind, and each of a known memory. None of it for the processor. The best one is of `together` if these are given.
    """
    best = best_gpu(together or devices)
    if best is None:
        return ()
    if _has_room(manifest, [best]):
        return (best,)
    known = [d for d in _usable(together) if d.kind is best.kind and d.memory_total]
    known.sort(key=lambda device: -(device.memory_total or 0))
    groups = (tuple(known[:count]) for count in range(2, len(known) + 1))
    return next((group for group in groups if _has_room(manifest, group)), (best,))


def spread_over(manifest: Manifest, cards: Sequence[Device]) -> tuple[Device, ...]:
    """Those of a worker's `cards` over which it spreads the model; none where the largest has room for all of it."""
    used = cards_used(manifest, cards, cards)
    return used if len(used) >= PAIR else ()


def _has_room(manifest: Manifest, cards: Sequence[Device]) -> bool:
    there, needed = cards[-1].memory_total, memory_needed(manifest, cards).device
    return there is None or needed is None or needed <= there


def best_gpu(devices: Sequence[Device]) -> Device | None:
    """The usable GPU with the most memory; None where only the processor can train."""
    return max(_usable(devices), key=lambda device: device.memory_total or 0, default=None)


def _usable(devices: Sequence[Device]) -> list[Device]:
    return [each for each in devices if each.kind is not DeviceKind.CPU and each.unusable is None]


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
    """`memory`, `device` and `disk` in bytes, `device` of the memory of each GPU used, and None without one.

    `samples` is what this computer processes per hour at full share; `traffic` is bytes per hour each way in a swarm of
    PEERS computers like this one, `most` is the upper bound of it for any swarm.
    """

    memory: int
    device: int | None
    disk: int
    samples: int
    traffic: int
    most: int


def estimate(manifest: Manifest, devices: Sequence[Device], *, cores: int, together: Sequence[Device] = ()) -> Estimate:
    """The estimate for this computer. `cores` are the processor's. The disk space is the manifest's limit."""
    cards = cards_used(manifest, devices, together)
    needed = memory_needed(manifest, cards)
    rate = samples_a_second(manifest, on_gpu=bool(cards), cores=cores)
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
    """A sentence when every GPU that may be chosen, or one of several that are, is known to lack the precision.

    `wanted` is the setting compute.device. The processor computes in every precision, and every GPU in fp16.
    """
    if manifest.precision != "bf16":
        return NOTHING
    candidates = [each for each in devices if _may_be_picked(each, wanted)]
    without = [each for each in candidates if each.bf16 is False]
    if not without or (first_chosen(wanted) == "" and len(without) < len(candidates)):
        return NOTHING
    return Text("fit.computes_bf16_cannot", title=manifest.title, name=without[0].name)


def _may_be_picked(device: Device, wanted: str) -> bool:
    if device.kind is DeviceKind.CPU or device.unusable is not None:
        return False
    if first_chosen(wanted) == "":
        return True
    return device.choice in chosen(wanted) or (wanted == "cuda" and device.choice == "cuda:0")
