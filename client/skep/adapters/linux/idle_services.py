"""Desktop services on the session bus that know the time since the last input: GNOME's compositor and KDE's screen saver.

Under Wayland and X11 alike. Other desktops have neither; for them these sources are missing.
"""

from __future__ import annotations

import time
from typing import Final

from skep.adapters.linux.bus import Bus, Target, Told
from skep.adapters.linux.screen_state import FREEDESKTOP_SAVER
from skep.adapters.sensors.idle import IdleJudge
from skep.adapters.sensors.sleep import since_boot
from skep.adapters.sensors.source import Line, LineSensor, Silent
from skep.core.policy.conditions import Condition, Reading, missing, silent
from skep.core.text import Text

MONITOR: Final = Target(
    "org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core", "org.gnome.Mutter.IdleMonitor"
)
QUIET_SECONDS: Final = 1.0
"""Input that comes sooner after the last is no news."""


def _number(bus: Bus, target: Target, method: str) -> int:
    """Raises Absent, Silent."""
    value = bus.call(target, method)[0]
    if not isinstance(value, int):
        raise Silent(Text("mutter.answer_no_time"))
    return value


class MutterInput(LineSensor[Bus]):
    """Tells INPUT. A watch wakes `wait` at the first input after a quiet second."""

    name = "Mutter idle monitor"
    conditions = (Condition.INPUT,)

    def __init__(self, address: str | None) -> None:
        """`address` of the session bus; None where there is none."""
        super().__init__(Line(lambda: Bus(address), self._listen))
        self._judge = IdleJudge(Text("mutter.idle_monitor_gnome"))
        self._watch: int | None = None
        self._quiet = False

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself. There is no watch for input that comes within a second of the last."""
        return self._watch is not None and super().tells

    def _listen(self, bus: Bus) -> None:
        bus.listen(MONITOR, "WatchFired")
        self._watch = None

    def _is_news(self, told: Told) -> bool:
        fired = self._watch is not None and told == ("WatchFired", (self._watch,))
        if fired:
            self._watch = None  # a watch fires once
        return fired

    def _await(self, deadline: float) -> None:
        if self._quiet:
            super()._await(deadline)
        else:  # while somebody types, each key would fire the watch
            self._wake.wait(deadline - time.monotonic())

    def _ask(self, bus: Bus) -> Reading[float]:
        for told in bus.news():
            self._is_news(told)
        if self._watch is None:
            # before the question, so that input in between is not missed
            self._watch = int(bus.call(MONITOR, "AddUserActiveWatch")[0])
        seconds = _number(bus, MONITOR, "GetIdletime") / 1000
        self._quiet = seconds >= QUIET_SECONDS
        return self._judge.judge(seconds)

    def _absent(self, _reason: Text) -> Reading[float]:
        self._watch = None
        return missing(Text("mutter.desktop_has_no_idle_monitor"))

    def _silent(self, reason: Text) -> Reading[float]:
        return silent(Text("mutter.idle_monitor_gnome_does_not", reason=reason))


class IdleUnit:
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


_MEASURING_SECONDS: Final = 2.0


class ScreenSaverInput(LineSensor[Bus]):
    """Tells INPUT where org.freedesktop.ScreenSaver does, as KDE's; asked only."""

    name = "org.freedesktop.ScreenSaver"
    conditions = (Condition.INPUT,)
    tells = False

    def __init__(self, address: str | None) -> None:
        """`address` of the session bus; None where there is none."""
        super().__init__(Line(lambda: Bus(address)))
        self._judge, self._unit = IdleJudge(Text("screensaver.screen_saver")), IdleUnit()

    def _ask(self, bus: Bus) -> Reading[float]:
        known = self._unit.per_second
        seconds = self._unit.seconds(_number(bus, FREEDESKTOP_SAVER, "GetSessionIdleTime"), since_boot())
        if self._unit.per_second != known:
            self._judge.forget()  # what was said before was taken for another unit
        return self._judge.judge(seconds)

    def _absent(self, _reason: Text) -> Reading[float]:
        return missing(Text("screensaver.no_screen_saver_here_tells"))

    def _silent(self, reason: Text) -> Reading[float]:
        return silent(Text("screensaver.screen_saver_does_not_answer", reason=reason))
