"""Whether the connection is metered, as NetworkManager tells it, with word of every change."""

from __future__ import annotations

from typing import Any, Final

from skep.adapters.linux.bus import PROPERTIES, Absent, Bus, Silent, Target
from skep.adapters.linux.system_service import ANSWER_SECONDS, ServiceSensor
from skep.core.policy.conditions import Condition, Reading, Seen, answered, missing, silent
from skep.core.text import Text, verbatim

_NAME: Final = "org.freedesktop.NetworkManager"
_MANAGER: Final = Target(_NAME, "/org/freedesktop/NetworkManager", _NAME)


class NetworkManagerSensor(ServiceSensor):
    """Tells METERED."""

    def __init__(self, answer_seconds: float = ANSWER_SECONDS) -> None:
        conditions = (Condition.METERED,)
        super().__init__("Connection, by NetworkManager", conditions, _MANAGER, "NetworkManager", answer_seconds)

    def _listen(self, bus: Bus) -> None:
        bus.listen(Target(_NAME, _MANAGER.path, PROPERTIES), "PropertiesChanged", any_object=False)

    def _look(self) -> Seen:
        return {Condition.METERED: self._metered()}

    def _metered(self) -> Reading[bool]:
        try:
            return _meaning(self._found(lambda bus: bus.get_all(_MANAGER)).get("Metered"))
        except Absent:
            return missing(Text("network_manager.there_no_networkmanager_here_alone"))
        except Silent as error:
            return silent(error.reason)


def _meaning(metered: Any) -> Reading[bool]:
    """NetworkManager's NMMetered: 0 unknown, 1 yes, 2 no, 3 it guesses yes, 4 it guesses no."""
    match metered:
        case 1:
            return answered(value=True, note=verbatim("NetworkManager"))
        case 3:
            return answered(value=True, note=Text("network_manager.networkmanager_guess"))
        case 2:
            return answered(value=False, note=verbatim("NetworkManager"))
        case 4:
            return answered(value=False, note=Text("network_manager.networkmanager_guess"))
        case _:
            return missing(Text("network_manager.networkmanager_does_not_know_whether"))
