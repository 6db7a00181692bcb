"""Whether the screen is locked, or dark by its saver: asked of screen lockers, the login manager and the X server.

Lockers that tell nobody (i3lock, swaylock and their like) cannot be seen; behind them the screen counts as not locked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from skep.adapters.linux import logind_session, screensaver
from skep.adapters.linux.bus import Bus, Line, Recently
from skep.adapters.linux.witnesses import any_of, await_news, heard
from skep.adapters.sensors.source import SourceSensor
from skep.core.policy.conditions import Condition, Reading, Seen
from skep.core.text import Text

NOBODY_TELLS: Final = Text("screen_lock.no_screen_locker_here_tells")


class ScreenLock(SourceSensor):
    """Tells LOCKED: yes when one witness says so, silent when one that should know does not answer."""

    def __init__(
        self, session: str | None, system: str | None, saver: Callable[[], Reading[bool]] | None = None
    ) -> None:
        """Addresses of the two buses, None where there is none; `saver` tells what an X server's own saver was last."""
        super().__init__("Screen lock", [Condition.LOCKED])
        self._session = Line(session, screensaver.listen)
        self._system = Line(system, lambda bus: bus.listen(logind_session.CHANGES, "PropertiesChanged"))
        self._saver = saver
        self._savers, self._sessions = Recently(screensaver.present), Recently(logind_session.graphical_sessions)

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself: lockers and the login manager by signals, and of its saver the X server's input."""
        return self._session.open_bus is not None or self._system.open_bus is not None

    def _look(self) -> Seen:
        said = [
            heard(Text("screen_lock.screen_locker"), self._session, self._ask_lockers),
            heard(Text("inhibitors.login_manager"), self._system, self._ask_login_manager),
        ]
        if self._saver is not None:
            said.append(self._saver())
        return {Condition.LOCKED: any_of(said, NOBODY_TELLS)}

    def _ask_lockers(self, bus: Bus) -> bool:
        return self._savers.ask(bus, lambda savers: screensaver.locked(bus, savers))

    def _ask_login_manager(self, bus: Bus) -> bool:
        return self._sessions.ask(bus, lambda sessions: logind_session.locked(bus, sessions))

    def _await(self, deadline: float) -> None:
        await_news(deadline, self._wake, self._session, self._system)

    def _cut_off(self) -> None:
        self._session.cut()
        self._system.cut()

    def _let_go(self) -> None:
        self._session.drop()
        self._system.drop()
