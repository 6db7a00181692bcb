"""The connection to an X server: opened with a deadline, cut off when it hangs, never asked what was typed.

It must not decide what a reply means. Whatever python-xlib raises becomes Absent (no X server there) or Silent.
"""

from __future__ import annotations

import re
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from Xlib import error as x_error
from Xlib.display import Display
from Xlib.protocol import rq

from skep.adapters.linux.bus import Absent, Silent
from skep.adapters.sensors.source import Wake, Woken
from skep.core.text import Text

PATIENCE_SECONDS: Final = 1.0
_LOCAL: Final = re.compile(r"^(unix/|unix)?:\d+(\.\d+)?$")

Found = TypeVar("Found")


def local_display(environment: Mapping[str, str]) -> str | None:
    """The X display of this computer's own screen. One forwarded from elsewhere says nothing about who sits here."""
    name = environment.get("DISPLAY", "")
    return name if _LOCAL.match(name) else None


class Server:
    """A connection to the X server of a display, for one thread; `cut` alone may come from another."""

    def __init__(self, name: str) -> None:
        """Raises Absent when no X server is there, Silent when it does not let us in."""
        self.display = _connect(name)
        self.display.set_error_handler(lambda *_ignored: None)

    @property
    def root(self) -> Any:
        return self.display.screen().root

    def fileno(self) -> int:
        return int(self.display.fileno())

    def ask(self, question: Callable[[], Found]) -> Found:
        """What `question`, which uses the display, finds. Raises Silent where the server is gone."""
        try:
            return question()
        except (x_error.ConnectionClosedError, OSError, EOFError, AssertionError) as error:
            raise Silent(Text("x11.x_server_gone", words=_words(error))) from None

    def reply(self, request: rq.ReplyRequest) -> rq.ReplyRequest:
        """A request made with `defer`, answered. Raises Silent when the server hangs or is gone."""

        def answer() -> rq.ReplyRequest:
            deadline = time.monotonic() + PATIENCE_SECONDS
            self.display.flush()
            # sending may have read the answer already, and nothing more would come; only these two tell
            while request._data is None and request._error is None:  # noqa: SLF001 - no public word for it
                if not select.select([self], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    raise Silent(Text("x11.x_server_took_longer_than_2", patience_seconds=PATIENCE_SECONDS))
                self.display.pending_events()
            request.reply()
            return request

        return self.ask(answer)

    def await_event(self, deadline: float, wake: Wake, wanted: Callable[[Any], bool]) -> None:
        """Return when a wanted event came, at `deadline`, on the monotonic clock, or when the wake rang. Raises Silent."""
        # first what came along with an earlier reply, which nobody would wait for any more
        while not self.ask(lambda: self._took(wanted)):
            if wake.wait(deadline - time.monotonic(), self) is not Woken.BY_FILE:
                return

    def _took(self, wanted: Callable[[Any], bool]) -> bool:
        found = False
        while self.display.pending_events():
            found = wanted(self.display.next_event()) or found
        return found

    def cut(self) -> None:
        """End a request under way, from any thread."""
        with suppress(OSError, AttributeError):
            self._socket().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        # not `Display.close`, which waits for a server that may hang
        with suppress(OSError, AttributeError):
            self._socket().close()

    def _socket(self) -> socket.socket:
        line: socket.socket = self.display.display.socket
        return line


def _connect(name: str) -> Display:
    """In a thread that may be left behind: nothing else ends the greeting of a server that hangs."""
    _knock(name)
    made: list[Display] = []
    errors: list[Exception] = []
    late = threading.Event()

    def connect() -> None:
        try:
            display = Display(name)
        except Exception as error:  # noqa: BLE001 - python-xlib raises whatever a broken greeting leads to
            errors.append(error)
            return
        made.append(display)
        if late.is_set():
            display.display.socket.close()

    thread = threading.Thread(target=connect, name="X11 greeting", daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    if errors:
        raise Silent(Text("x11.x_server_does_not_let", words=_words(errors[0])))
    if not made:
        late.set()
        raise Silent(Text("x11.x_server_took_longer_than", patience_seconds=PATIENCE_SECONDS))
    return made[0]


def _knock(name: str) -> None:
    """Raises Absent when no X server listens. python-xlib would try TCP then, and leave both of its sockets open."""
    number = name.rpartition(":")[2].partition(".")[0]
    path = f"/tmp/.X11-unix/X{number}"  # noqa: S108 - where X servers listen, in every system that has them
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(PATIENCE_SECONDS)
        try:
            line.connect(path if Path(path).exists() else f"\0{path}")
        except (FileNotFoundError, ConnectionRefusedError):
            raise Absent(Text("x11.no_x_server_listens", name=name)) from None
        except OSError as error:
            raise Silent(Text("x11.x_server_does_not_let", words=_words(error))) from None


def _words(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0].rstrip(".")[:200] or type(error).__name__


class XLine:
    """A server that is connected to when it is first needed, and again after it failed. `name` None: there is none."""

    def __init__(self, name: str | None, prepare: Callable[[Server], None] = lambda _server: None) -> None:
        """`prepare` is called with each new connection; what it raises counts as a failure to connect."""
        self._name, self._prepare = name, prepare
        self._server: Server | None = None
        self._known = False

    @property
    def open_server(self) -> Server | None:
        return self._server

    def server(self) -> Server:
        """Raises Absent where no X server ever was, else Silent."""
        if self._name is None:
            raise Absent(Text("x11.there_no_x_display"))
        if self._server is None:
            self._server = self._fresh(self._name)
            self._known = True
        return self._server

    def _fresh(self, name: str) -> Server:
        try:
            server = Server(name)
        except Absent as error:
            if self._known:
                raise Silent(Text("x11.x_server_gone_2", reason=error.reason)) from None
            raise
        try:
            server.ask(lambda: self._prepare(server))
        except BaseException:
            server.close()
            raise
        return server

    def cut(self) -> None:
        if (server := self._server) is not None:
            server.cut()

    def drop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
