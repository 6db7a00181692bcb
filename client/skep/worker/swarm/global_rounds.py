"""The sync mode "global": everybody's gradients are averaged in one round per epoch, by hivemind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

import hivemind
import torch

from skep.core.project.types import Manifest
from skep.core.session.transitions import LEFT
from skep.core.text import Text
from skep.worker.swarm.auth import Membership
from skep.worker.swarm.optimizer import GlobalRounds
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.strategy import EpochProgress, Rate, StrategyMaker

LAST_ROUND_SECONDS: Final = 60.0
"""How long a peer that computes nothing is counted on for the round that takes what it had accumulated."""


class AveragedGradients:
    """Implements SyncStrategy over hivemind's optimizer.

    At rest, what was accumulated goes into the round of this epoch, if that comes soon. Later this peer is off the
    swarm's books, and it waits for the peer to wake in the same epoch; who leaves gives it up.
    """

    def __init__(
        self,
        manifest: Manifest,
        dht: hivemind.DHT,
        parameters: list[torch.nn.Parameter],
        step_batch: int,
        rounds: Rounds,
        *,
        rate: Rate,
        membership: Membership | None,
        optimizer: Callable[..., GlobalRounds] = GlobalRounds,
    ) -> None:
        self._optimizer = optimizer(manifest, dht, parameters, step_batch, rounds, membership=membership)
        self._optimizer.tracker.rate = rate
        self._resting_since: float | None = None
        self._leaving = False
        self._company: int | None = None
        self._optimizer.ask_for_state()

    @property
    def epoch(self) -> int:
        return int(self._optimizer.local_epoch)

    @property
    def progress(self) -> EpochProgress:
        swarm = self._optimizer.tracker.global_progress
        return EpochProgress(max(0, int(swarm.samples_accumulated)), int(swarm.target_batch_size))

    @property
    def settled(self) -> bool:
        return self._optimizer.settled or (self._optimizer.accumulated > 0 and self._optimizer.alone)

    def ready(self, within: float) -> None:
        self._optimizer.wait_until_ready(within)
        self._optimizer.grad_averager.reset_accumulated_grads_()

    def synchronise(self) -> None:
        self._optimizer.synchronise()

    def contribute(self, samples: int) -> None:
        self._optimizer.contribute(samples)

    def discard(self, reason: Text) -> None:
        self._optimizer.discard(reason)

    def tend(self, hand_over: Callable[[], None]) -> bool:
        if self._resting_since is None:
            return self._optimizer.tend(hand_over)
        moved_on = False
        if self._counted_on:
            moved_on = self._optimizer.tend(hand_over)
        else:
            if self._optimizer.accumulated and self._leaving:
                self._optimizer.discard(LEFT)
            self._optimizer.apply_arrived()
        if not self._counted_on:
            self._optimizer.withdraw()
        return moved_on

    @property
    def _counted_on(self) -> bool:
        """At rest: whether a round is still to take what was accumulated."""
        since = self._resting_since
        soon = since is not None and time.monotonic() - since < LAST_ROUND_SECONDS
        return soon and self._optimizer.accumulated > 0

    def rest(self, *, leaving: bool) -> None:
        self._leaving = leaving
        if self._resting_since is None:
            self._resting_since = time.monotonic()
            self._optimizer.rest()

    def wake(self) -> None:
        self._resting_since = None
        self._optimizer.wake()

    def find_back(self, hand_over: Callable[[], None]) -> bool:
        if self._company is None:
            self._company = self._optimizer.company
        found = self._optimizer.find_back(self._company, hand_over)
        if found:
            self._company = None
        return found

    def tensors(self) -> Iterator[torch.Tensor]:
        return self._optimizer.tensors()

    def farewell(self, within: float) -> None:
        self._optimizer.tracker.withdraw(within)


STRATEGY: Final[StrategyMaker] = AveragedGradients
