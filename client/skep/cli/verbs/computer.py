"""The verbs about this computer: `devices` and `identity`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from skep import bootstrap
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import numbers, say, tr
from skep.cli.show.terminal import table
from skep.core.device import Device, PowerCap
from skep.language import units


def add(verbs: Verbs) -> None:
    verbs.verb("devices", _devices, tr("list what can train here, or why it cannot"))
    verbs.verb("identity", _identity, tr("show this computer's peer id in the swarms"))


def _devices(context: Context, _arguments: argparse.Namespace) -> int:
    devices = bootstrap.devices().list()
    heading = (tr("Device"), tr("Name"), tr("Memory"), tr("Driver"), tr("Now"), tr("For training"))
    capped = [(each, bootstrap.power_cap(each)) for each in devices]
    body = [{"id": each.choice} | asdict(each) | {"power_cap": _body(cap)} for each, cap in capped]
    told = [f"{each.choice}: {_cap(cap)}" for each, cap in capped if cap]
    context.terminal.show({"devices": body}, [table(heading, (_row(device) for device in devices)), *told])
    return 0


def _body(cap: PowerCap | None) -> dict[str, Any] | None:
    return None if cap is None else asdict(cap)


def _cap(cap: PowerCap) -> str:
    if cap.refused or cap.lowest is None or cap.highest is None:
        return tr("no power cap. {why}", why=cap.refused)
    return tr(
        "its power can be capped between {lowest:.0f} and {highest:.0f} W.", lowest=cap.lowest, highest=cap.highest
    )


def _row(device: Device) -> tuple[str, ...]:
    use = say(device.unusable) if device.unusable else tr("usable")
    return (device.choice, device.name, _memory(device), device.driver or units.MISSING, _now(device), use)


def _memory(device: Device) -> str:
    if device.memory_total is None:
        return units.MISSING
    total = numbers().size(device.memory_total)
    if device.memory_free is None:
        return total
    return tr("{free} free of {total}", free=numbers().size(device.memory_free), total=total)


def _now(device: Device) -> str:
    readings = (
        None if device.temperature is None else f"{device.temperature:.0f}{units.THIN}°C",
        None if device.power is None else f"{device.power:.0f}{units.THIN}W",
        None if device.utilisation is None else tr("{share} in use", share=units.percent(device.utilisation)),
    )
    return " · ".join(reading for reading in readings if reading) or units.MISSING


def _identity(context: Context, _arguments: argparse.Namespace) -> int:
    identity = bootstrap.identity(context.home)
    body = {"peer_id": identity.peer_id, "path": str(identity.path)}
    context.terminal.note(tr("A project's publisher invites this computer by it:"))
    context.terminal.show(body, [identity.peer_id])
    return 0
