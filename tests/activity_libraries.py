"""Stand-ins for the system libraries of macOS and Windows behind ctypes. Numbers are what C would return."""

import ctypes
import struct


class Function:
    """A foreign function: accepts what ctypes accepts, and allows its types to be declared."""

    def __init__(self, answer):
        self.answer = answer
        self.argtypes = self.restype = None

    def __call__(self, *values):
        return self.answer(*values)


class Mac:
    """`idle` seconds, `locked`; `session` is False if no user is logged in at the screen."""

    def __init__(self, *, idle=3.5, locked=False, session=True):
        self.idle, self.locked, self.session = idle, locked, session
        self.held = 0
        self.CGEventSourceSecondsSinceLastEventType = Function(self._idle)
        self.CGSessionCopyCurrentDictionary = Function(lambda: self._hold(0xD1C7) if self.session else None)
        self.CFStringCreateWithCString = Function(
            lambda _none, text, _utf8: self._hold(text == b"CGSSessionScreenIsLocked")
        )
        self.CFDictionaryGetValue = Function(lambda held, key: 0xB001 if held and key and self.locked else None)
        self.CFBooleanGetValue = Function(lambda value: value == 0xB001)
        self.CFRelease = Function(self._release)

    def load(self, path):
        assert path.startswith("/System/Library/Frameworks/")
        return self

    def _idle(self, state, kind):
        assert (state, kind) == (0, 0xFFFFFFFF)
        return self.idle

    def _hold(self, thing):
        self.held += 1
        return thing

    def _release(self, _thing):
        self.held -= 1


class Windows:
    """Ticks are milliseconds since the start, in 32 bits; `state` is the result of SHQueryUserNotificationState."""

    def __init__(self, *, now=100_000, last=96_500, flags=1, state=5, foreground_pid=4711):
        self.now, self.last, self.flags, self.state, self.foreground_pid = now, last, flags, state, foreground_pid
        self.works, self.held = True, []
        self.GetLastInputInfo = Function(self._last_input)
        self.GetTickCount = Function(lambda: self.now)
        self.WTSQuerySessionInformationW = Function(self._session)
        self.WTSFreeMemory = Function(lambda _buffer: self.held.pop())
        self.SHQueryUserNotificationState = Function(self._notification)
        self.GetForegroundWindow = Function(lambda: 0xF06E)
        self.GetWindowThreadProcessId = Function(self._owner)

    def load(self, name):
        assert name in {"user32", "kernel32", "wtsapi32", "shell32"}
        return self

    def _last_input(self, info):
        assert info._obj.size == 8
        info._obj.tick = self.last
        return int(self.works)

    def _session(self, _server, session, kind, buffer, size):
        assert (session.value, kind.value) == (-1, 25)
        if not self.works:
            return 0
        body = struct.pack("<IiIii", 1, 0, 2, 0, self.flags) + bytes(200)
        self.held.append(ctypes.create_string_buffer(body))
        buffer._obj.value = ctypes.addressof(self.held[-1])
        size._obj.value = len(body)
        return 1

    def _notification(self, state):
        state._obj.value = self.state
        return 0 if self.works else -2147467259

    def _owner(self, window, pid):
        assert window.value == 0xF06E
        pid._obj.value = self.foreground_pid
        return 1
