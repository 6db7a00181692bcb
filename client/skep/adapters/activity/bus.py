"""A connection to a D-Bus message bus, on which no call takes longer than its patience and nothing is started.

It must not know any service. What jeepney raises becomes Absent (there is no such thing here) or Silent.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from jeepney import DBusAddress, HeaderFields, MatchRule, Message, MessageFlag, MessageType, Parser, new_method_call
from jeepney.bus import get_connectable_addresses
from jeepney.io.blocking import prep_socket

from skep.adapters.activity.source import Wake, Woken

PATIENCE_SECONDS: Final = 0.5
_KEPT_SIGNALS: Final = 64
_SYSTEM_BUS: Final = "unix:path=/var/run/dbus/system_bus_socket"
_ABSENT: Final = {
    f"org.freedesktop.DBus.Error.{kind}"
    for kind in (
        "ServiceUnknown",
        "NameHasNoOwner",
        "UnknownMethod",
        "UnknownObject",
        "UnknownInterface",
        "UnknownProperty",
        "NotSupported",
    )
}

Found = TypeVar("Found")


class Absent(Exception):
    """There is no such bus, service, object or method here."""


class Silent(Exception):
    """It is there and gives no answer, or one that makes no sense."""


@dataclass(frozen=True)
class Target:
    """An interface of an object of a service."""

    service: str
    path: str
    interface: str


_BUS: Final = Target("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
_PROPERTIES: Final = "org.freedesktop.DBus.Properties"


def session_address(environment: Mapping[str, str]) -> str | None:
    """Where the session's bus listens, None where there is no session bus."""
    if address := environment.get("DBUS_SESSION_BUS_ADDRESS"):
        return address
    usual = Path(environment.get("XDG_RUNTIME_DIR") or "/nonexistent") / "bus"
    return f"unix:path={usual}" if usual.exists() else None


def system_address(environment: Mapping[str, str]) -> str:
    return environment.get("DBUS_SYSTEM_BUS_ADDRESS") or _SYSTEM_BUS


