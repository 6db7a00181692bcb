"""Whether the window in the foreground fills a screen and is not skep's, as an X11 window manager tells it.

Only whose window it is and whether it fills the screen are read, no title and no contents. Under Wayland programs are not
told about each other's windows; only those that run on X11 inside it, as many games do, can be seen.
"""

from __future__ import annotations

from typing import Any, Final

from Xlib import X, Xatom
from Xlib import error as x_error

from skep.adapters.linux.bus import Absent, Silent
from skep.adapters.linux.x11 import Server, XLine
from skep.adapters.process.own_processes import IsOurs, is_our_process
from skep.adapters.sensors.source import SourceSensor
from skep.core.policy.conditions import Condition, Seen, answered, missing, silent
from skep.core.text import Text

NO_MANAGER: Final = Text("full_screen.window_manager_does_not_tell")
WAYLAND: Final = Text("full_screen.wayland_does_not_tell_window")
_ACTIVE, _STATE, _FULL, _PID = "_NET_ACTIVE_WINDOW", "_NET_WM_STATE", "_NET_WM_STATE_FULLSCREEN", "_NET_WM_PID"
_LONGEST_STATE: Final = 64


class FullScreen(SourceSensor):
    """Tells FULL_SCREEN; `wait` returns when another window comes to the foreground or its state changes."""

    def __init__(self, display: str | None, *, under_wayland: bool = False, is_ours: IsOurs = is_our_process) -> None:
        """`display` as DISPLAY names it; None where there is none."""
        super().__init__("Foreground window", [Condition.FULL_SCREEN])
        self._line = XLine(display, self._watch_root)
        self._under_wayland, self._is_ours = under_wayland, is_ours
        self._watched: Any = None
        self._telling: list[int] = []

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself."""
        return self._line.open_server is not None

    def _look(self) -> Seen:
        try:
            server = self._line.server()
            found = server.ask(lambda: self._fills_screen(server))
        except Absent as error:
            self._let_go()
            return {
                Condition.FULL_SCREEN: missing(
                    WAYLAND if self._under_wayland else Text("full_screen.no_x_server", reason=error.reason)
                )
            }
        except Silent as error:
            self._let_go()
            return {Condition.FULL_SCREEN: silent(Text("full_screen.screen_does_not_say_window", reason=error.reason))}
        if self._under_wayland and not found:
            return {Condition.FULL_SCREEN: missing(WAYLAND)}
        if found is None:
            return {Condition.FULL_SCREEN: missing(NO_MANAGER)}
        return {Condition.FULL_SCREEN: answered(found, Text("full_screen.window_manager"))}

    def _fills_screen(self, server: Server) -> bool | None:
        """None where no window manager says which window is in the foreground."""
        while server.display.pending_events():
            server.display.next_event()  # whatever changed is read anew below
        active = _numbers(server, server.root, _ACTIVE, Xatom.WINDOW)
        if active is None:
            return None
        if not active or not active[0]:
            return False
        window = server.display.create_resource_object("window", active[0])
        try:
            self._watch(window)
            state = _numbers(server, window, _STATE, Xatom.ATOM) or []
            owner = _numbers(server, window, _PID, Xatom.CARDINAL) or [0]
        except (x_error.BadWindow, x_error.BadDrawable):
            return False  # it was closed while we looked, which is told as a change
        return server.display.get_atom(_FULL) in state and not self._is_ours(owner[0])

    def _watch_root(self, server: Server) -> None:
        self._telling = [server.display.get_atom(name) for name in (_ACTIVE, _STATE)]
        server.root.change_attributes(event_mask=X.PropertyChangeMask)

    def _watch(self, window: Any) -> None:
        if self._watched != window:
            self._watched = window
            window.change_attributes(event_mask=X.PropertyChangeMask)

    def _await(self, deadline: float) -> None:
        server = self._line.open_server
        if server is None:
            super()._await(deadline)
            return
        try:
            server.await_event(deadline, self._wake, lambda event: getattr(event, "atom", None) in self._telling)
        except Silent:
            self._let_go()

    def _cut_off(self) -> None:
        self._line.cut()

    def _let_go(self) -> None:
        self._line.drop()
        self._watched = None


def _numbers(server: Server, window: Any, name: str, kind: int) -> list[int] | None:
    """A window's property; None where it has none. Raises BadWindow."""
    atom = server.display.get_atom(name)
    found = window.get_property(atom, kind, 0, _LONGEST_STATE)
    return None if found is None else [int(each) for each in found.value]
