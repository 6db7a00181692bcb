"""The computer's sleep as logind announces it, before and after; what it does not announce the clocks still tell."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from jeepney import HeaderFields, MatchRule

from skep.adapters.machine.sleep import LATE_SECONDS, SleepWatch
from skep.adapters.machine.system_bus import ANSWER_SECONDS, BusService, NotAnswering, NotThere
from skep.core.conditions import Condition, Seen
from skep.ports import Post

_NAME: Final = "org.freedesktop.login1"
_PATH: Final = "/org/freedesktop/login1"
_MANAGER: Final = f"{_NAME}.Manager"


class LogindSleepWatch:
    """Implements ports.Sensor without any condition; a logind that is not there or fails costs only the announcement."""

    conditions: Sequence[Condition] = ()

    def __init__(
        self, post: Post, *, late_seconds: float = LATE_SECONDS, answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        announced = MatchRule(type="signal", sender=_NAME, path=_PATH, interface=_MANAGER, member="PrepareForSleep")
        self._logind = BusService(_NAME, "logind", (announced,), answer_seconds)
        self._watch = SleepWatch(post, self._logind, late_seconds=late_seconds)
        self._listening = False

    @property
    def name(self) -> str:
        return "Sleep, by logind" if self._listening else self._watch.name

    def read(self) -> Seen:
        self._listening = False
        with suppress(NotThere, NotAnswering):
            # asked for nothing but to have the line open, over which the announcement comes
            self._logind.properties(_PATH, _MANAGER)
            self._listening = True
        self._hear()
        return self._watch.read()

    def wait(self, seconds: float) -> None:
        self._watch.wait(seconds)
        self._hear()

    def close(self) -> None:
        self._watch.close()

    def _hear(self) -> None:
        for signal in self._logind.heard():
            if signal.header.fields.get(HeaderFields.member) == "PrepareForSleep":
                self._announced(signal.body)

    def _announced(self, body: tuple[Any, ...]) -> None:
        if body == (True,):
            self._watch.about_to_sleep()
        elif body == (False,):
            self._watch.awake()
