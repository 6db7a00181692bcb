"""How soon the sensors of the person see input, and what they cost: prints JSON.

Real X server, real mutter, real sway, all private; the input is the X server's own test input (as xdotool's) and sway's.
Run it on a quiet machine: `.venv/bin/python benchmarks/sensors.py [trials]`.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from machine import machine
from Xlib import X
from Xlib.display import Display
from Xlib.ext import xtest

from desktops import Mutter, PrivateBus, Screen, Sway
from skep.adapters.activity import swayidle
from skep.adapters.activity.full_screen import FullScreen
from skep.adapters.activity.inhibitors import Inhibitors
from skep.adapters.activity.lock import ScreenLock
from skep.adapters.activity.mutter import MutterInput
from skep.adapters.activity.swayidle import SwayidleInput
from skep.adapters.activity.x11_input import X11Input
from skep.core.conditions import Condition
from skep.ports import Sensor

TRIALS = 40
COST_SECONDS = 10.0
WAIT_SECONDS = 1.0
"""What each `wait` is asked for while the cost is measured."""
TYPING_SECONDS = 0.05


def main() -> None:
    trials = int(sys.argv[1]) if sys.argv[1:] else TRIALS
    with _desktops() as (screen, bus, sway):
        display = Display(screen.name)
        report = {
            "machine": machine(),
            "trials": trials,
            "detection_ms": {
                "x11": _detection(X11Input(screen.name), lambda: _move(display), trials),
                "mutter": _detection(MutterInput(bus.address), lambda: _move(display), trials),
                "swayidle, with the start of swaymsg": _detection(SwayidleInput(sway.environ), sway.touch, trials),
            },
            "cost_percent_of_a_core": _costs(screen, bus, sway, display),
        }
        display.close()
    print(json.dumps(report, indent=2))  # noqa: T201 - this is the result


@contextmanager
def _desktops() -> Iterator[tuple[Any, Any, Any]]:
    screen, bus, sway = Screen(), PrivateBus(), Sway()
    mutter = Mutter(screen, bus)
    logind = bus.logind()
    swayidle.QUIET_SECONDS = 1  # type: ignore[misc] # so that a trial takes seconds, not minutes
    try:
        yield screen, bus, sway
    finally:
        logind.end()
        for each in (mutter, sway, bus, screen):
            each.close()


def _move(display: Display) -> None:
    """Raises nothing; returns when the X server has taken the input in."""
    for x in (1, -1):
        xtest.fake_input(display, X.MotionNotify, detail=1, x=x, y=0)
    display.sync()


def _detection(sensor: Sensor, act: Callable[[], None], trials: int) -> dict[str, float]:
    """Milliseconds from just before the input until a `read` after `wait` shows it."""
    taken = []
    chance = random.Random(0)
    for _ in range(trials):
        while (_idle(sensor) or 0.0) < 1.1:  # noqa: PLR2004 - longer than what counts as the same input
            time.sleep(0.05)
        actor = _Actor(act, 0.1 + chance.random() * 0.3)
        actor.start()
        while True:
            sensor.wait(60)
            value = _idle(sensor)
            if actor.began is not None and value is not None and value < 1.0:
                break
        taken.append((time.perf_counter() - actor.began) * 1000)
        actor.join()
    sensor.close()
    taken.sort()
    return {
        "median": round(statistics.median(taken), 1),
        "p95": round(taken[min(len(taken) - 1, int(0.95 * len(taken)))], 1),
        "max": round(taken[-1], 1),
    }


class _Actor(threading.Thread):
    """Acts after `delay` seconds; `began` is when, on the performance counter."""

    def __init__(self, act: Callable[[], None], delay: float) -> None:
        super().__init__()
        self._act, self._delay = act, delay
        self.began: float | None = None

    def run(self) -> None:
        time.sleep(self._delay)
        self.began = time.perf_counter()
        self._act()


def _idle(sensor: Sensor) -> float | None:
    value: float | None = sensor.read()[Condition.INPUT].value
    return value


def _costs(screen: Any, bus: Any, sway: Any, display: Display) -> dict[str, dict[str, float]]:
    """Processor time of each sensor's own thread, while nobody is there and while somebody moves the pointer all the time."""
    sensors: dict[str, Callable[[], Sensor]] = {
        "x11 input": lambda: X11Input(screen.name),
        "mutter input": lambda: MutterInput(bus.address),
        "swayidle input": lambda: SwayidleInput(sway.environ),
        "full screen": lambda: FullScreen(screen.name),
        "screen lock": lambda: ScreenLock(bus.address, bus.address),
        "inhibitors": lambda: Inhibitors(bus.address, bus.address),
    }
    costs: dict[str, dict[str, float]] = {name: {} for name in sensors}
    for name, make in sensors.items():
        time.sleep(1.5)
        costs[name]["nobody there"] = _cost(make())
        with _typing(display):
            costs[name]["in use"] = _cost(make())
    return costs


def _cost(sensor: Sensor) -> float:
    used: list[float] = []

    def live() -> None:
        sensor.read()
        began, until = time.thread_time(), time.monotonic() + COST_SECONDS
        while time.monotonic() < until:
            sensor.wait(WAIT_SECONDS)
            sensor.read()
        used.append((time.thread_time() - began) / COST_SECONDS * 100)

    thread = threading.Thread(target=live)
    thread.start()
    thread.join()
    sensor.close()
    return round(used[0], 3)


@contextmanager
def _typing(display: Display) -> Iterator[None]:
    ended = threading.Event()

    def type_on() -> None:
        while not ended.wait(TYPING_SECONDS):
            _move(display)

    thread = threading.Thread(target=type_on)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    main()
