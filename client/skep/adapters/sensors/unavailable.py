"""A reading that cannot be had on this system, said in words instead of guessed."""

from __future__ import annotations

from collections.abc import Sequence

from skep.adapters.sensors.source import Polled
from skep.core.policy.conditions import Condition, Seen, missing
from skep.core.text import Text


class Untold(Polled):
    """Implements ports.Sensor: `conditions` are missing, and `note` is why."""

    def __init__(self, name: str, conditions: Sequence[Condition], note: Text) -> None:
        super().__init__()
        self._name, self._conditions, self._note = name, tuple(conditions), note

    @property
    def name(self) -> str:
        return self._name

    @property
    def conditions(self) -> Sequence[Condition]:
        return self._conditions

    def read(self) -> Seen:
        return {condition: missing(self._note) for condition in self._conditions}
