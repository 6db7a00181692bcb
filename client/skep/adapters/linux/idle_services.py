"""Sensors of the time since the last input, from GNOME's compositor and KDE's screen saver on the session bus.

They work under Wayland and X11. On other desktops these sources are missing.
"""

from __future__ import annotations

import time
from typing import Final

from skep.adapters.linux.bus import Bus, Target, Told
from skep.adapters.linux.screen_state import FREEDESKTOP_SAVER
from skep.adapters.sensors.idle import IdleJudge
from skep.adapters.sensors.source import Line, LineSensor, Silent
from skep.clocks import since_boot
from skep.core.policy.conditions import Condition, Reading, missing, silent
from skep.core.text import Text

MONITOR: Final = Target(
    "org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core", "org.gnome.Mutter.IdleMonitor"
)
QUIET_SECONDS: Final = 1.0
"""Input that follows the last sooner than this is not reported."""


def _number(bus: Bus, target: Target, method: str) -> int:
    """Raises Absent, Silent."""
    value = bus.call(target, method)[0]
    if not isinstance(value, int):
        raise Silent(Text("mutter.answer_no_time"))
    return value


class MutterInput(LineSensor[Bus]):
    """Reports INPUT. A watch ends `wait` at the first input after a second without input."""

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
        """Implements ports.TellsItself. No watch is set within a second of the last input."""
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
        else:  # during typing, each key would fire the watch
            self._wake.wait(deadline - time.monotonic())

    def _ask(self, bus: Bus) -> Reading[float]:
        for told in bus.news():
            self._is_news(told)
        if self._watch is None:
            # before the query, so that input in between is not missed
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
    """Detects whether a desktop counts idle time in seconds or milliseconds, from its growth.

    Until that is known, milliseconds are assumed: this errs towards a computer in use.
    """

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None
        self.per_second: float | None = None

    def seconds(self, value: float, now: float) -> float:
        """Convert the desktop's `value`, read at `now` on a monotonic clock."""
        if self.per_second is None:
            self._measure(value, now)
        return value / (self.per_second or 1000.0)

    def _measure(self, value: float, now: float) -> None:
        if self._first is None or value < self._first[1]:
            self._first = (now, value)  # new input: the count has restarted
        elif (passed := now - self._first[0]) >= _MEASURING_SECONDS:
            growth = (value - self._first[1]) / passed
            if growth > 100:  # noqa: PLR2004 - far from both 1 and 1000
                self.per_second = 1000.0
            elif growth > 0.4:  # noqa: PLR2004 - whole seconds, over two of them
                self.per_second = 1.0


_MEASURING_SECONDS: Final = 2.0


class ScreenSaverInput(LineSensor[Bus]):
    """Reports INPUT if org.freedesktop.ScreenSaver does, as on KDE; by polling only."""

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
            self._judge.forget()  # earlier values were read in another unit
        return self._judge.judge(seconds)

    def _absent(self, _reason: Text) -> Reading[float]:
        return missing(Text("screensaver.no_screen_saver_here_tells"))

    def _silent(self, reason: Text) -> Reading[float]:
        return silent(Text("screensaver.screen_saver_does_not_answer", reason=reason))
