"""systemd's login manager: this user's graphical sessions, whether they are idle or locked, and who inhibits idle.

Its idle hint is what a desktop chose to tell it, often minutes late and often never; it can only say that nobody is there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, Final

from skep.adapters.linux.bus import Absent, Bus, Line, Recently, Silent, Target
from skep.adapters.sensors.idle_check import IdleJudge
from skep.adapters.sensors.source import SourceSensor
from skep.core.policy.conditions import Condition, Seen, answered, missing, silent
from skep.core.text import Text

_NAME: Final = "org.freedesktop.login1"
MANAGER: Final = Target(_NAME, "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
CHANGES: Final = Target(_NAME, "/", "org.freedesktop.DBus.Properties")
_GRAPHICAL: Final = {"x11", "wayland", "mir"}
_BLOCK: Final = "block"


def graphical_sessions(bus: Bus, uid: int | None = None) -> Sequence[Target]:
    """The sessions at a screen that belong to a user, by default this one. Raises Absent, Silent."""
    wanted = os.getuid() if uid is None else uid
    rows = bus.call(MANAGER, "ListSessions")[0]
    sessions = [Target(_NAME, path, f"{_NAME}.Session") for _id, owner, _name, _seat, path in rows if owner == wanted]
    return [session for session in sessions if _is_graphical(bus, session)]


def _is_graphical(bus: Bus, session: Target) -> bool:
    try:
        told = (bus.get(session, "Type"), bus.get(session, "Class"), bus.get(session, "Remote"))
        return told[0] in _GRAPHICAL and told[1] == "user" and not told[2] and bus.get(session, "State") != "closing"
    except Absent:
        return False  # it ended while we looked


def locked(bus: Bus, sessions: Sequence[Target]) -> bool:
    """Whether all of them are locked. Raises Absent where there are none, Silent."""
    if not sessions:
        raise Absent(Text("logind_session.no_session_screen"))
    return all(bool(bus.get(session, "LockedHint")) for session in sessions)


def idle_inhibitors(bus: Bus) -> Sequence[tuple[str, int]]:
    """Who keeps the computer from becoming idle: name and process id. Raises Absent, Silent."""
    rows: Sequence[Any] = bus.call(MANAGER, "ListInhibitors")[0]
    return [(str(who), int(pid)) for what, who, _, mode, _, pid in rows if mode == _BLOCK and "idle" in what.split(":")]


class LogindInput(SourceSensor):
    """Tells INPUT, coarsely: until the login manager says that the session is idle, somebody counts as there."""

    def __init__(self, address: str) -> None:
        """`address` of the system bus."""
        super().__init__("logind", [Condition.INPUT])
        self._line = Line(address, lambda bus: bus.listen(CHANGES, "PropertiesChanged"))
        self._judge, self._sessions = IdleJudge(Text("inhibitors.login_manager")), Recently(graphical_sessions)

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself."""
        return self._line.open_bus is not None

    def _look(self) -> Seen:
        try:
            since = self._line.ask(self._idle_since)
        except Absent:
            self._sessions.forget()
            return {Condition.INPUT: missing(Text("logind_session.no_login_manager_here_knows"))}
        except Silent as error:
            self._let_go()
            return {Condition.INPUT: silent(Text("logind_session.login_manager_does_not_answer", reason=error.reason))}
        if not since:
            return {Condition.INPUT: missing(Text("logind_session.login_manager_knows_no_session"))}
        known = [each for each in since if each is not None]
        if len(known) < len(since):
            return {Condition.INPUT: answered(0.0, Text("logind_session.login_manager_says_only_session"))}
        return {Condition.INPUT: self._judge.judge(min(time.monotonic() - each for each in known))}

    def _idle_since(self, bus: Bus) -> Sequence[float | None]:
        return [_idle_since(bus, session) for session in self._sessions.on(bus)]

    def _await(self, deadline: float) -> None:
        bus = self._line.open_bus
        if bus is None:
            super()._await(deadline)
            return
        try:
            bus.await_signal(deadline, self._wake)
        except Silent:
            self._let_go()

    def _cut_off(self) -> None:
        self._line.cut()

    def _let_go(self) -> None:
        self._line.drop()


def _idle_since(bus: Bus, session: Target) -> float | None:
    """On the monotonic clock, in seconds, which the wall clock's jumps leave alone; None while it is not idle."""
    if not bus.get(session, "IdleHint"):
        return None
    return float(bus.get(session, "IdleSinceHintMonotonic")) / 1e6
