"""The computer's sleep as logind announces it, before and after; what it does not announce the clocks still tell."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from skep.adapters.linux.bus import Absent, Bus, Silent
from skep.adapters.linux.logind_session import MANAGER
from skep.adapters.linux.system_service import ANSWER_SECONDS, ServiceSensor
from skep.adapters.sensors.sleep import LATE_SECONDS, SleepWatch
from skep.core.policy.conditions import Seen
from skep.ports import Post

_ANNOUNCED = "PrepareForSleep"


class LogindSleepWatch(ServiceSensor):
    """Tells no condition; a logind that is not there or fails costs only the announcement."""

    def __init__(
        self, post: Post, *, late_seconds: float = LATE_SECONDS, answer_seconds: float = ANSWER_SECONDS
    ) -> None:
        super().__init__("Sleep, by logind", (), MANAGER, "logind", answer_seconds)
        wait = super()._await
        self._listening = False
        self._watch = SleepWatch(post, lambda seconds: wait(time.monotonic() + seconds), late_seconds=late_seconds)

    @property
    def name(self) -> str:
        return super().name if self._listening else self._watch.name

    def _listen(self, bus: Bus) -> None:
        bus.listen(MANAGER, _ANNOUNCED, any_object=False)

    def _hear(self, signal: str, body: tuple[Any, ...]) -> bool:
        if signal == _ANNOUNCED and body == (True,):
            self._watch.about_to_sleep()
        elif signal == _ANNOUNCED and body == (False,):
            self._watch.awake()
        return True

    def _look(self) -> Seen:
        self._listening = False
        with suppress(Absent, Silent):
            # asked for nothing but to have the line open, over which the announcement comes
            self._found(lambda bus: bus.get_all(MANAGER))
            self._listening = True
        return self._watch.read()

    def _await(self, deadline: float) -> None:
        self._watch.wait(deadline - time.monotonic())
