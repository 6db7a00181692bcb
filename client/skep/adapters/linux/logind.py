"""systemd's login manager: this user's graphical sessions, whether they are idle or locked, and idle inhibitors."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any, Final

from skep.adapters.linux.bus import CHANGED, Bus, Recently, Target
from skep.adapters.sensors.idle import IdleJudge
from skep.adapters.sensors.source import Absent, Line, LineSensor
from skep.core.policy.conditions import Condition, Reading, answered, missing, silent
from skep.core.text import Text

_NAME: Final = "org.freedesktop.login1"
MANAGER: Final = Target(_NAME, "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_GRAPHICAL: Final = {"x11", "wayland", "mir"}


def listen(bus: Bus) -> None:
    """Subscribe to changes of the manager and of every session. Raises Silent."""
    bus.listen(MANAGER, CHANGED)


def graphical_sessions(bus: Bus) -> Sequence[Target]:
    """This user's sessions at a screen. Raises Absent, Silent."""
    rows = bus.call(MANAGER, "ListSessions")[0]
    own = os.getuid()
    sessions = [Target(_NAME, path, f"{_NAME}.Session") for _id, owner, _name, _seat, path in rows if owner == own]
    return [session for session in sessions if _is_graphical(bus, session)]


def _is_graphical(bus: Bus, session: Target) -> bool:
    try:
        told = bus.get_all(session)
    except Absent:
        return False  # it ended meanwhile
    at_a_screen = told.get("Type") in _GRAPHICAL and not told.get("Remote")
    return at_a_screen and told.get("Class") == "user" and told.get("State") != "closing"


def locked(bus: Bus, sessions: Sequence[Target]) -> bool:
    """Whether all of them are locked. Raises Absent where there are none, Silent."""
    if not sessions:
        raise Absent(Text("logind_session.no_session_screen"))
    return all(bool(bus.get(session, "LockedHint")) for session in sessions)


def idle_inhibitors(bus: Bus) -> Sequence[tuple[str, int]]:
    """Programs that keep the computer from becoming idle: name and process id. Raises Absent, Silent."""
    rows: Sequence[Any] = bus.call(MANAGER, "ListInhibitors")[0]
    return [
        (str(who), int(pid)) for what, who, _, mode, _, pid in rows if mode == "block" and "idle" in what.split(":")
    ]


class LogindInput(LineSensor[Bus]):
    """Reports INPUT, coarsely: until the login manager reports an idle session, the computer counts as in use.

    The idle hint is set by the desktop, often minutes late and often never.
    """

    name = "logind"
    conditions = (Condition.INPUT,)

    def __init__(self, address: str) -> None:
        """`address` of the system bus."""
        super().__init__(Line(lambda: Bus(address), listen))
        self._judge, self._sessions = IdleJudge(Text("inhibitors.login_manager")), Recently(graphical_sessions)

    def _ask(self, bus: Bus) -> Reading[float]:
        since = self._sessions.ask(bus, lambda sessions: [_idle_since(bus, session) for session in sessions])
        if not since:
            return missing(Text("logind_session.login_manager_knows_no_session"))
        known = [each for each in since if each is not None]
        if len(known) < len(since):
            return answered(0.0, Text("logind_session.login_manager_says_only_session"))
        return self._judge.judge(time.monotonic() - max(known))

    def _absent(self, _reason: Text) -> Reading[float]:
        return missing(Text("logind_session.no_login_manager_here_knows"))

    def _silent(self, reason: Text) -> Reading[float]:
        return silent(Text("logind_session.login_manager_does_not_answer", reason=reason))


def _idle_since(bus: Bus, session: Target) -> float | None:
    """Start of idleness in seconds on the monotonic clock, which does not jump; None while the session is not idle."""
    if not bus.get(session, "IdleHint"):
        return None
    return float(bus.get(session, "IdleSinceHintMonotonic")) / 1e6
