"""The fit check: whether this computer can train a project, and what that takes, before any download. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skep.core.device import Device, DeviceKind, chosen, first_chosen
from skep.core.project.data import values
from skep.core.project.manifest import Manifest
from skep.core.project.needs import (
    GB,
    PAIR,
    cards_used,
    memory_needed,
    offloads,
    traffic_per_epoch,
    usable,
)
from skep.core.project.sent import gradient_bytes, state_bytes
from skep.core.text import NOTHING, Text
from skep.core.traffic import DOWNLOAD, MBIT, UPLOAD, Caps

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
class _Want:
    what: Text
    needed: float
    there: float | None


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
    if offloads(manifest, cards):
        from_memory = Text("fit.fits_from_memory", count=len(cards), gb=_gb(want.device))
        return Fit(Verdict.FITS_GENTLY, (from_memory, *found.reasons))
    several = Text("fit.fits_on_several_together", count=len(cards), gb=_gb(want.device))
    both = Text("fit.fits_on_two_together", gb=_gb(want.device))
    said = several if len(usable(together)) > PAIR else both
    return Fit(Verdict.FITS_GENTLY, (said, *found.reasons))


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
