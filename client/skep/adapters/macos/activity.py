"""The time since the last input and the screen lock on macOS. Not yet run on a Mac: tested with a stand-in library
only.

macOS requires a permission to read which window is in the foreground, or which program keeps the screen on.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from skep.adapters.sensors.idle import IdleJudge
from skep.adapters.sensors.source import SourceSensor
from skep.core.policy.conditions import Condition, Seen, answered, missing, silent
from skep.core.text import Text, verbatim

_GRAPHICS: Final = "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics"
_FOUNDATION: Final = "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation"
_OWN_SESSION: Final = 0  # kCGEventSourceStateCombinedSessionState
_ANY_INPUT: Final = 0xFFFFFFFF  # kCGAnyInputEventType
_UTF8: Final = 0x08000100  # kCFStringEncodingUTF8
_LOCKED_KEY: Final = b"CGSSessionScreenIsLocked"

Load = Callable[[str], Any]


_MACOS: Final = verbatim("macOS")


class MacActivity(SourceSensor):
    """Reports INPUT and LOCKED, by polling only."""

    name = "Quartz event services"
    conditions = (Condition.INPUT, Condition.LOCKED)

    def __init__(self, load: Load = ctypes.CDLL) -> None:
        super().__init__()
        self._load = load
        self._libraries: tuple[Any, Any] | None = None
        self._judge = IdleJudge(_MACOS)

    def _look(self) -> Seen:
        try:
            graphics, foundation = self._loaded()
            idle = float(graphics.CGEventSourceSecondsSinceLastEventType(_OWN_SESSION, _ANY_INPUT))
            locked = _is_locked(graphics, foundation)
        except (OSError, AttributeError) as error:
            told = silent(Text("activity.macos_does_not_say_when", reason=str(error)))
            return {Condition.INPUT: told, Condition.LOCKED: told}
        return {
            Condition.INPUT: self._judge.judge(idle),
            Condition.LOCKED: missing(Text("activity.nobody_logged_screen"))
            if locked is None
            else answered(locked, _MACOS),
        }

    def _loaded(self) -> tuple[Any, Any]:
        """Raises OSError, AttributeError if a library or a function is missing."""
        if self._libraries is None:
            self._libraries = _prepared(self._load(_GRAPHICS), self._load(_FOUNDATION))
        return self._libraries


def _prepared(graphics: Any, foundation: Any) -> tuple[Any, Any]:
    pointer = ctypes.c_void_p
    graphics.CGEventSourceSecondsSinceLastEventType.argtypes = [ctypes.c_int32, ctypes.c_uint32]
    graphics.CGEventSourceSecondsSinceLastEventType.restype = ctypes.c_double
    graphics.CGSessionCopyCurrentDictionary.argtypes = []
    graphics.CGSessionCopyCurrentDictionary.restype = pointer
    foundation.CFStringCreateWithCString.argtypes = [pointer, ctypes.c_char_p, ctypes.c_uint32]
    foundation.CFStringCreateWithCString.restype = pointer
    foundation.CFDictionaryGetValue.argtypes = [pointer, pointer]
    foundation.CFDictionaryGetValue.restype = pointer
    foundation.CFBooleanGetValue.argtypes = [pointer]
    foundation.CFBooleanGetValue.restype = ctypes.c_bool
    foundation.CFRelease.argtypes = [pointer]
    foundation.CFRelease.restype = None
    return graphics, foundation


def _is_locked(graphics: Any, foundation: Any) -> bool | None:
    """None if this process belongs to no graphical session."""
    session = graphics.CGSessionCopyCurrentDictionary()
    if not session:
        return None
    key = foundation.CFStringCreateWithCString(None, _LOCKED_KEY, _UTF8)
    try:
        # the key exists only while the screen is locked; its value is owned by the dictionary
        value = foundation.CFDictionaryGetValue(session, key)
        return bool(value) and bool(foundation.CFBooleanGetValue(value))
    finally:
        foundation.CFRelease(key)
        foundation.CFRelease(session)
