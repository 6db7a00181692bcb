"""The verbs about this computer: `devices`, `identity`, `sensors` and `diagnostics`."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from skep import bootstrap
from skep.adapters.storage.paths import expanded
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import numbers, say, tr
from skep.cli.show.terminal import Terminal, table
from skep.cli.verbs.running import snapshot_here
from skep.core.device import Device, PowerCap
from skep.core.policy.conditions import Condition, Quantity, Reading, Seen, Source, Unit, YesNo, silent
from skep.core.text import verbatim
from skep.language import units
from skep.ports import Sensor
from skep.services import diagnosis

WITHIN: Final = 5.0
"""Seconds a source may take here; one that takes longer is called silent."""


def add(verbs: Verbs) -> None:
    verbs.verb("devices", _devices, tr("list what can train here, or why it cannot"))
    identity = verbs.verb("identity", _identity, tr("show this computer's peer id in projects by invitation"))
    identity.add_argument("--new", action="store_true", help=tr("take a new one; invitations to the old one end"))
    verbs.verb("sensors", _sensors, tr("list what skep knows of this computer now, or why it cannot"))
    made = verbs.verb(
        "diagnostics", _diagnostics, tr("print a description of this skep for people who help, without secrets")
    )
    made.add_argument("file", metavar=tr("FILE"), nargs="?", default="", help=tr("write it to this file instead"))


def _devices(context: Context, _arguments: argparse.Namespace) -> None:
    devices = bootstrap.devices().list()
    heading = (tr("Device"), tr("Name"), tr("Memory"), tr("Driver"), tr("Now"), tr("For training"))
    capped = [(each, bootstrap.power_cap(each)) for each in devices]
    body = [{"id": each.choice} | asdict(each) | {"power_cap": cap and asdict(cap)} for each, cap in capped]
    told = [f"{each.choice}: {_cap(cap)}" for each, cap in capped if cap]
    context.terminal.show({"devices": body}, [table(heading, (_row(device) for device in devices)), *told])


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
        None if device.temperature is None else units.whole(device.temperature, "°C"),
        None if device.power is None else units.whole(device.power, "W"),
        None if device.utilisation is None else tr("{share} in use", share=units.percent(device.utilisation)),
    )
    return " · ".join(reading for reading in readings if reading) or units.MISSING


def _identity(context: Context, arguments: argparse.Namespace) -> None:
    if arguments.new:
        with bootstrap.hold(context.home) as mended:
            for problem in mended:
                context.terminal.note(say(problem.title))
            aside = bootstrap.renew_identity(context.home)
        if aside is not None:
            context.terminal.note(tr("The old key is kept as {path}.", path=aside))
    identity = bootstrap.identity(context.home)
    body = {"peer_id": identity.peer_id, "path": str(identity.path)}
    context.terminal.note(tr("A project's publisher needs it to invite this computer:"))
    context.terminal.show(body, [identity.peer_id])


# --- sensors


def _sensors(context: Context, _arguments: argparse.Namespace) -> None:
    show_sensors(context.terminal, bootstrap.all_sensors(context.home))


def show_sensors(terminal: Terminal, sensors: Sequence[Sensor], within: float = WITHIN) -> None:
    """Read each once, and list what they tell; what takes longer than `within` seconds is silent."""
    late = tr("It did not answer within {seconds:.0f} seconds.", seconds=within)
    seen = [_silence(sensor, late) for sensor in sensors]
    # in threads of their own, since any source may hang
    threads = [
        threading.Thread(target=_read, args=(sensor, seen, place), name=sensor.name, daemon=True)
        for place, sensor in enumerate(sensors)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + within  # one for all of them
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    found = [(sensor.name, *each) for sensor, told in zip(sensors, seen, strict=True) for each in told.items()]
    body = [
        {"condition": condition, "sensor": name, "source": reading.source, "value": reading.value, "note": reading.note}
        for name, condition, reading in found
    ]
    # these only tell when something happens
    watches = [sensor.name for sensor in sensors if not sensor.conditions]
    heading = (tr("Reading"), tr("Now"), tr("Source"))
    terminal.show(
        {"sensors": body, "watches": watches}, [table(heading, (_reading(*each) for each in found)), *watches]
    )


def _read(sensor: Sensor, seen: list[Seen], place: int) -> None:
    try:
        seen[place] = sensor.read()
    except Exception as error:  # noqa: BLE001 - whatever a source raises counts as silence, as for the engine
        seen[place] = _silence(sensor, tr("It could not be read: {reason}.", reason=error))
    sensor.close()
    sensor.wait(0.0)  # releases what only the reading thread may release


def _silence(sensor: Sensor, note: str) -> Seen:
    return {condition: silent(verbatim(note)) for condition in sensor.conditions}


def _reading(sensor: str, condition: Condition, reading: Reading[Any]) -> tuple[str, str, str]:
    now, note = shown(condition, reading), say(reading.note)
    return (say(condition.spec.names.title), now, f"{sensor} ({note})" if reading.source is Source.ANSWERS else note)


def shown(condition: Condition, reading: Reading[Any]) -> str:
    """A reading as a person reads it; "not available" or "silent" where there is none."""
    match reading.source:
        case Source.MISSING:
            return tr("not available")
        case Source.SILENT:
            return tr("silent")
        case Source.ANSWERS:
            return _in_words(condition.spec.values, reading.value)


def _in_words(kind: YesNo | Quantity, value: Any) -> str:
    if isinstance(kind, YesNo):
        return say(kind.yes if value else kind.no)
    match kind.unit:
        case Unit.SECONDS_AGO:
            return tr("{span} ago", span=units.span(value))
        case Unit.SHARE:
            return units.percent(value)
        case Unit.BYTES:
            return numbers().size(value)
        case Unit.CELSIUS:
            return units.whole(value, "°C")
        case Unit.WATTS:
            return units.whole(value, "W")


# --- diagnostics


def _diagnostics(context: Context, arguments: argparse.Namespace) -> None:
    context.terminal.note(tr("Looking at devices, readings and the way to the seeds; this takes some seconds."))
    text = diagnosis.diagnose(context.home, snapshot_here(context))
    if not arguments.file:
        context.terminal.show({"diagnostics": text}, text.splitlines())
        return
    path = expanded(arguments.file)
    diagnosis.keep(path, text)
    context.terminal.show({"path": str(path)}, [tr("Written to {path}. Read it before you pass it on.", path=path)])
