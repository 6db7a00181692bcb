"""The watcher and host of StatusNotifierItem on a desktop's bus, as in the trays of KDE, GNOME's extension and others.

It accepts registrations, reads the icon's properties and its menu, and activates an entry as a click does.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageType,
    message_bus,
    new_error,
    new_method_call,
    new_method_return,
    new_signal,
)
from jeepney.io.blocking import DBusConnection, open_dbus_connection

NAME = "org.kde.StatusNotifierWatcher"
PATH = "/StatusNotifierWatcher"
ITEM = "org.kde.StatusNotifierItem"
MENU = "com.canonical.dbusmenu"
PROPERTIES = "org.freedesktop.DBus.Properties"
SAYS = {"IsStatusNotifierHostRegistered": ("b", True), "ProtocolVersion": ("i", 0)}
XML = f"""<node><interface name="{NAME}">
<method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
<property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
<property name="ProtocolVersion" type="i" access="read"/>
</interface></node>"""


class Watcher:
    """Serves in its own thread; `item` is the bus name of the last icon that registered, or None."""

    def __init__(self, address: str) -> None:
        self._serving = open_dbus_connection(address)
        self._asking = open_dbus_connection(address)
        owned = self._serving.send_and_get_reply(message_bus.RequestName(NAME))
        assert owned.body[0] == 1
        self.item: str | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="tray watcher")
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._serving.close()
        self._asking.close()

    # --- the watcher

    def _serve(self) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                heard = self._serving.receive(timeout=0.1)
                if heard.header.message_type is MessageType.method_call:
                    self._serving.send(self._answer(heard))

    def _answer(self, heard: Message) -> Message:
        match heard.header.fields[HeaderFields.member]:
            case "Introspect":
                return new_method_return(heard, "s", (XML,))
            case "Get":
                return new_method_return(heard, "v", (SAYS[heard.body[1]],))
            case "GetAll":
                return new_method_return(heard, "a{sv}", (SAYS,))
            case "RegisterStatusNotifierItem":
                self.item = heard.header.fields[HeaderFields.sender]
                us = DBusAddress(PATH, NAME, NAME)
                self._serving.send(new_signal(us, "StatusNotifierItemRegistered", "s", (heard.body[0],)))
                return new_method_return(heard)
            case _:
                return new_error(heard, "org.freedesktop.DBus.Error.UnknownMethod")

    # --- the host

    def property(self, name: str) -> Any:
        """A property of the icon: Title, ToolTip, IconPixmap, Menu and so on."""
        (_, value), *_ = self._ask("/StatusNotifierItem", PROPERTIES, "Get", "ss", (ITEM, name))
        return value

    def click(self) -> None:
        self._ask("/StatusNotifierItem", ITEM, "Activate", "ii", (0, 0))

    def entries(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """Id and properties of every visible menu entry by its label, including submenus."""
        menu = self.property("Menu")
        self._ask(menu, MENU, "AboutToShow", "i", (0,))
        _, root = self._ask(menu, MENU, "GetLayout", "iias", (0, -1, []))
        return {
            name: (number, shown)
            for number, shown in _below(root)
            if (name := shown.get("label", "")) and shown.get("visible", True)
        }

    def choose(self, label: str) -> None:
        number, _ = self.entries()[label]
        now = int(time.time()) & 0xFFFFFFFF
        self._ask(self.property("Menu"), MENU, "Event", "isvu", (number, "clicked", ("s", ""), now))

    def _ask(self, path: str, interface: str, method: str, signature: str, body: tuple[Any, ...]) -> Any:
        asked = new_method_call(DBusAddress(path, self.item, interface), method, signature, body)
        reply = _reply(self._asking, asked)
        assert reply.header.message_type is MessageType.method_return, reply.body
        return reply.body


def _reply(connection: DBusConnection, asked: Message) -> Message:
    return connection.send_and_get_reply(asked, timeout=20)


def _below(node: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """All entries of a dbusmenu layout, the root first; the underscore of an access key is removed from the label."""
    number, shown, children = node
    plain = {name: value for name, (_, value) in shown.items()}
    yield number, plain | {"label": plain.get("label", "").replace("_", "")}
    for _, child in children:
        yield from _below(child)


@contextlib.contextmanager
def watcher(address: str) -> Iterator[Watcher]:
    made = Watcher(address)
    try:
        yield made
    finally:
        made.close()
