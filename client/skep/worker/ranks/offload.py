"""Frees the memory of all ranks' devices while nothing is trained, and takes it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skep.worker.training.resource_limits import ModelOffload


@dataclass
class CopiesOffload(ModelOffload):
    """Moves the models of all ranks; `move` those of ranks besides rank 0, into RAM or back."""

    move: Callable[[bool], None] = lambda _away: None
    _others_away: bool = False

    def leave(self) -> None:
        super().leave()
        if not self._others_away:
            self._others_away = True
            self.move(True)

    def come_back(self) -> None:
        super().come_back()
        if self._others_away:
            self.move(False)
            self._others_away = False


@dataclass
class ShardsOffload(ModelOffload):
    """Frees the devices by dropping the shards. What has to be kept is in the host's memory in any case."""

    drop: Callable[[], None] = lambda: None
    restore: Callable[[], None] = lambda: None

    def leave(self) -> None:
        self.drop()

    def come_back(self) -> None:
        self.restore()
