"""Construction of the sensors for this computer, and of the limiter of the cards' power.

Part of the composition root (`bootstrap`). The sensors of Linux are imported where they are used, since their libraries exist on Linux only.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Final

from skep.adapters.gpu.device_sensor import DeviceSensor, choose_all
from skep.adapters.gpu.devices import LocalDevices
from skep.adapters.gpu.power_limit import ONLY_NVIDIA, Card, NvidiaLimiter, PowerCapKeeper, Unlimited
from skep.adapters.macos.activity import MacActivity
from skep.adapters.process.own_processes import OwnProcesses, is_our_process, practice_process
from skep.adapters.sensors.battery import on_battery
from skep.adapters.sensors.processor import ProcessorSensor
from skep.adapters.sensors.sleep import SleepWatch
from skep.adapters.sensors.source import Asked
from skep.adapters.storage.paths import Home
from skep.adapters.windows.activity import WindowsActivity
from skep.core.device import CHOICE, Device, DeviceKind, PowerCap
from skep.core.policy.conditions import Condition, missing
from skep.core.text import Text
from skep.engine.engine import Engine
from skep.ports import Devices, Post, Sensor

_ALWAYS_GRAPHICAL: Final = {"darwin", "win32"}


# --- the user


def is_graphical(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether this user has a graphical session on this computer. Takes up to a second."""
    if platform in _ALWAYS_GRAPHICAL:
        return True

    from skep.adapters.linux import session  # noqa: PLC0415 - its libraries exist on Linux only

    return session.graphical(environment)


def of_the_person(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Sequence[Sensor]:
    """The sensors of this session, not opened, with disjoint conditions. Empty without a graphical session."""
    if platform == "darwin":
        return [MacActivity()]
    if platform == "win32":
        return [WindowsActivity(own_pid=is_our_process)]

    from skep.adapters.linux import session  # noqa: PLC0415 - as above

    return session.of_the_person(environment) if session.graphical(environment) else []


# --- the computer


def of_the_machine(post: Post, device: Callable[[], str], devices: Devices, ours: OwnProcesses) -> Sequence[Sensor]:
    """The sensors of the computer, not opened; that for suspends posts messages.

    `device` returns the setting compute.device; it can be called at any time and from any thread.
    """
    return (*_of_the_system(post), ProcessorSensor(ours), *_of_every_system(), DeviceSensor(device, devices, ours))


def _of_the_system(post: Post) -> Sequence[Sensor]:
    if sys.platform == "linux":
        from skep.adapters.linux import session  # noqa: PLC0415 - as above

        return session.of_the_machine(os.environ, post)
    unknown = missing(Text("machine.system_does_not_tell_programs"))
    return (
        Asked("Battery, by the operating system", Condition.BATTERY, on_battery),
        Asked("Connection", Condition.METERED, lambda: unknown),
        SleepWatch(post),
    )


def _of_every_system() -> Sequence[Sensor]:
    """The sensors named in the table of conditions."""
    named = (condition.spec.sensor for condition in Condition if condition.spec.sensor)
    return [import_module(f"skep.adapters.sensors.{each}").SENSOR() for each in named]


# --- all of them


def for_one_look(home: Home, device: str) -> Sequence[Sensor]:
    """All sensors of this computer. `device` is the setting compute.device."""
    return _all(home, lambda _message: None, lambda: device)


def for_engine(home: Home, engine: Callable[[], Engine]) -> Sequence[Sensor]:
    """All sensors of this computer for an engine. `engine` is called only when they are read: it is made later."""
    return _all(home, lambda message: engine().post(message), lambda: _device(engine()))


def _all(home: Home, post: Post, device: Callable[[], str]) -> Sequence[Sensor]:
    ours = OwnProcesses(lambda: own_roots(home))
    return (*of_the_person(), *of_the_machine(post, device, LocalDevices(), ours))


def _device(engine: Engine) -> str:
    """The devices that train, as the setting compute.device names them; those that it names while nothing trains."""
    snapshot = engine.snapshot
    training = [each.id for each in snapshot.devices] if snapshot.worker and snapshot.worker.joined_at else []
    if training and all(re.fullmatch(CHOICE, each) for each in training):
        return ",".join(training)
    return str(snapshot.settings.get("compute.device", ""))


def own_roots(home: Home) -> Iterable[int]:
    """The root processes of skep: this one, and that of the practice swarm in this home, if one runs."""
    practice = practice_process(home.practice_folder)
    return (os.getpid(),) if practice is None else (os.getpid(), practice)


# --- the caps on the cards' power


def power_cap(device: Device) -> PowerCap | None:
    """The power limit of the device; None for the processor, which has none."""
    match device.kind:
        case DeviceKind.CPU:
            return None
        case DeviceKind.NVIDIA:
            return PowerCap(refused=device.unusable) if device.unusable else NvidiaLimiter(device.index).look()
        case DeviceKind.AMD | DeviceKind.APPLE:
            return PowerCap(refused=ONLY_NVIDIA)


def limited_cards(devices: Devices, wanted: str) -> Sequence[Card]:
    """Every graphics card, those that train by `wanted`, the setting compute.device; skep can limit only NVIDIA's."""
    listed = devices.list()
    trains = choose_all(listed, wanted)
    return [
        Card(
            f"{each.name}, {each.kind}:{each.index}",
            each.choice,
            NvidiaLimiter(each.index) if each.kind is DeviceKind.NVIDIA else Unlimited(),
            trains=each in trains,
        )
        for each in listed
        if each.kind is not DeviceKind.CPU
    ]


@contextmanager
def power_capped(home: Home, engine: Engine) -> Iterator[None]:
    """Apply the power caps while the engine computes; restores the cards' own limits afterwards."""
    keeper = PowerCapKeeper(lambda: limited_cards(LocalDevices(), _device(engine)), home.power_limit_file, engine.post)
    keeper.start()
    engine.observe(keeper.observe)
    try:
        yield
    finally:
        keeper.close()
