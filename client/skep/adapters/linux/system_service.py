"""What sensors share that ask one service on the system bus and hear at once what it says.

It must not know what the service is for.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from skep.adapters.linux.bus import Absent, Bus, Line, Refused, Silent, Target, Unreachable, system_address
from skep.adapters.sensors.source import SourceSensor
from skep.core.policy.conditions import Condition
from skep.core.text import Text

ANSWER_SECONDS: Final = 2.0
"""How long a service may take; a healthy one answers within milliseconds. The bus may have to start it."""

Found = TypeVar("Found")


class ServiceSensor(SourceSensor):
    """A sensor around `service`, called `title` in sentences.

    What has answered once and is there no more is silent, not absent: nobody knows what it would say now.
    """

    def __init__(
        self, name: str, conditions: Sequence[Condition], service: Target, title: str, answer_seconds: float
    ) -> None:
        super().__init__(name, conditions)
        self._service, self._title = service, title
        connect = partial(Bus, patience=answer_seconds, starts=True)
        self._line = Line(system_address(os.environ), self._prepare, connect)
        self._has_answered = False

    @property
    def tells(self) -> bool:
        """Implements ports.TellsItself: whether the service is there and heard."""
        return self._has_answered and self._line.open_bus is not None

    @abstractmethod
    def _listen(self, bus: Bus) -> None:
        """Ask for the signals that matter. Raises Silent."""

    def _hear(self, _signal: str, _body: tuple[Any, ...]) -> bool:
        """Take in a signal; whether it ends a wait."""
        return True

    def _found(self, question: Callable[[Bus], Found]) -> Found:
        """What the question finds on the bus. Raises Absent where the service never was; Silent, whose reason is a sentence."""
        try:
            found = self._line.ask(question)
        except (Absent, Unreachable) as error:
            if isinstance(error, Unreachable):
                self._let_go()
            if not self._has_answered:
                raise Absent(error.reason) from None
            if self._line.open_bus is None:
                raise Silent(Text("system_bus.system_bus_cannot_reached", reason=error.reason)) from None
            raise Silent(Text("system_bus.has_ended", title=self._title)) from None
        except Refused as error:
            raise Silent(
                Text("system_bus.refuses_answer", title=self._title, rpartition=error.name.rpartition(".")[2])
            ) from None
        except Silent:
            self._let_go()
            raise Silent(Text("system_bus.does_not_answer", title=self._title)) from None
        self._has_answered = True
        return found

    def _prepare(self, bus: Bus) -> None:
        self._listen(bus)
        bus.listen_for_owner(self._service.service)

    def _await(self, deadline: float) -> None:
        bus = self._line.open_bus
        if bus is None:
            super()._await(deadline)
            return
        try:
            bus.await_signal(deadline, self._wake, self._hear)
        except Silent:
            self._let_go()

    def _cut_off(self) -> None:
        self._line.cut()

    def _let_go(self) -> None:
        self._line.drop()
