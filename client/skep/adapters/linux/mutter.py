"""The time since the last input as GNOME's compositor knows it, under Wayland and X11: asked, and told by a watch.

Other compositors have no such monitor; for them this source is missing.
"""

from __future__ import annotations

from typing import Any, Final

from skep.adapters.linux.bus import Absent, Bus, Line, Silent, Target
from skep.adapters.sensors.idle_check import IdleJudge
from skep.adapters.sensors.source import SourceSensor
from skep.core.policy.conditions import Condition, Seen, missing, silent
from skep.core.text import Text

MONITOR: Final = Target(
    "org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core", "org.gnome.Mutter.IdleMonitor"
)
QUIET_SECONDS: Final = 1.0
"""Input that comes sooner after the last is no news."""


class MutterInput(SourceSensor):
    """Tells INPUT. A watch wakes `wait` at the first input after a quiet second."""

    def __init__(self, address: str | None) -> None:
        """`address` of the session bus; None where there is none."""
        super().__init__("Mutter idle monitor", [Condition.INPUT])
        self._line = Line(address, lambda bus: bus.listen(MONITOR, "WatchFired"))
        self._judge = IdleJudge(Text("mutter.idle_monitor_gnome"))
        self._watch: int | None = None
        self._quiet = False

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself. There is no watch for input that comes within a second of the last."""
        return self._watch is not None

    def _look(self) -> Seen:
        try:
            idle = self._line.ask(self._ask)
        except Absent:
            self._let_go()
            return {Condition.INPUT: missing(Text("mutter.desktop_has_no_idle_monitor"))}
        except Silent as error:
            self._let_go()
            return {Condition.INPUT: silent(Text("mutter.idle_monitor_gnome_does_not", reason=error.reason))}
        self._quiet = idle >= QUIET_SECONDS
        return {Condition.INPUT: self._judge.judge(idle)}

    def _ask(self, bus: Bus) -> float:
        self._forget_fired(bus)
        if self._watch is None:
            # before the question, so that input in between is not missed
            self._watch = int(bus.call(MONITOR, "AddUserActiveWatch")[0])
        milliseconds = bus.call(MONITOR, "GetIdletime")[0]
        if not isinstance(milliseconds, int):
            raise Silent(Text("mutter.answer_no_time"))
        return milliseconds / 1000

    def _forget_fired(self, bus: Bus) -> None:
        if any(self._is_ours(name, body) for name, body in bus.signals()):
            self._watch = None

    def _is_ours(self, name: str, body: tuple[Any, ...]) -> bool:
        return name == "WatchFired" and self._watch is not None and body == (self._watch,)

    def _await(self, deadline: float) -> None:
        bus = self._line.open_bus
        if bus is None or not self._quiet:
            super()._await(deadline)
            return
        try:
            if bus.await_signal(deadline, self._wake, self._is_ours):
                self._watch = None  # a watch fires once
        except Silent:
            self._let_go()

    def _cut_off(self) -> None:
        self._line.cut()

    def _let_go(self) -> None:
        self._line.drop()
        self._watch = None
        self._quiet = False
