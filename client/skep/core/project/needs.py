"""What a project needs: memory of the host and of each card, disk, traffic; and which cards train. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from skep.core.device import Device, DeviceKind
from skep.core.project.data import values
from skep.core.project.manifest import Manifest, OptimizerSpec
from skep.core.project.sent import gradient_bytes, state_bytes
from skep.core.project.spread import FLOAT, bytes_each, share_bytes

GB: Final = 1_000_000_000
PEAK: Final = 2.0
"""Factor for the second copy that exists while a state is loaded or served."""
CPU_PEAK_EXTRA_BYTES: Final = 20
"""Per parameter at that peak, in addition to device and host together, where the model is in the host's memory too;
measured: 43.5 in total with offload and reuse, calculated as 24 without this."""
BASE_BYTES: Final = 700_000_000
"""Memory of a training process without the model: the training stack and its helper processes."""
PAIR: Final = 2
FP16: Final = "fp16"
FP32: Final = "fp32"


@dataclass(frozen=True)
class Needed:
    """Bytes of the host's memory, of the disk, and of the memory of each GPU that is used."""

    memory: float
    disk: float
    device: float | None = None


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
    apart = FLOAT if FP16 in _precisions(manifest, [card] if card else []) else 0
    return 2 * FLOAT + accumulators + apart + (0 if sync.offload_optimizer else optimizer_bytes(manifest.optimizer))


def _precisions(manifest: Manifest, cards: Sequence[Device]) -> Sequence[str]:
    """Those in which `cards` may compute. If the manifest leaves the choice, one without bf16 takes what is quicker on it."""
    if manifest.precision != "auto":
        return (manifest.precision,)
    return (FP16, FP32) if any(card.bf16 is False for card in cards) else ("bf16",)


def host_bytes(manifest: Manifest) -> int:
    """Bytes per parameter in the host's memory: averaged weights and gradients, and what is offloaded there."""
    sync = manifest.sync
    feedback = FLOAT if sync.powersgd else 0
    return 2 * FLOAT + feedback + (optimizer_bytes(manifest.optimizer) if sync.offload_optimizer else 0)


def memory_needed(manifest: Manifest, cards: Sequence[Device]) -> Needed:
    """The requirements in the manifest, or those calculated from its model where they are higher.

    Without `cards` the processor trains; over several cards the model is spread, each of them with a process. What their
    memory does not hold of it is in the host's.
    """
    count, frozen, needs = parameters_of(manifest), frozen_bytes(manifest), manifest.needs
    disk = max(needs.disk_gb * GB, files_bytes(manifest))
    if len(cards) == 1:
        in_memory = max(needs.memory_gb * GB, BASE_BYTES + count * host_bytes(manifest) * PEAK + frozen)
        return Needed(in_memory, disk, _on_each(manifest, cards))
    # the whole model is in the host's memory
    peak = device_bytes(manifest) + host_bytes(manifest) + CPU_PEAK_EXTRA_BYTES
    in_memory = max(needs.memory_gb * GB, BASE_BYTES * max(1, len(cards)) + count * peak + frozen)
    if not cards:
        return Needed(in_memory, disk)
    if offload := offloads(manifest, cards):
        in_memory += share_bytes(manifest.recipe, apart=FP16 in _precisions(manifest, cards))
    return Needed(in_memory, disk, _on_each(manifest, cards, offload=offload))


def offloads(manifest: Manifest, cards: Sequence[Device]) -> bool:
    """Whether several `cards` share the model and have no room for their shares, which are in the host's memory then."""
    return len(cards) >= PAIR and not _has_room(manifest, cards)


def _on_each(manifest: Manifest, cards: Sequence[Device], *, offload: bool = False) -> float:
    """Bytes on each of `cards`."""
    if len(cards) == 1:
        calculated: float = parameters_of(manifest) * device_bytes(manifest, cards[0]) + frozen_bytes(manifest)
    else:
        calculated = max(
            bytes_each(manifest.recipe, len(cards), half=each != FP32, apart=each == FP16, offload=offload)
            for each in _precisions(manifest, cards)
        )
    return max(manifest.needs.vram_gb * GB / len(cards), calculated)


def cards_used(manifest: Manifest, devices: Sequence[Device], together: Sequence[Device] = ()) -> tuple[Device, ...]:
    """The GPUs that train, the largest first: the best one, or if that is too small the fewest of `together` that do.

    Of one kind, and each of a known memory. None of it for the processor. The best one is of `together` if these are given.
    Where none have room for their shares, all with room for what they compute: more of them are faster then.
    """
    best = best_gpu(together or devices)
    if best is None:
        return ()
    if _has_room(manifest, [best]):
        return (best,)
    known = [d for d in usable(together) if d.kind is best.kind and d.memory_total]
    known.sort(key=lambda device: -(device.memory_total or 0))
    groups = [tuple(known[:count]) for count in range(PAIR, len(known) + 1)]
    with_shares = (group for group in groups if _has_room(manifest, group))
    without = (group for group in reversed(groups) if _has_room(manifest, group, offload=True))
    return next(chain(with_shares, without), (best,))


def spread_over(manifest: Manifest, cards: Sequence[Device]) -> tuple[Device, ...]:
    """Those of a worker's `cards` over which it spreads the model; none where the largest has room for all of it."""
    used = cards_used(manifest, cards, cards)
    return used if len(used) >= PAIR else ()


def _has_room(manifest: Manifest, cards: Sequence[Device], *, offload: bool = False) -> bool:
    there = cards[-1].memory_total
    return there is None or _on_each(manifest, cards, offload=offload) <= there


def best_gpu(devices: Sequence[Device]) -> Device | None:
    """The usable GPU with the most memory; None where only the processor can train."""
    return max(usable(devices), key=lambda device: device.memory_total or 0, default=None)


def usable(devices: Sequence[Device]) -> list[Device]:
    """The GPUs that can train."""
    return [each for each in devices if each.kind is not DeviceKind.CPU and each.unusable is None]
