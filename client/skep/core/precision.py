"""Whether the device that would train computes in the project's precision, as far as is known without torch. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from skep.core.manifest_types import Manifest
from skep.core.model import Device, DeviceKind

HINT = "Nothing was downloaded. The setting compute.device can choose the processor, which is slow."


def lacking(manifest: Manifest, devices: Sequence[Device], wanted: str) -> str:
    """A sentence when every GPU that may be picked is known to lack the precision; empty else.

    `wanted` is the setting compute.device. The processor computes in every precision, and every GPU in fp16.
    """
    if manifest.precision != "bf16":
        return ""
    candidates = [each for each in devices if _may_be_picked(each, wanted)]
    if not candidates or not all(each.bf16 is False for each in candidates):
        return ""
    return f"{manifest.title} computes in bf16, which {candidates[0].name} cannot."


def _may_be_picked(device: Device, wanted: str) -> bool:
    if device.kind is DeviceKind.CPU or device.unusable is not None:
        return False
    return wanted in ("", device.choice) or (wanted == "cuda" and device.choice == "cuda:0")
