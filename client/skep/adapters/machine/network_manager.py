"""Whether the connection is metered, as NetworkManager tells it, with word of every change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jeepney import MatchRule

from skep.adapters.machine.system_bus import ANSWER_SECONDS, BusService, NotAnswering, NotThere
from skep.core.conditions import Condition, Reading, Seen, answered, missing, silent

_NAME: Final = "org.freedesktop.NetworkManager"
_PATH: Final = "/org/freedesktop/NetworkManager"


class NetworkManagerSensor:
    """Implements ports.Sensor."""

    name = "Connection, by NetworkManager"
    conditions: Sequence[Condition] = (Condition.METERED,)

    def __init__(self, answer_seconds: float = ANSWER_SECONDS) -> None:
        changed = MatchRule(
            type="signal",
            sender=_NAME,
            path=_PATH,
            interface="org.freedesktop.DBus.Properties",
            member="PropertiesChanged",
        )
        self._manager = BusService(_NAME, "NetworkManager", (changed,), answer_seconds)

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself."""
        return self._manager.tells

    def read(self) -> Seen:
        self._manager.heard()
        return {Condition.METERED: self._read()}

    def wait(self, seconds: float) -> None:
        self._manager.wait(seconds)

    def close(self) -> None:
        self._manager.close()

    def _read(self) -> Reading[bool]:
        try:
            return _meaning(self._manager.properties(_PATH, _NAME).get("Metered"))
        except NotThere:
            return missing("There is no NetworkManager here, which alone knows whether a connection is metered.")
        except NotAnswering as error:
            return silent(str(error))


def _meaning(metered: Any) -> Reading[bool]:
    """NetworkManager's NMMetered: 0 unknown, 1 yes, 2 no, 3 it guesses yes, 4 it guesses no."""
    match metered:
        case 1:
            return answered(value=True, note="NetworkManager")
        case 3:
            return answered(value=True, note="NetworkManager's guess")
        case 2:
            return answered(value=False, note="NetworkManager")
        case 4:
            return answered(value=False, note="NetworkManager's guess")
        case _:
            return missing("NetworkManager does not know whether this connection is metered.")
