"""The connection to an X server, opened with a deadline and closed when the server hangs. It does not read keystrokes.

Errors of python-xlib become Absent (no X server) or Silent. The SYNC extension, which python-xlib does not support, is
implemented here: its alarm fires on input.
"""

from __future__ import annotations

import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from Xlib import error as x_error
from Xlib.display import Display
from Xlib.protocol import rq

from skep.adapters.sensors.source import Absent, Line, Silent
from skep.core.plain_text import first_line
from skep.core.text import Text

PATIENCE_SECONDS: Final = 1.0
_LOCAL: Final = re.compile(r"^(unix/|unix)?:\d+(\.\d+)?$")

Found = TypeVar("Found")


def local_display(environment: Mapping[str, str]) -> str | None:
    """The X display of this computer's own screen. A forwarded one says nothing about the use of this computer."""
    name = environment.get("DISPLAY", "")
    return name if _LOCAL.match(name) else None


class Server:
    """Implements source.Connection: a connection to the X server of a display."""

    def __init__(self, name: str | None, patience: float) -> None:
        """`name` is None without a display. Raises Absent if there is no X server, Silent if it refuses us."""
        if name is None:
            raise Absent(Text("x11.there_no_x_display"))
        self._patience = patience
        self.display = _connect(name, patience)
        self.display.set_error_handler(lambda *_ignored: None)

    @property
    def root(self) -> Any:
        return self.display.screen().root

    def fileno(self) -> int:
        return int(self.display.fileno())

    def ask(self, question: Callable[[Server], Found]) -> Found:
        """The result of `question`. Raises Silent if the connection is lost, and what the question raises."""
        try:
            return question(self)
        except (x_error.ConnectionClosedError, OSError, EOFError, AssertionError) as error:
            raise Silent(Text("x11.x_server_gone", words=first_line(error))) from None

    def reply(self, request: rq.ReplyRequest) -> rq.ReplyRequest:
        """The answer to a request made with `defer`, within a question. Raises Silent when the server hangs."""
        deadline = time.monotonic() + self._patience
        self.display.flush()
        # sending may have read the answer already, so waiting would block; only these two show it
        while request._data is None and request._error is None:  # noqa: SLF001 - no public word for it
            if not select.select([self], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise Silent(Text("x11.x_server_took_longer_than_2", patience_seconds=self._patience))
            self.display.pending_events()
        request.reply()
        return request

    def news(self) -> Sequence[Any]:
        """The events since the last call, including those that arrived with a reply. Raises Silent."""
        return self.ask(lambda _server: list(self._events()))

    def _events(self) -> Iterator[Any]:
        while self.display.pending_events():
            yield self.display.next_event()

    def cut(self) -> None:
        with suppress(OSError, AttributeError):
            self.display.display.socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        # not `Display.close`, which waits for a server that may hang
        with suppress(OSError, AttributeError):
            self.display.display.socket.close()


def _connect(name: str, patience: float) -> Display:
    """Connect in a thread that may be abandoned: a hanging server's handshake has no timeout. Raises Absent, Silent."""
    _check_listens(name, patience)
    greeting: Future[Display] = Future()

    def connect() -> None:
        try:
            display = Display(name)
        except Exception as error:  # noqa: BLE001 - python-xlib raises whatever a broken greeting leads to
            with suppress(InvalidStateError):  # it took too long and was given up
                greeting.set_exception(Silent(Text("x11.x_server_does_not_let", words=first_line(error))))
            return
        if greeting.set_running_or_notify_cancel():
            greeting.set_result(display)
        else:
            display.display.socket.close()

    threading.Thread(target=connect, name="X11 greeting", daemon=True).start()
    try:
        return greeting.result(patience)
    except TimeoutError:
        if not greeting.cancel():
            return greeting.result()  # it arrived just before the deadline
        raise Silent(Text("x11.x_server_took_longer_than", patience_seconds=patience)) from None


def _check_listens(name: str, patience: float) -> None:
    """Raises Absent when no X server listens. python-xlib would try TCP then, and leave both of its sockets open."""
    number = name.rpartition(":")[2].partition(".")[0]
    path = f"/tmp/.X11-unix/X{number}"  # noqa: S108 - where X servers listen, in every system that has them
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(patience)
        try:
            line.connect(path if Path(path).exists() else f"\0{path}")
        except (FileNotFoundError, ConnectionRefusedError):
            raise Absent(Text("x11.no_x_server_listens", name=name)) from None
        except OSError as error:
            raise Silent(Text("x11.x_server_does_not_let", words=first_line(error))) from None


def line_to(name: str | None, prepare: Callable[[Server], None], patience: float = PATIENCE_SECONDS) -> Line[Server]:
    """A line to the server; one that was running before and is not any more is silent, not absent."""
    was_there = False

    def connect() -> Server:
        nonlocal was_there
        try:
            server = Server(name, patience)
        except Absent as error:
            if was_there:
                raise Silent(Text("x11.x_server_gone_2", reason=error.reason)) from None
            raise
        was_there = True
        return server

    return Line(connect, prepare)


# --- the SYNC extension

_IDLE: Final = b"IDLETIME"
_ALARM_NOTIFY: Final = 1
"""Offset from the extension's first event."""
_GIVEN: Final = 0b011101
"""Mask of the alarm attributes that are given: all except value type (default absolute) and events (default on)."""
_NEGATIVE_TRANSITION: Final = 1
"""Fires each time the counter falls through the value."""
_COUNTER_BYTES: Final = 14
"""Bytes before a counter's name: its id, its resolution, the length of the name."""


class _Initialize(rq.ReplyRequest):
    _request = rq.Struct(
        rq.Card8("opcode"), rq.Opcode(0), rq.RequestLength(), rq.Card8("major"), rq.Card8("minor"), rq.Pad(2)
    )
    _reply = rq.Struct(
        rq.ReplyCode(),
        rq.Pad(1),
        rq.Card16("sequence_number"),
        rq.ReplyLength(),
        rq.Card8("major"),
        rq.Card8("minor"),
        rq.Pad(22),
    )


class _ListSystemCounters(rq.ReplyRequest):
    _request = rq.Struct(rq.Card8("opcode"), rq.Opcode(1), rq.RequestLength())
    _reply = rq.Struct(
        rq.ReplyCode(),
        rq.Pad(1),
        rq.Card16("sequence_number"),
        rq.ReplyLength(),
        rq.Card32("count"),
        rq.Pad(20),
        rq.Binary("rows"),
    )


class _CreateAlarm(rq.Request):
    _request = rq.Struct(
        rq.Card8("opcode"),
        rq.Opcode(8),
        rq.RequestLength(),
        rq.Card32("alarm"),
        rq.Card32("mask"),
        rq.Card32("counter"),
        rq.Int32("value_high"),
        rq.Card32("value_low"),
        rq.Card32("test"),
        rq.Int32("delta_high"),
        rq.Card32("delta_low"),
    )


def arm(server: Server, milliseconds: int) -> int | None:
    """Set an alarm for input after `milliseconds` without; returns the event code, None if the server cannot."""
    found = server.display.query_extension("SYNC")
    if found is None or not found.present:
        return None
    inner, opcode = server.display.display, found.major_opcode
    _Initialize(display=inner, opcode=opcode, major=3, minor=1)
    listed = _ListSystemCounters(display=inner, opcode=opcode)
    counter = dict(_counters(bytes(listed.rows), listed.count)).get(_IDLE)
    if counter is None:
        return None
    _CreateAlarm(
        display=inner,
        opcode=opcode,
        alarm=inner.allocate_resource_id(),
        mask=_GIVEN,
        counter=counter,
        value_high=0,
        value_low=milliseconds,
        test=_NEGATIVE_TRANSITION,
        delta_high=0,
        delta_low=0,
    )
    return int(found.first_event) + _ALARM_NOTIFY


def _counters(rows: bytes, count: int) -> Iterator[tuple[bytes, int]]:
    """Names and ids of the system's counters, from the reply's rows."""
    at = 0
    for _ in range(count):
        counter, _high, _low, length = struct.unpack_from("=IiIH", rows, at)
        yield rows[at + _COUNTER_BYTES : at + _COUNTER_BYTES + length], counter
        at += (_COUNTER_BYTES + length + 3) // 4 * 4
