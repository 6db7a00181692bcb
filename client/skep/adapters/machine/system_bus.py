"""One service on the D-Bus system bus: asked with a time limit, heard as soon as it says something.

It must not know what the service is for. Linux only.
"""

from __future__ import annotations

import select
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from jeepney import DBusAddress, HeaderFields, MatchRule, Message, MessageType, message_bus, new_method_call
from jeepney.io.blocking import DBusConnection, open_dbus_connection

ANSWER_SECONDS: Final = 2.0
"""How long a service may take; a healthy one answers within milliseconds."""
_NOT_THERE: Final = ("ServiceUnknown", "NameHasNoOwner", "Spawn.", "NoSuchUnit", "UnitMasked")
"""Parts of the names of errors that say: nobody offers this service here."""
_PROPERTIES: Final = "org.freedesktop.DBus.Properties"
_SIGNALS_KEPT: Final = 64


class NotThere(Exception):
    """This computer has no such service, and had none before."""


class NotAnswering(Exception):
    """The service exists, or did, and does not answer. Its text is a sentence."""


class BusService:
    """The service that owns `name`, called `title` in sentences. Opened at first use, and again after a failure.

    All but `close` belongs to one thread.
    """

    def __init__(
        self, name: str, title: str, signals: Sequence[MatchRule], answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        self._name, self._title, self._answer_seconds = name, title, answer_seconds
        comes_and_goes = MatchRule(type="signal", interface="org.freedesktop.DBus", member="NameOwnerChanged")
        comes_and_goes.add_arg_condition(0, name)
        self._rules = (*signals, comes_and_goes)
        self._heard: deque[Message] = deque(maxlen=_SIGNALS_KEPT)
        self._connection: DBusConnection | None = None
        self._in_use = threading.Lock()
        self._closed = threading.Event()
        self._has_answered = False

    @property
    def tells(self) -> bool:
        """Whether the service is there and heard."""
        return self._has_answered and self._connection is not None

    def properties(self, path: str, interface: str) -> dict[str, Any]:
        """All properties of an object by their names. Raises NotThere, NotAnswering."""
        (told,) = self.call(path, _PROPERTIES, "GetAll", "s", (interface,))
        return {name: value for name, (_, value) in told.items()}

    def call(self, path: str, interface: str, method: str, signature: str = "", body: tuple[Any, ...] = ()) -> Any:
        """What the method returns. Raises NotThere, NotAnswering."""
        asked = new_method_call(DBusAddress(path, self._name, interface), method, signature or None, body)
        with self._in_use, self._failures():
            return self._answer(asked)

    def wait(self, seconds: float) -> None:
        """Return when a signal came, the connection broke, or `close` was called; else after `seconds`."""
        with self._in_use:
            if self._connection is not None:
                try:
                    self._listen(self._connection, seconds)
                except (OSError, ValueError):
                    self._drop()
                return
        self._closed.wait(seconds)

    def heard(self) -> list[Message]:
        """The signals since the last call, oldest first."""
        signals = list(self._heard)
        self._heard.clear()
        return signals

    def close(self) -> None:
        """End a `wait` or a call under way. From any thread, more than once."""
        self._closed.set()
        connection = self._connection
        if connection is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        with self._in_use:
            self._drop()

    # --- the connection

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Foreign failures as ours; after one that leaves the connection in doubt it is opened anew."""
        try:
            yield
        except TimeoutError:
            self._drop()
            raise NotAnswering(f"{self._title} does not answer.") from None
        except (OSError, ValueError, KeyError) as error:  # the last two: an address of the bus that means nothing
            self._drop()
            self._gone(f"The system bus cannot be reached: {error}.")

    def _answer(self, asked: Message) -> Any:
        connection = self._open()
        reply = connection.send_and_get_reply(asked, timeout=self._answer_seconds)
        if reply.header.message_type is MessageType.error:
            name = str(reply.header.fields.get(HeaderFields.error_name, ""))
            if any(part in name for part in _NOT_THERE):
                self._gone(f"{self._title} has ended.")
            if "NoReply" in name:  # it ended while it was asked, or the bus has lost patience
                raise NotAnswering(f"{self._title} does not answer.")
            raise NotAnswering(f"{self._title} refuses to answer ({name.rpartition('.')[2]}).")
        self._has_answered = True
        return reply.body

    def _gone(self, words: str) -> None:
        """What never answered is not there; what did once has stopped, and nobody knows what it would say now."""
        if self._has_answered:
            raise NotAnswering(words) from None
        raise NotThere from None

    def _open(self) -> DBusConnection:
        if self._closed.is_set():
            raise ConnectionAbortedError("closed")
        if self._connection is None:
            # known before it is used, so that `close` can end what blocks on it
            self._connection = open_dbus_connection("SYSTEM")
            self._connection.filter(MatchRule(type="signal"), queue=self._heard)
            for rule in self._rules:
                added = message_bus.AddMatch(rule)
                self._connection.send_and_get_reply(added, timeout=self._answer_seconds)
            self._heard.clear()  # the bus greets whoever comes with a signal, which is no news
        return self._connection

    def _listen(self, connection: DBusConnection, seconds: float) -> None:
        self._take(connection)  # first: what came in one piece with an answer is in the socket no more
        if not self._heard and not self._closed.is_set():
            select.select([connection.sock], [], [], seconds)
            self._take(connection)

    @staticmethod
    def _take(connection: DBusConnection) -> None:
        """All that has come."""
        with suppress(TimeoutError):
            while True:
                connection.recv_messages(timeout=0)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
