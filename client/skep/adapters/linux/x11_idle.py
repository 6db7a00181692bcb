"""The time since the last input by an X server: asked of its screen saver extension, and told by an alarm of the SYNC extension."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from typing import Final

from Xlib.ext import screensaver
from Xlib.protocol import rq

from skep.adapters.linux.bus import Absent, Silent
from skep.adapters.linux.x11 import Server, XLine
from skep.adapters.sensors.idle_check import IdleJudge
from skep.adapters.sensors.source import SourceSensor, Woken
from skep.core.policy.conditions import Condition, Reading, Seen, answered, missing, silent
from skep.core.text import Text

EXTENSION: Final = "SYNC"
_IDLE: Final = b"IDLETIME"
_ALARM_NOTIFY: Final = 1
"""After the extension's first event."""
_ALL_ATTRIBUTES: Final = 0b111111
_ABSOLUTE: Final = 0
_NEGATIVE_TRANSITION: Final = 1
"""Rings when the counter falls through the value, each time anew."""
_COUNTER_BYTES: Final = 14
"""Before a counter's name: its id, its resolution, the length of the name."""


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
        rq.Card32("value_type"),
        rq.Int32("value_high"),
        rq.Card32("value_low"),
        rq.Card32("test"),
        rq.Int32("delta_high"),
        rq.Card32("delta_low"),
        rq.Card32("events"),
    )


def arm(server: Server, milliseconds: int) -> int | None:
    """Have the server ring when input comes after so long without; the code of the event, None where it cannot."""
    found = server.display.query_extension(EXTENSION)
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
        mask=_ALL_ATTRIBUTES,
        counter=counter,
        value_type=_ABSOLUTE,
        value_high=0,
        value_low=milliseconds,
        test=_NEGATIVE_TRANSITION,
        delta_high=0,
        delta_low=0,
        events=1,
    )
    return int(found.first_event) + _ALARM_NOTIFY


def _counters(rows: bytes, count: int) -> Iterator[tuple[bytes, int]]:
    """Names and ids of the system's counters, from the reply's rows."""
    at = 0
    for _ in range(count):
        counter, _high, _low, length = struct.unpack_from("=IiIH", rows, at)
        yield rows[at + _COUNTER_BYTES : at + _COUNTER_BYTES + length], counter
        at += (_COUNTER_BYTES + length + 3) // 4 * 4


POLL_SECONDS: Final = 0.1
"""How often a server without alarms is asked."""
QUIET_SECONDS: Final = 1.0
"""Input that comes sooner after the last is no news."""


class X11Input(SourceSensor):
    """Tells INPUT. `wait` returns at the first input after a quiet second."""

    def __init__(self, display: str | None) -> None:
        """`display` as DISPLAY names it; None where there is none."""
        super().__init__("X11 screen saver extension", [Condition.INPUT])
        self._line = XLine(display, self._prepare)
        self._judge = IdleJudge(Text("x11.x_server"))
        self._idle: float | None = None
        self._alarm: int | None = None
        self._saver: Reading[bool] = missing(Text("x11.there_no_x_server"))
        self.saver_changed: Callable[[], None] = lambda: None
        """Called in the reading thread when the server's own screen saver has come or gone."""

    @property
    def saver(self) -> Reading[bool]:
        """Whether the server's own screen saver was on at the last look; any input ends it."""
        return self._saver

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself."""
        return self._alarm is not None and self._line.open_server is not None

    def _look(self) -> Seen:
        try:
            idle = self._query()
        except Absent as error:
            self._let_go()
            return {Condition.INPUT: missing(Text("x11.no_x_server_tells_when", reason=error.reason))}
        except Silent as error:
            self._let_go()
            return {Condition.INPUT: silent(Text("x11.screen_does_not_say_when", reason=error.reason))}
        return {Condition.INPUT: self._judge.judge(idle)}

    def _query(self) -> float:
        """Seconds. Raises Absent, Silent."""
        server = self._line.server()
        opcode = server.display.display.get_extension_major(screensaver.extname)
        info = server.reply(
            screensaver.QueryInfo(display=server.display.display, defer=True, opcode=opcode, drawable=server.root)
        )
        self._say_saver(answered(info.state == screensaver.StateOn, Text("x11.x_server_screen_saver")))
        self._idle = info.idle / 1000
        return self._idle

    def _prepare(self, server: Server) -> None:
        if not server.display.has_extension(screensaver.extname):
            raise Absent(Text("x11.lacks_screen_saver_extension"))
        self._alarm = arm(server, int(QUIET_SECONDS * 1000))

    def _await(self, deadline: float) -> None:
        server = self._line.open_server
        if server is None or self._alarm is None:
            self._poll(deadline)
            return
        try:
            server.await_event(deadline, self._wake, lambda event: event.type == self._alarm)
        except Silent:
            self._let_go()

    def _poll(self, deadline: float) -> None:
        while (left := deadline - time.monotonic()) > 0:
            if self._wake.wait(min(POLL_SECONDS, left)) is not Woken.BY_TIME:
                return
            if self._line.open_server is not None and self._is_news():
                return

    def _is_news(self) -> bool:
        before = self._idle
        try:
            return self._query() < QUIET_SECONDS <= (before or 0.0)
        except (Absent, Silent):
            self._let_go()
            return True

    def _cut_off(self) -> None:
        self._line.cut()

    def _let_go(self) -> None:
        self._line.drop()
        self._idle = None
        self._say_saver(missing(Text("x11.x_server_does_not_answer")))

    def _say_saver(self, saver: Reading[bool]) -> None:
        before, self._saver = self._saver.value, saver
        if saver.value is not before:
            self.saver_changed()
