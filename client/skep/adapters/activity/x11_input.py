"""The time since the last input as an X server counts it, by its screen saver extension, which has to be asked.

That input came after a quiet time, an alarm tells; where the server offers none, it is asked over and over.

Not for Wayland sessions: the X server in one sees only what is typed into its own windows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from Xlib.ext import screensaver

from skep.adapters.activity import x11_alarm
from skep.adapters.activity.bus import Absent, Silent
from skep.adapters.activity.idle import IdleJudge
from skep.adapters.activity.source import SourceSensor, Woken
from skep.adapters.activity.x11 import Server, XLine
from skep.core.conditions import Condition, Reading, Seen, answered, missing, silent

POLL_SECONDS: Final = 0.1
"""How often a server without alarms is asked."""
QUIET_SECONDS: Final = 1.0
"""Input that comes sooner after the last is no news."""


class X11Input(SourceSensor):
    """Tells INPUT. `wait` returns at the first input after a quiet second."""

    def __init__(self, display: str | None) -> None:
        """`display` as DISPLAY names it; None where there is none."""
        super().__init__("X11 screen saver extension", [Condition.INPUT])
        self._line = XLine(display, self._prepare)
        self._judge = IdleJudge("The X server")
        self._idle: float | None = None
        self._alarm: int | None = None
        self._saver: Reading[bool] = missing("There is no X server.")
        self.saver_changed: Callable[[], None] = lambda: None
        """Called in the reading thread when the server's own screen saver has come or gone."""

    @property
    def saver(self) -> Reading[bool]:
        """Whether the server's own screen saver was on at the last look; any input ends it."""
        return self._saver

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself."""
        return self._alarm is not None and self._line.open_server is not None

    def _look(self) -> Seen:
        try:
            idle = self._query()
        except Absent as error:
            self._let_go()
            return {Condition.INPUT: missing(f"No X server tells when it was last used: {error}.")}
        except Silent as error:
            self._let_go()
            return {Condition.INPUT: silent(f"The screen does not say when it was last used: {error}.")}
        return {Condition.INPUT: self._judge.judge(idle)}

    def _query(self) -> float:
        """Seconds. Raises Absent, Silent."""
        server = self._line.server()
        opcode = server.display.display.get_extension_major(screensaver.extname)
        info = server.reply(
            screensaver.QueryInfo(display=server.display.display, defer=True, opcode=opcode, drawable=server.root)
        )
        self._say_saver(answered(info.state == screensaver.StateOn, "The X server's screen saver"))
        self._idle = info.idle / 1000
        return self._idle

    def _prepare(self, server: Server) -> None:
        if not server.display.has_extension(screensaver.extname):
            raise Absent("it lacks the screen saver extension")
        self._alarm = x11_alarm.arm(server, int(QUIET_SECONDS * 1000))

    def _await(self, deadline: float) -> None:
        server = self._line.open_server
        if server is None or self._alarm is None:
            self._poll(deadline)
            return
        try:
            server.await_event(deadline, self._wake, lambda event: event.type == self._alarm)
        except Silent:
            self._let_go()

    def _poll(self, deadline: float) -> None:
        while (left := deadline - time.monotonic()) > 0:
            if self._wake.wait(min(POLL_SECONDS, left)) is not Woken.BY_TIME:
                return
            if self._line.open_server is not None and self._is_news():
                return

    def _is_news(self) -> bool:
        before = self._idle
        try:
            return self._query() < QUIET_SECONDS <= (before or 0.0)
        except (Absent, Silent):
            self._let_go()
            return True

    def _cut_off(self) -> None:
        self._line.cut()

    def _let_go(self) -> None:
        self._line.drop()
        self._idle = None
        self._say_saver(missing("The X server does not answer."))

    def _say_saver(self, saver: Reading[bool]) -> None:
        before, self._saver = self._saver.value, saver
        if saver.value is not before:
            self.saver_changed()
