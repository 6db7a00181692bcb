"""Measures how soon the activity sensors detect input, and the processor use of all of the engine's sensors.

    python benchmarks/sensors.py                  about 5 minutes; writes benchmarks/sensors.json and .md
    python benchmarks/sensors.py --trials 5 --seconds 10

Real X server, real mutter, real sway, UPower, NetworkManager and logind by python-dbusmock, all private; the input is
the X server's own test input (as xdotool's) and sway's. Detection is from just before the input until a reading shows
it. The cost is that of a whole engine without a project, as the kernel counts its threads: on GNOME's desktop and on a
plain X server, without input and while the pointer moves all the time. Targets: detection with Mutter ≤ 150 ms and at
an X server ≤ 250 ms, p95; the sensors ≤ 0.3 % of one core. Exits with 1 when one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from report import HERE, UNMEASURED, Row, Unmeasured, finish, p95, say
from Xlib import X
from Xlib.display import Display
from Xlib.ext import xtest

from desktops import Mutter, PrivateBus, Screen, Sway
from skep.adapters.linux.idle_services import MutterInput
from skep.adapters.linux.swayidle import SwayidleInput
from skep.adapters.linux.x11_sensors import X11Input
from skep.core.policy.conditions import Condition
from skep.ports import Sensor

GIVE_UP_SECONDS: Final = 30.0
TYPING_SECONDS: Final = 0.05
BOUND_PERCENT: Final = 0.3
MUTTER_SECONDS, X11_SECONDS = 0.15, 0.25
SETTLE_SECONDS: Final = 2.0


def _move(display: Any) -> None:
    """Raises nothing; returns when the X server has processed the input."""
    for x in (1, -1):
        xtest.fake_input(display, X.MotionNotify, detail=1, x=x, y=0)
    display.sync()


# --- detection


def detections(trials: int) -> list[Row]:
    with ExitStack() as ending:
        screen, bus = _opened(ending, Screen()), _opened(ending, PrivateBus())
        display = _opened(ending, Display(screen.name))
        plain = _detection("an X server", X11Input(screen.name), lambda: _move(display), trials, X11_SECONDS)
        _opened(ending, Mutter(screen, bus))
        gnome = _detection("Mutter", MutterInput(bus.address), lambda: _move(display), trials, MUTTER_SECONDS)
        sway = _opened(ending, Sway())
        slow = _detection(
            "sway, with the start of swaymsg",
            SwayidleInput(sway.environ, quiet_seconds=1),
            sway.touch,
            max(3, trials // 4),
            None,
        )
    return [*plain, *gnome, *slow]


def _opened(ending: ExitStack, made: Any) -> Any:
    ending.callback(made.close)
    return made


def _detection(where: str, sensor: Sensor, act: Callable[[], None], trials: int, bound: float | None) -> list[Row]:
    taken: list[float] = []
    chance = random.Random(0)
    try:
        for number in range(1, trials + 1):
            taken.append(_trial(where, sensor, _Actor(act, 0.1 + chance.random() * 0.3)))
            if number % 10 == 0:
                say(f"input at {where}: {number} of {trials}")
    finally:
        sensor.close()
    return [
        Row(f"input at {where} to its reading, p95", p95(taken), "s", bound, taken),
        Row("the same, median", statistics.median(taken), "s", None, taken),
    ]


def _trial(where: str, sensor: Sensor, actor: _Actor) -> float:
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while (_idle(sensor) or 0.0) < 1.1:  # noqa: PLR2004 - longer than what counts as the same input
        _check(where, deadline)
        time.sleep(0.05)
    actor.start()
    while True:
        sensor.wait(1.0)
        value = _idle(sensor)
        seen = time.perf_counter()
        if actor.began is not None and value is not None and value < 1.0:
            actor.join(GIVE_UP_SECONDS)
            return seen - actor.began
        _check(where, deadline)


def _check(where: str, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise Unmeasured(f"input at {where} is not seen within {GIVE_UP_SECONDS:g} s.")


class _Actor(threading.Thread):
    """Acts after `delay` seconds; `began` is the time of the act on the performance counter."""

    def __init__(self, act: Callable[[], None], delay: float) -> None:
        super().__init__(daemon=True)
        self._act, self._delay = act, delay
        self.began: float | None = None

    def run(self) -> None:
        time.sleep(self._delay)
        self.began = time.perf_counter()
        self._act()


def _idle(sensor: Sensor) -> float | None:
    value: float | None = sensor.read()[Condition.INPUT].value
    return value


# --- cost


def costs(seconds: float) -> tuple[list[Row], dict[str, dict[str, float]]]:
    """Rows, and for each case the use of each thread, in percent of a core."""
    made: list[Row] = []
    single: dict[str, dict[str, float]] = {}
    for desktop in ("GNOME", "a plain X server"):
        with _engine(gnome=desktop == "GNOME") as (engine, display):
            for case in ("nobody there", "in use"):
                with _typing(display) if case == "in use" else ExitStack():
                    time.sleep(SETTLE_SECONDS)
                    found = single[f"{desktop}, {case}"] = engine.cost(seconds)
                sensors = sum(part for name, part in found.items() if name.startswith(("sensor ", "children")))
                made.append(Row(f"sensors on {desktop}, {case}", sensors, "% of a core", BOUND_PERCENT))
                made.append(Row("the engine's thread, the same time", found["engine"], "% of a core"))
                say(f"{made[-2].name}: {sensors:.3f} %, with the engine's thread {sensors + found['engine']:.3f} %")
    return made, single


class Engine:
    """`engine_alone.py`, measured from outside."""

    def __init__(self, environ: dict[str, str], home: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, HERE / "engine_alone.py", home],
            env={**os.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._watch = threading.Timer(GIVE_UP_SECONDS, self._process.kill)
        self._watch.start()
        self._threads()
        self._watch.cancel()

    def _threads(self) -> dict[str, int]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Unmeasured("the engine does not start.")
        threads: dict[str, int] = json.loads(line)
        return threads

    def cost(self, seconds: float) -> dict[str, float]:
        """By thread, and of child processes: percent of a core over so many seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        threads = self._threads()
        before, begun = self._spent(threads), time.perf_counter()
        time.sleep(seconds)
        after, passed = self._spent(threads), time.perf_counter() - begun
        return {name: round((after[name] - before[name]) / passed * 100, 4) for name in before}

    def _spent(self, threads: dict[str, int]) -> dict[str, float]:
        """Processor seconds so far."""
        tasks = Path(f"/proc/{self._process.pid}/task")
        spent = {name: _seconds(tasks / str(number) / "schedstat") for name, number in threads.items()}
        children = Path(f"{tasks}/{self._process.pid}/children").read_text().split()
        return spent | {"children": sum(_seconds(Path(f"/proc/{child}/schedstat")) for child in children)}

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(GIVE_UP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _seconds(schedstat: Path) -> float:
    return int(schedstat.read_text().split()[0]) / 1e9


@contextmanager
def _engine(*, gnome: bool) -> Iterator[tuple[Engine, Any]]:
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="skep-bench-")))
        screen = _opened(ending, Screen(window_manager=None if gnome else "openbox"))
        bus = _opened(ending, PrivateBus())
        if gnome:
            _opened(ending, Mutter(screen, bus))
        bus.logind()
        for template, name in (
            ("upower", "org.freedesktop.UPower"),
            ("networkmanager", "org.freedesktop.NetworkManager"),
        ):
            bus.template(template, name)
        engine = _opened(ending, Engine(screen.environ | bus.environ, folder / "home"))
        yield engine, _opened(ending, Display(screen.name))


@contextmanager
def _typing(display: Any) -> Iterator[None]:
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40, help="of input at each desktop (40)")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the cost is measured in each case (20)")
    parser.add_argument("--only", choices=["detection", "cost"])
    parser.add_argument("--out", type=Path, default=HERE, help="folder for sensors.json and .md")
    asked = parser.parse_args()
    rows: list[Row] = []
    single: dict[str, dict[str, float]] = {}
    if asked.only != "cost":
        rows += detections(asked.trials)
    if asked.only != "detection":
        made, single = costs(asked.seconds)
        rows += made
    return finish("sensors", rows, asked.out, threads=single)


if __name__ == "__main__":
    try:
        code = main()
    except Unmeasured as error:
        say(f"cannot tell: {error} Is this machine busy with other things?")
        code = UNMEASURED
    sys.exit(code)