class Bus:
    """One connection, for one thread; `cut` alone may come from another."""

    def __init__(self, address: str, *, patience: float = PATIENCE_SECONDS) -> None:
        """Raises Absent when no bus is there, Silent when it does not let us in."""
        self._patience = patience
        self._parser = Parser()
        self._signals: deque[Message] = deque(maxlen=_KEPT_SIGNALS)
        self._serial = 0
        self._line = _connect(address, patience)
        try:
            self._line.settimeout(patience)
            self.call(_BUS, "Hello")
        except BaseException:
            self._line.close()
            raise

    def fileno(self) -> int:
        return self._line.fileno()

    def call(self, target: Target, method: str, signature: str = "", body: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        """The reply's values. Raises Absent, Silent."""
        address = DBusAddress(target.path, target.service, target.interface)
        message = new_method_call(address, method, signature or None, body)
        # asking must not start what nobody uses
        message.header.flags |= MessageFlag.no_auto_start
        self._serial += 1
        self._send(message)
        return self._reply(self._serial, f"{target.service} {method}")

    def get(self, target: Target, name: str) -> Any:
        """The value of a property. Raises Absent, Silent."""
        properties = Target(target.service, target.path, _PROPERTIES)
        ((_, value),) = self.call(properties, "Get", "ss", (target.interface, name))
        return value

    def has(self, service: str) -> bool:
        """Whether somebody offers this service now. Raises Silent."""
        return bool(self.call(_BUS, "NameHasOwner", "s", (service,))[0])

    def listen(self, target: Target, signal: str | None = None) -> None:
        """Be told of the signals that this service sends from this interface, whatever the object. Raises Silent."""
        rule = MatchRule(type="signal", sender=target.service, interface=target.interface, member=signal)
        self.call(_BUS, "AddMatch", "s", (rule.serialise(),))

    def signals(self) -> list[tuple[str, tuple[Any, ...]]]:
        """The signals that came since the last time, oldest first: member and body. Does not wait. Raises Silent."""
        while (message := self._receive(0.0)) is not None:
            self._keep(message)
        kept = [(str(each.header.fields.get(HeaderFields.member, "")), each.body) for each in self._signals]
        self._signals.clear()
        return kept

    def await_signal(
        self, deadline: float, wake: Wake, wanted: Callable[[str, tuple[Any, ...]], bool] = lambda _name, _body: True
    ) -> bool:
        """Whether a wanted signal came before `deadline`, on the monotonic clock, or the wake rang. Raises Silent."""
        while True:
            if any(wanted(name, body) for name, body in self.signals()):
                return True
            if wake.wait(deadline - time.monotonic(), self) is not Woken.BY_FILE:
                return False

    def cut(self) -> None:
        """End a call under way, from any thread."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._line.close()

    def _send(self, message: Message) -> None:
        try:
            self._line.sendall(message.serialise(serial=self._serial))
        except OSError as error:
            raise Silent(f"the bus takes no call: {error}") from None

    def _reply(self, serial: int, asked: str) -> tuple[Any, ...]:
        deadline = time.monotonic() + self._patience
        while True:
            message = self._receive(deadline)
            if message is None:
                raise Silent(f"{asked} took longer than {self._patience:g} s")
            if message.header.fields.get(HeaderFields.reply_serial, -1) != serial:
                self._keep(message)
            elif message.header.message_type is MessageType.error:
                raise _error(asked, message)
            else:
                return tuple(message.body)

    def _keep(self, message: Message) -> None:
        # the bus greets us with a signal of its own, which says nothing about anything
        ours = message.header.fields.get(HeaderFields.interface) == _BUS.interface
        if message.header.message_type is MessageType.signal and not ours:
            self._signals.append(message)

    def _receive(self, deadline: float) -> Message | None:
        """The next message, None when none came until then. Raises Silent when the line is dead."""
        try:
            while (message := self._parser.get_next_message()) is None:
                self._line.settimeout(max(deadline - time.monotonic(), 0.0))
                data = self._line.recv(65536)
                if not data:
                    raise Silent("the bus is gone")
                self._parser.add_data(data, fds=[])
        except (BlockingIOError, TimeoutError):
            return None
        except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
            raise Silent(f"the bus is gone or talks nonsense: {error}") from None
        finally:
            self._line.settimeout(self._patience)
        return message


def _connect(address: str, patience: float) -> socket.socket:
    try:
        line: socket.socket = prep_socket(next(get_connectable_addresses(address)), timeout=patience)
    except (FileNotFoundError, RuntimeError, ValueError, StopIteration) as error:
        raise Absent(f"no bus at {address}: {error}") from None
    except Exception as error:  # noqa: BLE001 - authentication raises errors of jeepney's own, not all of them exported
        raise Silent(f"the bus at {address} does not let us in: {error}") from None
    return line


def _error(asked: str, message: Message) -> Exception:
    name = message.header.fields.get(HeaderFields.error_name, "")
    return Absent(f"{asked}: {name}") if name in _ABSENT else Silent(f"{asked}: {name}")


class Line:
    """A bus that is opened when it is first needed, and again after it failed. `address` None: there is none."""

    def __init__(self, address: str | None, prepare: Callable[[Bus], None] = lambda _bus: None) -> None:
        """`prepare` is called with each newly opened bus; what it raises counts as a failure to open it."""
        self._address, self._prepare = address, prepare
        self._bus: Bus | None = None

    @property
    def open_bus(self) -> Bus | None:
        return self._bus

    def bus(self) -> Bus:
        """Raises Absent, Silent."""
        if self._address is None:
            raise Absent("there is no such bus")
        if self._bus is None:
            fresh = Bus(self._address)
            try:
                self._prepare(fresh)
            except BaseException:
                fresh.close()
                raise
            self._bus = fresh
        return self._bus

    def ask(self, question: Callable[[Bus], Found]) -> Found:
        """What the question finds on the bus. Raises Absent, and Silent also where a reply is not what was asked for."""
        try:
            return question(self.bus())
        except (IndexError, TypeError, ValueError) as error:
            raise Silent(f"its answer makes no sense: {error}") from None

    def cut(self) -> None:
        if (bus := self._bus) is not None:
            bus.cut()

    def drop(self) -> None:
        bus, self._bus = self._bus, None
        if bus is not None:
            bus.close()
