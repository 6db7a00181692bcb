"""Which sensors of the person fit a Linux desktop's session, and whether there is a session at a screen at all.

It must not look at anything but the environment and the login manager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skep.adapters.linux import logind_session
from skep.adapters.linux.bus import Absent, Bus, Silent, session_address, system_address
from skep.adapters.linux.full_screen import FullScreen
from skep.adapters.linux.inhibitors import Inhibitors
from skep.adapters.linux.logind_session import LogindInput
from skep.adapters.linux.mutter import MutterInput
from skep.adapters.linux.screen_lock import ScreenLock
from skep.adapters.linux.screensaver import ScreenSaverInput
from skep.adapters.linux.swayidle import SwayidleInput
from skep.adapters.linux.x11 import local_display
from skep.adapters.linux.x11_idle import X11Input
from skep.adapters.sensors.first_of import FirstOf
from skep.core.policy.conditions import Condition
from skep.ports import Sensor


def is_wayland(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("WAYLAND_DISPLAY")) or environment.get("XDG_SESSION_TYPE") == "wayland"


def graphical(environment: Mapping[str, str]) -> bool:
    """Whether this user has a session at a screen of this computer, by the environment or the login manager.

    A display forwarded to somebody's terminal is no screen of this computer. Takes a second where the system bus hangs;
    a login manager that does not answer counts as one that knows of a session.
    """
    if is_wayland(environment) or local_display(environment) is not None:
        return True
    try:
        bus = Bus(system_address(environment))
    except Absent:
        return False
    except Silent:
        return True
    try:
        return bool(logind_session.graphical_sessions(bus))
    except Absent:
        return False
    except Silent:
        return True
    finally:
        bus.close()


def sensors(environment: Mapping[str, str]) -> Sequence[Sensor]:
    """None opened; no two tell the same condition."""
    session, system = session_address(environment), system_address(environment)
    display, wayland = local_display(environment), is_wayland(environment)
    x11 = None if wayland else X11Input(display)
    # the X server in a Wayland session sees only what is typed into its own windows
    direct: Sensor = SwayidleInput(environment) if x11 is None else x11
    lock = ScreenLock(session, system, None if x11 is None else lambda: x11.saver)
    if x11 is not None:
        # else whoever wakes a dark screen would count as away until the lock is looked at again
        x11.saver_changed = lock.look_again
    return [
        FirstOf(Condition.INPUT, [MutterInput(session), direct, ScreenSaverInput(session), LogindInput(system)]),
        FullScreen(display, under_wayland=wayland),
        lock,
        Inhibitors(session, system),
    ]
