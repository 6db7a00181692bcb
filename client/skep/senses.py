"""What this computer tells of itself and of the person at it: the sensors that fit here, and the cap on the card's power.

Part of the one place that picks the real parts. It must not run a sensor (`engine.sensing` does) nor judge a reading (the policy).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from skep.adapters.choice import machine, person
from skep.adapters.gpu.devices import LocalDevices
from skep.adapters.gpu.power_limit import PowerCapKeeper
from skep.adapters.process.own_processes import OwnProcesses, practice_process
from skep.adapters.storage.paths import Home
from skep.core.device import Device, PowerCap
from skep.core.session import messages as m
from skep.engine.engine import Engine
from skep.ports import Post, Sensor


def power_cap(device: Device) -> PowerCap | None:
    """Whether and how the device's power can be limited; None for the processor, which has no such limit."""
    return machine.power_cap(device)


def of_the_machine(home: Home, post: Post, device: Callable[[], str]) -> Sequence[Sensor]:
    """What tells of the computer itself; the watch over sleep posts what it sees.

    `device` gives the setting compute.device, at any time and from any thread.
    """
    return machine.sensors(post, device, LocalDevices(), OwnProcesses(lambda: own_roots(home)))


def of_the_person() -> Sequence[Sensor]:
    """What tells whether the person is there, none opened; empty where nobody can sit at a screen of this computer."""
    return person.choose(os.environ)


def for_one_look(home: Home, device: str) -> Sequence[Sensor]:
    """Every sensor there is here. `device` is the setting compute.device."""
    return (*of_the_person(), *of_the_machine(home, lambda _message: None, lambda: device))


def for_engine(home: Home, engine: Callable[[], Engine]) -> Sequence[Sensor]:
    """Every sensor there is here, for the engine that is made with them, and not asked for before they are read."""

    def post(message: m.Message) -> None:
        engine().post(message)

    def device() -> str:
        return str(engine().snapshot.settings.get("compute.device", ""))

    return (*of_the_person(), *of_the_machine(home, post, device))


def own_roots(home: Home) -> Iterable[int]:
    """The processes whose trees are skep's own: this one, and the practice swarm's in this home where one runs."""
    practice = practice_process(home.practice_folder)
    return (os.getpid(),) if practice is None else (os.getpid(), practice)


def is_graphical() -> bool:
    """Whether anybody can sit at a screen of this computer. Takes up to a second."""
    return person.graphical(os.environ)


@contextmanager
def power_capped(home: Home, engine: Engine) -> Iterator[None]:
    """The power cap kept while the engine computes; the card's own limit is back afterwards."""

    def find() -> machine.LimitedCard | None:
        return machine.limited_card(LocalDevices(), str(engine.snapshot.settings.get("compute.device", "")))

    keeper = PowerCapKeeper(find, home.power_limit_file, engine.post)
    keeper.start()
    engine.observe(keeper.observe)
    try:
        yield
    finally:
        keeper.close()
