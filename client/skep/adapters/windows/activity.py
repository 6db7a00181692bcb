"""The time since the last input, lock and full screen on Windows. Not yet run there: tested with stand-in libraries
only.

Windows reports to administrators only which program keeps the screen on.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, Final

from skep.adapters.sensors.idle import IdleJudge
from skep.adapters.sensors.source import SourceSensor
from skep.core.policy.conditions import Condition, Reading, Seen, answered, missing, silent
from skep.core.text import Text, verbatim

_TICKS: Final = 1 << 32
_LATE_TICKS: Final = 1000
"""Milliseconds by which the time of input may exceed a tick count that was read after it."""
_FULL_SCREEN_STATES: Final = {
    3,  # QUNS_RUNNING_D3D_FULL_SCREEN
    4,  # QUNS_PRESENTATION_MODE
}
_BUSY: Final = 2  # QUNS_BUSY: a full-screen window
_CURRENT_SESSION: Final = -1
_SESSION_INFO_EX: Final = 25  # WTSSessionInfoEx
_FLAGS_OFFSET: Final = 16  # level 0, padding 4, session id 8, state 12, flags 16
_LOCKED, _UNLOCKED = 0, 1

_WINDOWS: Final = verbatim("Windows")

Load = Callable[[str], Any]


class LastInput(ctypes.Structure):
    """LASTINPUTINFO: its own size in bytes, and the tick count in milliseconds at the last input."""

    _fields_ = (("size", ctypes.c_uint32), ("tick", ctypes.c_uint32))


class WindowsActivity(SourceSensor):
    """Reports INPUT, LOCKED and FULL_SCREEN, by polling only."""

    name = "Windows"
    conditions = (Condition.INPUT, Condition.LOCKED, Condition.FULL_SCREEN)

    def __init__(self, load: Load | None = None, own_pid: Callable[[int], bool] = lambda _pid: False) -> None:
        """`load` opens a system library by name; `own_pid` returns whether a process is skep's."""
        super().__init__()
        self._load = load or _open_library
        self._own_pid = own_pid
        self._judge = IdleJudge(_WINDOWS)

    def _look(self) -> Seen:
        return {
            Condition.INPUT: _asked(self._input),
            Condition.LOCKED: _asked(self._locked),
            Condition.FULL_SCREEN: _asked(self._full_screen),
        }

    def _input(self) -> Reading[float]:
        user, kernel = self._load("user32"), self._load("kernel32")
        last = LastInput(ctypes.sizeof(LastInput), 0)
        if not user.GetLastInputInfo(ctypes.byref(last)):
            return silent(Text("activity.windows_does_not_say_when"))
        passed = (int(kernel.GetTickCount()) - last.tick) % _TICKS
        # the count restarts every 49.7 days, and a key may be pressed between the two queries
        if passed >= _TICKS - _LATE_TICKS:
            passed = 0
        return self._judge.judge(passed / 1000)

    def _locked(self) -> Reading[bool]:
        sessions = self._load("wtsapi32")
        buffer, size = ctypes.c_void_p(), ctypes.c_uint32()
        wanted = (ctypes.c_void_p(None), ctypes.c_int(_CURRENT_SESSION), ctypes.c_int(_SESSION_INFO_EX))
        if not sessions.WTSQuerySessionInformationW(*wanted, ctypes.byref(buffer), ctypes.byref(size)):
            return silent(Text("activity.windows_lock_unknown"))
        try:
            flags = _flags(buffer, size.value)
        finally:
            sessions.WTSFreeMemory(buffer)
        if flags not in {_LOCKED, _UNLOCKED}:
            return silent(Text("activity.windows_does_not_know_whether"))
        return answered(flags == _LOCKED, _WINDOWS)

    def _full_screen(self) -> Reading[bool]:
        state = ctypes.c_int()
        if self._load("shell32").SHQueryUserNotificationState(ctypes.byref(state)):
            return silent(Text("activity.windows_full_screen_unknown"))
        if state.value == _BUSY:
            return answered(not self._own_pid(self._foreground()), _WINDOWS)
        return answered(state.value in _FULL_SCREEN_STATES, _WINDOWS)

    def _foreground(self) -> int:
        user, pid = self._load("user32"), ctypes.c_uint32()
        user.GetForegroundWindow.restype = ctypes.c_void_p
        user.GetWindowThreadProcessId(ctypes.c_void_p(user.GetForegroundWindow()), ctypes.byref(pid))
        return pid.value


def _asked(question: Callable[[], Reading[Any]]) -> Reading[Any]:
    try:
        return question()
    except AttributeError:
        return missing(Text("activity.windows_too_old_tell"))
    except OSError as error:
        return silent(Text("activity.windows_does_not_answer", reason=str(error)))


def _flags(buffer: ctypes.c_void_p, size: int) -> int | None:
    if buffer.value is None or size < _FLAGS_OFFSET + 4:
        return None
    found: int = struct.unpack_from("<i", ctypes.string_at(buffer.value, _FLAGS_OFFSET + 4), _FLAGS_OFFSET)[0]
    return found


def _open_library(name: str) -> Any:
    opened: Any = ctypes.WinDLL(name)  # type: ignore[attr-defined, unused-ignore] # only Windows has it
    return opened
