"""A connection to a D-Bus message bus with a time limit for each call, and the look-up of services on it."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from jeepney import (
    DBusAddress,
    DBusErrorResponse,
    HeaderFields,
    MatchRule,
    Message,
    MessageFlag,
    MessageType,
    new_method_call,
)
from jeepney.bus import get_connectable_addresses
from jeepney.io.blocking import DBusConnection, prep_socket

from skep.adapters.sensors.source import Absent, NoAnswer, Refused, Silent
from skep.core.text import Text, verbatim

PATIENCE_SECONDS: Final = 0.5
_KEPT_SIGNALS: Final = 64
_SYSTEM_BUS: Final = "unix:path=/var/run/dbus/system_bus_socket"
_ABSENT: Final = (
    "ServiceUnknown",
    "NameHasNoOwner",
    "Spawn.",
    "NoSuchUnit",
    "UnitMasked",
    "UnknownMethod",
    "UnknownObject",
    "UnknownInterface",
    "UnknownProperty",
    "NotSupported",
)
"""Parts of the names of errors with this meaning."""
_BROKEN: Final = (OSError, ValueError, TypeError, KeyError, IndexError)
"""What jeepney raises when the bus has closed the connection or sends invalid messages."""

Found = TypeVar("Found")
Told = tuple[str, tuple[Any, ...]]
"""A signal: its name and its values."""


class Unreachable(Silent):
    """The bus itself is not running, or refuses the connection."""


@dataclass(frozen=True)
class Target:
    """An interface of an object of a service."""

    service: str
    path: str
    interface: str


_BUS: Final = Target("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
_GREETING: Final = "NameAcquired"
"""The bus's first signal on every connection, which is ignored."""
PROPERTIES: Final = "org.freedesktop.DBus.Properties"
CHANGED: Final = "PropertiesChanged"
"""The signal of every object whose properties change."""


def session_address(environment: Mapping[str, str]) -> str | None:
    """The address of the session bus, None if there is none."""
    if address := environment.get("DBUS_SESSION_BUS_ADDRESS"):
        return address
    usual = Path(environment.get("XDG_RUNTIME_DIR") or "/nonexistent") / "bus"
    return f"unix:path={usual}" if usual.exists() else None


def system_address(environment: Mapping[str, str]) -> str:
    return environment.get("DBUS_SYSTEM_BUS_ADDRESS") or _SYSTEM_BUS


class _Connection(DBusConnection):  # type: ignore[misc]  # jeepney has no types
    """A connection with a time limit for every wait, including the handshake that opens it."""

    def __init__(self, line: socket.socket, patience: float) -> None:
        self._patience = patience
        super().__init__(line)

    def receive(self, *, timeout: float | None = None) -> Message:
        return super().receive(timeout=self._patience if timeout is None else timeout)


