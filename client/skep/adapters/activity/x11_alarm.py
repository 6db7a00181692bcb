"""An alarm at an X server that rings at the first input after a quiet time, by the SYNC extension's counter IDLETIME.

Source: X Synchronization Extension Protocol 3.1, of which python-xlib has nothing; what is needed is declared here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from Xlib.protocol import rq

from skep.adapters.activity.x11 import Server

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
