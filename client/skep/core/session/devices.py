"""What each of several devices does now, for front ends. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skep.core.device import ComputingDevice, PowerCap, kind_of, labelled
from skep.core.policy.conditions import Condition
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.text import NOTHING, Text


@dataclass(frozen=True)
class DeviceState:
    """One device that computes. Degrees Celsius, watts, and bytes of free memory; None where there is no source.

    `share` is what it computed of late, 0..1; None before it is measured. `held_back` says why it does less than the
    others, or that its power is limited.
    """

    name: str
    share: float | None
    celsius: float | None
    watts: float | None
    memory_free: float | None
    held_back: Text = NOTHING


def device_states(snapshot: Snapshot) -> tuple[DeviceState, ...]:
    """Of the devices that compute, where these are several; none where there is one."""
    if len(snapshot.devices) < 2:  # noqa: PLR2004 - several
        return ()
    names = [each.name for each in snapshot.devices]
    return tuple(
        DeviceState(
            labelled(each.name, each.id) if names.count(each.name) > 1 else each.name,
            _share(snapshot, each),
            _value(snapshot, Condition.TEMPERATURE, each.id),
            _value(snapshot, Condition.POWER, each.id),
            _value(snapshot, Condition.GPU_MEMORY, each.id),
            _held_back(snapshot, each.id),
        )
        for each in snapshot.devices
    )


def _value(snapshot: Snapshot, condition: Condition, device: str) -> float | None:
    each: Mapping[str, float] = snapshot.conditions[condition].each
    return each.get(device, each.get(kind_of(device)))


def _share(snapshot: Snapshot, device: ComputingDevice) -> float | None:
    if snapshot.allowance.share <= 0 or snapshot.phase is Phase.LEAVING or snapshot.saving:
        return 0.0
    measured = snapshot.progress.share_measured if snapshot.progress is not None else None
    return None if measured is None else measured * device.busy


def _held_back(snapshot: Snapshot, device: str) -> Text:
    ceiling = snapshot.ceilings.get(device)
    if ceiling is not None and ceiling.share <= snapshot.allowance.share:
        return ceiling.reason
    cap = snapshot.power_caps.get(device, PowerCap())
    if cap.refused:
        return Text("device.no_power_cap", refused=cap.refused)
    return Text("rule.power_limited", watts=cap.watts) if cap.watts is not None else NOTHING
