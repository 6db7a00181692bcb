"""Screen savers and lockers on the session bus: whether the screen is locked, and how long the session is idle.

It must not lock or unlock anything. GNOME, KDE, Cinnamon, MATE and Xfce each answer to a name of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from skep.adapters.linux.bus import Absent, Bus, Line, Silent, Target
from skep.adapters.sensors.idle_check import IdleJudge, running_seconds
from skep.adapters.sensors.source import SourceSensor
from skep.core.policy.conditions import Condition, Seen, missing, silent
from skep.core.text import Text

SAVERS: Final = tuple(
    Target(name, f"/{name.replace('.', '/')}", name)
    for name in (
        "org.gnome.ScreenSaver",
        "org.freedesktop.ScreenSaver",
        "org.cinnamon.ScreenSaver",
        "org.mate.ScreenSaver",
        "org.xfce.ScreenSaver",
    )
)
ACTIVE_CHANGED: Final = "ActiveChanged"
_FREEDESKTOP: Final = SAVERS[1]
_MEASURING_SECONDS: Final = 2.0


def listen(bus: Bus) -> None:
    """Be told when a screen is locked or unlocked. Raises Silent."""
    for saver in SAVERS:
        bus.listen(saver, ACTIVE_CHANGED)


def present(bus: Bus) -> Sequence[Target]:
    """Those that run now. Raises Silent."""
    return [saver for saver in SAVERS if bus.has(saver.service)]


def locked(bus: Bus, savers: Sequence[Target]) -> bool:
    """Whether one of them has its screen up. Raises Absent where none can tell, Silent."""
    said = []
    for saver in savers:
        with suppress(Absent):
            said.append(bus.call(saver, "GetActive")[0])
    if not said:
        raise Absent(Text("screensaver.no_screen_saver_tells_whether"))
    if any(not isinstance(each, bool) for each in said):
        raise Silent(Text("screensaver.screen_saver_answer_neither_yes"))
    return any(said)


class Unit:
    """Some desktops count idle time in seconds, some in milliseconds; which one shows while it grows.

    Until it showed, milliseconds are assumed: that errs towards a person who is there.
    """

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None
        self.per_second: float | None = None

    def seconds(self, value: float, now: float) -> float:
        """`value` as the desktop says it, at `now` on a clock that only grows."""
        if self.per_second is None:
            self._measure(value, now)
        return value / (self.per_second or 1000.0)

    def _measure(self, value: float, now: float) -> None:
        if self._first is None or value < self._first[1]:
            self._first = (now, value)  # input came: it counts from the start
        elif (passed := now - self._first[0]) >= _MEASURING_SECONDS:
            growth = (value - self._first[1]) / passed
            if growth > 100:  # noqa: PLR2004 - far from both 1 and 1000
                self.per_second = 1000.0
            elif growth > 0.4:  # noqa: PLR2004 - whole seconds, over two of them
                self.per_second = 1.0


class ScreenSaverInput(SourceSensor):
    """Tells INPUT where org.freedesktop.ScreenSaver does, as KDE's; asked only."""

    def __init__(self, address: str | None) -> None:
        """`address` of the session bus; None where there is none."""
        super().__init__("org.freedesktop.ScreenSaver", [Condition.INPUT])
        self._line = Line(address)
        self._judge, self._unit = IdleJudge(Text("screensaver.screen_saver")), Unit()

    def _look(self) -> Seen:
        try:
            value = self._line.ask(_idle)
        except Absent:
            return {Condition.INPUT: missing(Text("screensaver.no_screen_saver_here_tells"))}
        except Silent as error:
            self._let_go()
            return {Condition.INPUT: silent(Text("screensaver.screen_saver_does_not_answer", reason=error.reason))}
        known = self._unit.per_second
        seconds = self._unit.seconds(value, running_seconds())
        if self._unit.per_second != known:
            self._judge.forget()  # what was said before was taken for another unit
        return {Condition.INPUT: self._judge.judge(seconds)}

    def _cut_off(self) -> None:
        self._line.cut()

    def _let_go(self) -> None:
        self._line.drop()


def _idle(bus: Bus) -> int:
    """In seconds or milliseconds. Raises Absent, Silent."""
    value = bus.call(_FREEDESKTOP, "GetSessionIdleTime")[0]
    if not isinstance(value, int):
        raise Silent(Text("mutter.answer_no_time"))
    return value
