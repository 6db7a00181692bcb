"""Sensors of an X server: the time since the last input, and whether a window fills the screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from Xlib import X, Xatom
from Xlib import error as x_error
from Xlib.ext import screensaver

from skep.adapters.linux.x11 import PATIENCE_SECONDS, Server, arm, line_to
from skep.adapters.process.own_processes import IsOurs, is_our_process
from skep.adapters.sensors.idle import IdleJudge
from skep.adapters.sensors.source import Absent, LineSensor, Silent, Woken
from skep.core.policy.conditions import Condition, Reading, answered, missing, silent
from skep.core.text import Text

POLL_SECONDS: Final = 0.1
"""How often a server without alarms is polled."""
QUIET_SECONDS: Final = 1.0
"""Input that follows the last sooner than this is not reported."""


class X11Input(LineSensor[Server]):
    """Reports INPUT from the screen saver extension; an alarm ends `wait` at the first input after a second without."""

    name = "X11 screen saver extension"
    conditions = (Condition.INPUT,)

    def __init__(self, display: str | None, patience: float = PATIENCE_SECONDS) -> None:
        """`display` as DISPLAY names it; None where there is none."""
        super().__init__(line_to(display, self._prepare, patience))
        self._judge = IdleJudge(Text("x11.x_server"))
        self._idle: float | None = None
        self._alarm: int | None = None
        self.saver: Reading[bool] = missing(Text("x11.there_no_x_server"))
        """Whether the server's own screen saver was on at the last reading; any input ends it."""
        self.saver_changed: Callable[[], None] = lambda: None
        """Called in the reading thread when the server's own screen saver has started or ended."""

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself."""
        return self._alarm is not None and super().tells

    def _prepare(self, server: Server) -> None:
        if not server.display.has_extension(screensaver.extname):
            raise Absent(Text("x11.lacks_screen_saver_extension"))
        self._alarm = arm(server, int(QUIET_SECONDS * 1000))

    def _ask(self, server: Server) -> Reading[float]:
        return self._judge.judge(self._query(server))

    def _query(self, server: Server) -> float:
        """Seconds."""
        opcode = server.display.display.get_extension_major(screensaver.extname)
        info = server.reply(
            screensaver.QueryInfo(display=server.display.display, defer=True, opcode=opcode, drawable=server.root)
        )
        self._say_saver(answered(info.state == screensaver.StateOn, Text("x11.x_server_screen_saver")))
        self._idle = info.idle / 1000
        return self._idle

    def _absent(self, reason: Text) -> Reading[float]:
        self._let_go()
        return missing(Text("x11.no_x_server_tells_when", reason=reason))

    def _silent(self, reason: Text) -> Reading[float]:
        self._let_go()
        return silent(Text("x11.screen_does_not_say_when", reason=reason))

    def _is_news(self, event: Any) -> bool:
        return bool(event.type == self._alarm)

    def _await(self, deadline: float) -> None:
        if self._line.opened is None or self._alarm is not None:
            super()._await(deadline)
        else:
            self._poll(deadline)

    def _poll(self, deadline: float) -> None:
        while (left := deadline - time.monotonic()) > 0:
            if self._wake.wait(min(POLL_SECONDS, left)) is not Woken.BY_TIME or self._input_came():
                return

    def _input_came(self) -> bool:
        before = self._idle
        try:
            return self._line.ask(self._query) < QUIET_SECONDS <= (before or 0.0)
        except (Absent, Silent):
            self._let_go()
            return True

    def _let_go(self) -> None:
        super()._let_go()
        self._idle = None
        self._say_saver(missing(Text("x11.x_server_does_not_answer")))

    def _say_saver(self, saver: Reading[bool]) -> None:
        before, self.saver = self.saver.value, saver
        if saver.value is not before:
            self.saver_changed()


NO_MANAGER: Final = Text("full_screen.window_manager_does_not_tell")
WAYLAND: Final = Text("full_screen.wayland_does_not_tell_window")
_ACTIVE, _STATE, _FULL, _PID = "_NET_ACTIVE_WINDOW", "_NET_WM_STATE", "_NET_WM_STATE_FULLSCREEN", "_NET_WM_PID"
_LONGEST_STATE: Final = 64


class FullScreen(LineSensor[Server]):
    """Reports FULL_SCREEN: whether the window in the foreground fills a screen and is not skep's, by an X11 window
    manager.

    Only the window's process and whether it fills the screen are read, not its title or contents. Under Wayland,
    programs have no access to each other's windows; only those that use X11 inside it, as many games do, are visible.
    `wait` returns when another window comes to the foreground or its state changes.
    """

    name = "Foreground window"
    conditions = (Condition.FULL_SCREEN,)

    def __init__(self, display: str | None, *, under_wayland: bool = False, is_ours: IsOurs = is_our_process) -> None:
        """`display` as DISPLAY names it; None where there is none."""
        super().__init__(line_to(display, self._watch_root))
        self._under_wayland, self._is_ours = under_wayland, is_ours
        self._watched: Any = None
        self._telling: list[int] = []

    def _watch_root(self, server: Server) -> None:
        self._telling = [server.display.get_atom(name) for name in (_ACTIVE, _STATE)]
        server.root.change_attributes(event_mask=X.PropertyChangeMask)
        self._watched = None

    def _ask(self, server: Server) -> Reading[bool]:
        found = self._fills_screen(server)
        if self._under_wayland and not found:
            return missing(WAYLAND)
        return missing(NO_MANAGER) if found is None else answered(found, Text("full_screen.window_manager"))

    def _absent(self, reason: Text) -> Reading[bool]:
        return missing(WAYLAND if self._under_wayland else Text("full_screen.no_x_server", reason=reason))

    def _silent(self, reason: Text) -> Reading[bool]:
        return silent(Text("full_screen.screen_does_not_say_window", reason=reason))

    def _is_news(self, event: Any) -> bool:
        return getattr(event, "atom", None) in self._telling

    def _fills_screen(self, server: Server) -> bool | None:
        """None if no window manager reports the window in the foreground."""
        server.news()  # discard events; the current state is read below
        active = _numbers(server, server.root, _ACTIVE, Xatom.WINDOW)
        if active is None:
            return None
        if not active or not active[0]:
            return False
        window = server.display.create_resource_object("window", active[0])
        try:
            if self._watched != window:
                self._watched = window
                window.change_attributes(event_mask=X.PropertyChangeMask)
            state = _numbers(server, window, _STATE, Xatom.ATOM) or []
            owner = _numbers(server, window, _PID, Xatom.CARDINAL) or [0]
        except (x_error.BadWindow, x_error.BadDrawable):
            return False  # it was closed meanwhile, which causes a change event
        return server.display.get_atom(_FULL) in state and not self._is_ours(owner[0])


def _numbers(server: Server, window: Any, name: str, kind: int) -> list[int] | None:
    """A window's property; None if it has none. Raises BadWindow."""
    atom = server.display.get_atom(name)
    found = window.get_property(atom, kind, 0, _LONGEST_STATE)
    return None if found is None else [int(each) for each in found.value]
