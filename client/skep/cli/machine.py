"""The verbs about this computer: `devices` and `identity`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from skep import bootstrap
from skep.cli import words
from skep.cli.parser import Context, Verbs
from skep.cli.terminal import table
from skep.core.model import Device, PowerCap


def add(verbs: Verbs) -> None:
    verbs.verb("devices", _devices, "list what can train here, or why it cannot")
    verbs.verb("identity", _identity, "show this computer's peer id in the swarms")


def _devices(context: Context, _arguments: argparse.Namespace) -> int:
    devices = bootstrap.devices().list()
    heading = ("Device", "Name", "Memory", "Driver", "Now", "For training")
    capped = [(each, bootstrap.power_cap(each)) for each in devices]
    body = [{"id": each.choice} | asdict(each) | {"power_cap": _body(cap)} for each, cap in capped]
    told = [f"{each.choice}: {_cap(cap)}" for each, cap in capped if cap]
    context.terminal.show({"devices": body}, [table(heading, (_row(device) for device in devices)), *told])
    return 0


def _body(cap: PowerCap | None) -> dict[str, Any] | None:
    return None if cap is None else asdict(cap)


def _cap(cap: PowerCap) -> str:
    if cap.refused or cap.lowest is None or cap.highest is None:
        return f"no power cap. {cap.refused}"
    return f"its power can be capped between {cap.lowest:.0f} and {cap.highest:.0f}{words.THIN}W."


def _row(device: Device) -> tuple[str, ...]:
    use = device.unusable or "usable"
    return (device.choice, device.name, _memory(device), device.driver or words.MISSING, _now(device), use)


def _memory(device: Device) -> str:
    if device.memory_total is None:
        return words.MISSING
    total = words.size(device.memory_total)
    return total if device.memory_free is None else f"{words.size(device.memory_free)} free of {total}"


def _now(device: Device) -> str:
    readings = (
        None if device.temperature is None else f"{device.temperature:.0f}{words.THIN}°C",
        None if device.power is None else f"{device.power:.0f}{words.THIN}W",
        None if device.utilisation is None else f"{words.percent(device.utilisation)} in use",
    )
    return " · ".join(reading for reading in readings if reading) or words.MISSING


def _identity(context: Context, _arguments: argparse.Namespace) -> int:
    identity = bootstrap.identity(context.home)
    body = {"peer_id": identity.peer_id, "path": str(identity.path)}
    context.terminal.note("A project's publisher invites this computer by it:")
    context.terminal.show(body, [identity.peer_id])
    return 0
