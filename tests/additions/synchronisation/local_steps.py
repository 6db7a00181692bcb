"""The sync mode "local-steps": every peer steps by itself, and parameters are averaged at the end of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import torch

from skep.worker.connection.watch import Part
from skep.worker.swarm.rounds import RoundFacts
from skep.worker.swarm.strategy import EpochProgress, Participant, StrategyMaker

RATE: Final = 0.1


class LocalSteps:
    """Implements SyncStrategy. `dht` gives the parameters of another peer."""

    def __init__(self, own: Participant) -> None:
        self._swarm, self._parameters, self._rounds = own.dht, own.parameters, own.rounds
        self._optimizer = torch.optim.SGD(own.parameters, RATE)
        self._target, self._samples, self.epoch = own.run.sync.target_batch_size, 0, 0

    @property
    def progress(self) -> EpochProgress:
        return EpochProgress(self._samples, self._target)

    @property
    def settled(self) -> bool:
        return self._samples == 0

    @property
    def finished(self) -> bool:
        return False

    def ready(self, within: float) -> None:
        self._optimizer.zero_grad()

    @torch.no_grad()
    def synchronise(self) -> None:
        for ours, other in zip(self._parameters, self._swarm.parameters, strict=True):
            ours.copy_(other)

    def contribute(self, samples: int) -> None:
        self._samples += samples
        self._optimizer.step()
        self._optimizer.zero_grad()

    def discard(self, reason: str) -> None:
        self._rounds.lose(reason)
        self._optimizer.zero_grad()
        self._samples = 0

    def tend(self, hand_over: Callable[[], None]) -> bool:
        if self._samples < self._target:
            return False
        hand_over()
        self._average()
        self._samples, self.epoch = 0, self.epoch + 1
        return True

    @torch.no_grad()
    def _average(self) -> None:
        opened = self._rounds.open(self.epoch)
        for ours, other in zip(self._parameters, self._swarm.parameters, strict=True):
            ours.lerp_(other, 0.5)
        opened.settle(RoundFacts(2, ("another peer",), (), complete=True))
        self._rounds.close()

    def rest(self, *, leaving: bool) -> None:
        if leaving:
            self.discard("left before the round")

    def wake(self) -> None:
        pass

    def find_back(self, hand_over: Callable[[], None]) -> bool:
        return True

    def reload(self) -> None:
        self.synchronise()

    def tensors(self) -> Iterator[torch.Tensor]:
        return iter(())

    def parts(self) -> Iterator[Part]:
        return iter(())

    def save(self, within: float, copied: Callable[[], object] = lambda: None) -> None:
        pass

    def farewell(self, within: float) -> None:
        pass


STRATEGY: Final[StrategyMaker] = LocalSteps
