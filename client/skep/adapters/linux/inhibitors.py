"""Whether another program keeps the screen from going dark, as a call or a film does.

GNOME's session manager (MATE, Cinnamon and others have it too), KDE's power management and systemd's login manager tell
who does; Xfce and others tell only that somebody keeps the computer awake. What a program asks of the compositor alone
(Wayland's idle inhibitors, XScreenSaverSuspend) nobody tells. skep's own requests never count.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from skep.adapters.linux import logind_session
from skep.adapters.linux.bus import Absent, Bus, Line, Recently, Target
from skep.adapters.linux.witnesses import any_of, await_news, heard
from skep.adapters.process.own_processes import IsOurs, is_our_process
from skep.adapters.sensors.source import SourceSensor
from skep.core.policy.conditions import Condition, Seen
from skep.core.text import Text

NOBODY_TELLS: Final = Text("inhibitors.nothing_here_tells_whether_program")
OUR_NAME: Final = "skep"

SESSION_MANAGER: Final = Target("org.gnome.SessionManager", "/org/gnome/SessionManager", "org.gnome.SessionManager")
KDE: Final = Target(
    "org.kde.Solid.PowerManagement.PolicyAgent",
    "/org/kde/Solid/PowerManagement/PolicyAgent",
    "org.kde.Solid.PowerManagement.PolicyAgent",
)
POWER: Final = Target(
    "org.freedesktop.PowerManagement",
    "/org/freedesktop/PowerManagement/Inhibit",
    "org.freedesktop.PowerManagement.Inhibit",
)
_GNOME_IDLE: Final = 8
_GNOME_PASSES_ON: Final = "gnome-session"
"""What it inhibits at the login manager is what it was asked for itself, ours included."""
_KDE_SCREEN: Final = 4


class Inhibitors(SourceSensor):
    """Tells INHIBITED: yes when one witness says so, silent when one that should know does not answer."""

    def __init__(self, session: str | None, system: str | None, is_ours: IsOurs = is_our_process) -> None:
        """Addresses of the two buses, None where there is none."""
        super().__init__("Idle inhibitors", [Condition.INHIBITED])
        self._session, self._system = Line(session, _listen), Line(system, _listen_system)
        self._is_ours, self._managers = is_ours, Recently(_managers)

    def _look(self) -> Seen:
        said = [
            heard(Text("inhibitors.desktop"), self._session, self._desktop_is_inhibited),
            heard(Text("inhibitors.login_manager"), self._system, self._login_is_inhibited),
        ]
        return {Condition.INHIBITED: any_of(said, NOBODY_TELLS)}

    def _desktop_is_inhibited(self, bus: Bus) -> bool:
        return _inhibited(bus, self._managers.on(bus))

    def _login_is_inhibited(self, bus: Bus) -> bool:
        return any(
            who not in {OUR_NAME, _GNOME_PASSES_ON} and not self._is_ours(pid)
            for who, pid in logind_session.idle_inhibitors(bus)
        )

    def _await(self, deadline: float) -> None:
        await_news(deadline, self._wake, self._session, self._system)

    def _cut_off(self) -> None:
        self._session.cut()
        self._system.cut()

    def _let_go(self) -> None:
        self._session.drop()
        self._system.drop()


def _listen(bus: Bus) -> None:
    for name in ("InhibitorAdded", "InhibitorRemoved"):
        bus.listen(SESSION_MANAGER, name)
    bus.listen(KDE, "InhibitionsChanged")
    bus.listen(POWER, "HasInhibitChanged")


def _listen_system(bus: Bus) -> None:
    bus.listen(logind_session.CHANGES, "PropertiesChanged")


def _managers(bus: Bus) -> Sequence[Target]:
    """Those that run now. Raises Silent."""
    return [manager for manager in (SESSION_MANAGER, KDE, POWER) if bus.has(manager.service)]


def _inhibited(bus: Bus, managers: Sequence[Target]) -> bool:
    """By the first that can tell; the later ones tell less exactly. Raises Absent, Silent."""
    ways = {SESSION_MANAGER: _by_session_manager, KDE: _by_kde, POWER: _by_power_manager}
    for manager in managers:
        with suppress(Absent):
            return ways[manager](bus)
    raise Absent(Text("inhibitors.no_session_power_manager_lists"))


def _by_session_manager(bus: Bus) -> bool:
    if not bus.call(SESSION_MANAGER, "IsInhibited", "u", (_GNOME_IDLE,))[0]:
        return False
    paths = bus.call(SESSION_MANAGER, "GetInhibitors")[0]
    return any(_keeps_awake(bus, path) for path in paths)


def _keeps_awake(bus: Bus, path: str) -> bool:
    inhibitor = Target(SESSION_MANAGER.service, path, "org.gnome.SessionManager.Inhibitor")
    try:
        idle = int(bus.call(inhibitor, "GetFlags")[0]) & _GNOME_IDLE
        return bool(idle) and bus.call(inhibitor, "GetAppId")[0] != OUR_NAME
    except Absent:
        return False  # it was taken back while we looked


def _by_kde(bus: Bus) -> bool:
    if not bus.call(KDE, "HasInhibition", "u", (_KDE_SCREEN,))[0]:
        return False
    return _others([name for name, _reason in bus.call(KDE, "ListInhibitions")[0]])


def _by_power_manager(bus: Bus) -> bool:
    if not bus.call(POWER, "HasInhibit")[0]:
        return False
    try:
        return _others(bus.call(POWER, "GetInhibitors")[0])
    except Absent:
        return True  # it does not tell who; the doubt is the person's


def _others(names: Sequence[str]) -> bool:
    return any(name != OUR_NAME for name in names)