class Bus:
    """Implements source.Connection."""

    def __init__(self, address: str | None, *, patience: float = PATIENCE_SECONDS, starts: bool = False) -> None:
        """`address` is None without a bus; with `starts` it may start services on demand. Raises Absent, Silent."""
        if address is None:
            raise Absent(Text("bus.there_no_such_bus"))
        self._patience, self._starts = patience, starts
        self._signals: deque[Message] = deque(maxlen=_KEPT_SIGNALS)
        self._connection = _connect(address, patience)
        self._connection.filter(MatchRule(type="signal"), queue=self._signals)

    def fileno(self) -> int:
        return int(self._connection.sock.fileno())

    def ask(self, question: Callable[[Bus], Found]) -> Found:
        """The result of `question`. Raises Absent, and Silent, also for a reply of an unexpected form."""
        try:
            return question(self)
        except (IndexError, TypeError, ValueError) as error:
            raise Silent(Text("bus.answer_makes_no_sense", reason=str(error))) from None

    def call(self, target: Target, method: str, signature: str = "", body: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        """The reply's values. Raises Absent, Silent."""
        address = DBusAddress(target.path, target.service, target.interface)
        message = new_method_call(address, method, signature or None, body)
        if not self._starts:
            message.header.flags |= MessageFlag.no_auto_start
        asked = f"{target.service} {method}"
        try:
            reply = self._connection.send_and_get_reply(message, timeout=self._patience)
        except TimeoutError:
            raise Silent(Text("bus.took_longer_than_s", asked=asked, patience=self._patience)) from None
        except _BROKEN as error:
            raise _gone(error) from None
        if reply.header.message_type is MessageType.error:
            raise _error(asked, str(reply.header.fields.get(HeaderFields.error_name, "")))
        return tuple(reply.body)

    def get(self, target: Target, name: str) -> Any:
        """The value of a property. Raises Absent, Silent."""
        properties = Target(target.service, target.path, PROPERTIES)
        ((_, value),) = self.call(properties, "Get", "ss", (target.interface, name))
        return value

    def get_all(self, target: Target) -> dict[str, Any]:
        """All properties of an object's interface by their names. Raises Absent, Silent."""
        (told,) = self.call(Target(target.service, target.path, PROPERTIES), "GetAll", "s", (target.interface,))
        return {name: value for name, (_, value) in told.items()}

    def has(self, service: str) -> bool:
        """Whether this service is running. Raises Silent."""
        return bool(self.call(_BUS, "NameHasOwner", "s", (service,))[0])

    def listen(self, target: Target, *signals: str, any_object: bool = True) -> None:
        """Subscribe to these signals of the target, or of all objects of its service. Raises Silent."""
        for signal in signals:
            interface = PROPERTIES if signal == CHANGED else target.interface
            path = None if any_object else target.path
            rule = MatchRule(type="signal", sender=target.service, interface=interface, member=signal, path=path)
            self._match(rule)

    def listen_for_owner(self, service: str) -> None:
        """Subscribe to the start and end of the service. Raises Silent."""
        rule = MatchRule(type="signal", interface=_BUS.interface, member="NameOwnerChanged")
        rule.add_arg_condition(0, service)
        self._match(rule)

    def news(self) -> Sequence[Told]:
        """The signals since the last call, oldest first. Does not wait. Raises Silent."""
        try:
            while True:
                self._connection.recv_messages(timeout=0.0)
        except TimeoutError:
            pass  # no more messages
        except _BROKEN as error:
            raise _gone(error) from None
        told = [(str(each.header.fields.get(HeaderFields.member, "")), each.body) for each in self._signals]
        self._signals.clear()
        return [each for each in told if each[0] != _GREETING]

    def cut(self) -> None:
        """Abort a running call, from any thread."""
        with suppress(OSError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()

    def _match(self, rule: MatchRule) -> None:
        self.call(_BUS, "AddMatch", "s", (rule.serialise(),))


def _connect(address: str, patience: float) -> _Connection:
    try:
        line = prep_socket(next(get_connectable_addresses(address)), timeout=patience)
    except (FileNotFoundError, RuntimeError, ValueError, StopIteration) as error:
        raise Absent(Text("bus.no_bus", address=address, reason=str(error))) from None
    except Exception as error:  # noqa: BLE001 - authentication raises errors of jeepney's own, not all of them exported
        raise Unreachable(Text("bus.bus_does_not_let_us", address=address, reason=str(error))) from None
    line.settimeout(patience)  # sending has the same time limit as the answer
    try:
        return _Connection(line, patience)
    except (*_BROKEN, DBusErrorResponse) as error:
        line.close()
        raise Unreachable(Text("bus.bus_does_not_greet_us", address=address, reason=str(error))) from None


def _gone(error: Exception) -> Unreachable:
    return Unreachable(Text("bus.bus_gone_talks_nonsense", reason=str(error)))


def _error(asked: str, name: str) -> NoAnswer:
    if any(part in name for part in _ABSENT):
        return Absent(verbatim(f"{asked}: {name}"))
    # it ended during the call, or the bus timed out
    return Silent(verbatim(f"{asked}: {name}")) if "NoReply" in name else Refused(asked, name)


LOOK_AGAIN_SECONDS: Final = 30.0


class Recently:
    """Caches what `find` found on a bus for half a minute, or until the connection changes."""

    def __init__(self, find: Callable[[Bus], Sequence[Target]]) -> None:
        self._find = find
        self._at: float = 0.0
        self._bus: Bus | None = None
        self._found: Sequence[Target] = ()

    def ask(self, bus: Bus, question: Callable[[Sequence[Target]], Found]) -> Found:
        """The result of `question` for the cached list; repeated with a new list if one has ended. Raises Absent."""
        if bus is self._bus and time.monotonic() - self._at < LOOK_AGAIN_SECONDS:
            try:
                return question(self._found)
            except Absent:
                if not self._found:
                    raise
        self._found, self._bus, self._at = self._find(bus), bus, time.monotonic()
        return question(self._found)
