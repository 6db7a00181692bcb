"""Sensors of whether the screen is locked, and of whether a program keeps it on; each combines several sources.

The sources are the desktop's services on the session bus, the login manager and the X server's screen saver; each of
them may be missing or silent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from skep.adapters.linux import logind
from skep.adapters.linux.bus import Bus, Recently, Target
from skep.adapters.process.own_processes import IsOurs, is_our_process
from skep.adapters.sensors.source import Absent, Line, Silent, SourceSensor
from skep.core.policy.conditions import Condition, Reading, Seen, Source, answered, missing, silent
from skep.core.text import Text


def heard(who: Text, line: Line[Bus], ask: Callable[[Bus], bool]) -> Reading[bool]:
    """The reading of one source on a bus."""
    try:
        return answered(line.ask(ask), who)
    except Absent as error:
        return missing(Text("witnesses.cannot_tell", who=who, reason=error.reason))
    except Silent as error:
        return silent(Text("witnesses.does_not_answer", who=who, reason=error.reason))


def any_of(said: Sequence[Reading[bool]], otherwise: Text) -> Reading[bool]:
    """True if one is true; else silent if one is; else False if one answers; else missing, noted `otherwise`."""
    yes = [each for each in said if each.value]
    unsure = [each for each in said if each.source is Source.SILENT]
    no = [each for each in said if each.source is Source.ANSWERS]
    return next(iter((*yes, *unsure, *no)), missing(otherwise))


def _running(targets: Sequence[Target]) -> Recently:
    """Those of these services that are running."""
    return Recently(lambda bus: [target for target in targets if bus.has(target.service)])


# --- locked

SAVERS: Final = tuple(
    Target(name, f"/{name.replace('.', '/')}", name)
    for name in (
        "org.gnome.ScreenSaver",
        "org.freedesktop.ScreenSaver",
        "org.cinnamon.ScreenSaver",
        "org.mate.ScreenSaver",
        "org.xfce.ScreenSaver",
    )
)
"""GNOME, KDE, Cinnamon, MATE and Xfce each use their own name."""
FREEDESKTOP_SAVER: Final = SAVERS[1]
NO_LOCKER_TELLS: Final = Text("screen_lock.no_screen_locker_here_tells")


class ScreenLock(SourceSensor):
    """Reports LOCKED: true if one source says so, silent if one that should know does not answer.

    Lockers without an interface (i3lock, swaylock and similar) cannot be detected; with them the screen counts as
    unlocked.
    """

    name = "Screen lock"
    conditions = (Condition.LOCKED,)

    def __init__(
        self, session: str | None, system: str | None, saver: Callable[[], Reading[bool]] | None = None
    ) -> None:
        """Addresses of the two buses, None if there is none; `saver` returns the last state of the X server's screen
        saver.

        Changes come from the buses' signals; changes of the X server's screen saver come from its input sensor.
        """
        self._session = Line(lambda: Bus(session), _listen_to_savers)
        self._system = Line(lambda: Bus(system), logind.listen)
        super().__init__(self._session, self._system)
        self._saver = saver
        self._savers, self._sessions = _running(SAVERS), Recently(logind.graphical_sessions)

    def _look(self) -> Seen:
        said = [
            heard(Text("screen_lock.screen_locker"), self._session, self._ask_savers),
            heard(Text("inhibitors.login_manager"), self._system, self._ask_login_manager),
        ]
        if self._saver is not None:
            said.append(self._saver())
        return {Condition.LOCKED: any_of(said, NO_LOCKER_TELLS)}

    def _ask_savers(self, bus: Bus) -> bool:
        return self._savers.ask(bus, lambda savers: _locked(bus, savers))

    def _ask_login_manager(self, bus: Bus) -> bool:
        return self._sessions.ask(bus, lambda sessions: logind.locked(bus, sessions))


def _listen_to_savers(bus: Bus) -> None:
    for saver in SAVERS:
        bus.listen(saver, "ActiveChanged")


def _locked(bus: Bus, savers: Sequence[Target]) -> bool:
    """Whether one of them is active. Raises Absent if none can tell, Silent."""
    said = []
    for saver in savers:
        with suppress(Absent):
            said.append(bus.call(saver, "GetActive")[0])
    if not said:
        raise Absent(Text("screensaver.no_screen_saver_tells_whether"))
    if any(not isinstance(each, bool) for each in said):
        raise Silent(Text("screensaver.screen_saver_answer_neither_yes"))
    return any(said)


# --- kept awake

NOBODY_LISTS: Final = Text("inhibitors.nothing_here_tells_whether_program")
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
"""Its inhibitors at the login manager repeat those that programs requested from it, including skep's."""
_KDE_SCREEN: Final = 4


class Inhibitors(SourceSensor):
    """Reports INHIBITED, e.g. during a call or a film: true if one source says so, silent if one that should know does
    not answer.

    GNOME's session manager (also in MATE, Cinnamon and others), KDE's power management and systemd's login manager list
    the programs; Xfce and others report only that one exists. Requests to the compositor alone (Wayland's idle
    inhibitors, XScreenSaverSuspend) are not visible. skep's own requests never count.
    """

    name = "Idle inhibitors"
    conditions = (Condition.INHIBITED,)
    tells = False

    def __init__(self, session: str | None, system: str | None, is_ours: IsOurs = is_our_process) -> None:
        """Addresses of the two buses, None where there is none."""
        self._session, self._system = Line(lambda: Bus(session), _listen), Line(lambda: Bus(system), logind.listen)
        super().__init__(self._session, self._system)
        self._is_ours, self._managers = is_ours, _running(tuple(_LISTS))

    def _look(self) -> Seen:
        said = [
            heard(Text("inhibitors.desktop"), self._session, self._desktop_is_inhibited),
            heard(Text("inhibitors.login_manager"), self._system, self._login_is_inhibited),
        ]
        return {Condition.INHIBITED: any_of(said, NOBODY_LISTS)}

    def _desktop_is_inhibited(self, bus: Bus) -> bool:
        return self._managers.ask(bus, lambda managers: _inhibited(bus, managers))

    def _login_is_inhibited(self, bus: Bus) -> bool:
        return any(
            who not in {OUR_NAME, _GNOME_PASSES_ON} and not self._is_ours(pid)
            for who, pid in logind.idle_inhibitors(bus)
        )


def _listen(bus: Bus) -> None:
    bus.listen(SESSION_MANAGER, "InhibitorAdded", "InhibitorRemoved")
    bus.listen(KDE, "InhibitionsChanged")
    bus.listen(POWER, "HasInhibitChanged")


def _inhibited(bus: Bus, managers: Sequence[Target]) -> bool:
    """From the first source that can tell; later ones are less precise. Raises Absent, Silent."""
    for manager in managers:
        with suppress(Absent):
            return _LISTS[manager](bus)
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
        return False  # it was withdrawn meanwhile


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
        return True  # the program is unknown; assume that it is not skep


def _others(names: Sequence[str]) -> bool:
    return any(name != OUR_NAME for name in names)


_LISTS: Final = {SESSION_MANAGER: _by_session_manager, KDE: _by_kde, POWER: _by_power_manager}
"""The query of each source, the most precise first."""
