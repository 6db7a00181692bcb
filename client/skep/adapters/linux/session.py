"""Selection of the sensors for a Linux computer and its desktop session, and whether there is a graphical session.

It uses only the environment and the login manager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skep.adapters.linux import logind
from skep.adapters.linux.bus import Bus, session_address, system_address
from skep.adapters.linux.idle_services import MutterInput, ScreenSaverInput
from skep.adapters.linux.screen_state import Inhibitors, ScreenLock
from skep.adapters.linux.swayidle import SwayidleInput
from skep.adapters.linux.system_bus import LogindSleepWatch, NetworkManagerSensor, UPowerSensor
from skep.adapters.linux.x11 import local_display
from skep.adapters.linux.x11_sensors import FullScreen, X11Input
from skep.adapters.sensors.idle import FirstOf
from skep.adapters.sensors.source import Absent, Line, Silent
from skep.core.policy.conditions import Condition
from skep.ports import Post, Sensor


def is_wayland(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("WAYLAND_DISPLAY")) or environment.get("XDG_SESSION_TYPE") == "wayland"


def graphical(environment: Mapping[str, str]) -> bool:
    """Whether this user has a session at a screen of this computer, by the environment or the login manager.

    A display forwarded from another computer is not a screen of this one. Takes a second if the system bus hangs; if
    the login manager does not answer, a session is assumed.
    """
    if is_wayland(environment) or local_display(environment) is not None:
        return True
    login_manager = Line(lambda: Bus(system_address(environment)))
    try:
        return bool(login_manager.ask(logind.graphical_sessions))
    except Absent:
        return False
    except Silent:
        return True
    finally:
        login_manager.drop()


def of_the_machine(environment: Mapping[str, str], post: Post) -> Sequence[Sensor]:
    """Sensors of the computer itself, from system services. None is opened yet."""
    system = system_address(environment)
    return (UPowerSensor(system), NetworkManagerSensor(system), LogindSleepWatch(system, post))


def of_the_person(environment: Mapping[str, str]) -> Sequence[Sensor]:
    """Sensors of the user's session. None is opened yet; no two report the same condition."""
    session, system = session_address(environment), system_address(environment)
    display, wayland = local_display(environment), is_wayland(environment)
    x11 = None if wayland else X11Input(display)
    # the X server in a Wayland session sees only input into its own windows
    direct: Sensor = SwayidleInput(environment) if x11 is None else x11
    lock = ScreenLock(session, system, None if x11 is None else lambda: x11.saver)
    if x11 is not None:
        # else a user who wakes a dark screen would count as away until the lock is checked again
        x11.saver_changed = lock.look_again
    return [
        FirstOf(Condition.INPUT, [MutterInput(session), direct, ScreenSaverInput(session), logind.LogindInput(system)]),
        FullScreen(display, under_wayland=wayland),
        lock,
        Inhibitors(session, system),
    ]
