"""The training loop: micro-batches with naps between them, step batches, rounds, rests.

Everything is throttled here, between micro-batches. It must not know how a round works (optimizer) or where shards
come from (data, link).
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from typing import Final

from skep.core.messages import ShardArrived, ShardFailed, WorkerEvaluated
from skep.core.model import Evaluation
from skep.core.stay import LEFT
from skep.worker.batches import Batch
from skep.worker.data import Samples
from skep.worker.link import Link
from skep.worker.optimizer import SwarmOptimizer
from skep.worker.pace import Pace
from skep.worker.reporter import Reporter
from skep.worker.rounds import Rounds
from skep.worker.traffic import Traffic
from skep.worker.trainer import Trainer

REST_LOOK_SECONDS: Final = 0.2
DATA_LOOK_SECONDS: Final = 0.02
LAST_ROUND_SECONDS: Final = 60.0
"""How long a paused peer waits for the round that takes what it had accumulated."""
HELD_OUT_SAMPLES: Final = 32
EVALUATION_COST: Final = 50
"""A held-out evaluation is repeated only after this many times the computing it took: at most 2 % of the work."""
PAUSED_TOO_LONG: Final = "paused until after the round"


@dataclass
class Examiner:
    """Measures held-out loss a micro-batch at a time, and not too often."""

    trainer: Trainer
    samples: Samples
    micro_batch: int
    _todo: list[Batch] = field(default_factory=list)
    _total: float = 0.0
    _count: int = 0
    _epoch: int = 0
    _spent: float = 0.0
    _next: float = 0.0

    def begin(self, epoch: int) -> None:
        """Start an evaluation, unless one is under way, the last was too recent, or its data is still on its way."""
        if self._todo or time.monotonic() < self._next:
            return
        batch = self.samples.held_out(HELD_OUT_SAMPLES)
        if batch is not None:
            self._todo = batch.split(self.micro_batch)
            self._total, self._count, self._epoch, self._spent = 0.0, len(batch), epoch, 0.0

    @property
    def busy(self) -> bool:
        return bool(self._todo)

    def go_on(self) -> Evaluation | None:
        """One micro-batch; the evaluation after its last."""
        begun = self.trainer.stopwatch()
        chunk = self._todo.pop()
        self._total += self.trainer.loss(chunk) * len(chunk)
        self._spent += self.trainer.stopwatch() - begun
        if self._todo:
            return None
        self._next = time.monotonic() + EVALUATION_COST * self._spent
        mean = self._total / self._count
        return Evaluation(self._epoch, mean) if math.isfinite(mean) else None


def hear_data(link: Link, samples: Samples) -> None:
    """Hand what the engine said about shards since the last call to `samples`."""
    for message in link.received():
        if isinstance(message, ShardArrived):
            samples.arrived(message.sha256, message.path)
        elif isinstance(message, ShardFailed):
            samples.failed(message.sha256, message.problem)


class TrainingLoop:
    def __init__(
        self,
        *,
        link: Link,
        pace: Pace,
        samples: Samples,
        trainer: Trainer,
        optimizer: SwarmOptimizer,
        rounds: Rounds,
        traffic: Traffic,
        step_batch: int,
        micro_batch: int,
    ) -> None:
        self._link, self._pace, self._samples, self._trainer = link, pace, samples, trainer
        self._optimizer, self._rounds = optimizer, rounds
        self._step_batch, self._micro_batch = step_batch, micro_batch
        self._examiner = Examiner(trainer, samples, micro_batch)
        self._reporter = Reporter(
            link=link, pace=pace, samples=samples, optimizer=optimizer, rounds=rounds, traffic=traffic
        )
        self._filled = 0
        self._resting_since: float | None = None

    def run(self, stop: threading.Event, finish: threading.Event | None = None) -> None:
        """Train until `stop` is set, or after `finish` was, until a round took what was accumulated.

        Raises SkepError when the swarm or the data fails for good.
        """
        finish = finish or threading.Event()
        with self._reporter.beating():
            self._examiner.begin(self._optimizer.local_epoch)
            while not stop.is_set():
                hear_data(self._link, self._samples)
                if finish.is_set():
                    if self._is_finished():
                        return
                elif self._pace.share == 0.0:
                    self._rest(PAUSED_TOO_LONG)
                else:
                    self._take_turn(stop, finish)
                self._reporter.tell()

    def _take_turn(self, stop: threading.Event, finish: threading.Event) -> None:
        """A micro-batch, a look at the swarm, and the nap that is owed."""
        self._wake()
        self._work()
        self._keep_in_step()
        while self._pace.nap() and not (stop.is_set() or finish.is_set()):
            self._keep_in_step()

    # --- working

    def _work(self) -> None:
        if self._examiner.busy:
            with self._pace.computing() as allowed:
                evaluation = self._examiner.go_on() if allowed else None
            if evaluation:
                self._link.send(WorkerEvaluated(evaluation))
        elif self._samples.ready(self._next_size):
            self._train()
        else:
            with self._pace.waiting():
                time.sleep(DATA_LOOK_SECONDS)

    @property
    def _next_size(self) -> int:
        return min(self._micro_batch, self._step_batch - self._filled)

    def _train(self) -> None:
        size = self._next_size
        with self._pace.computing() as allowed:
            if not allowed:
                return
            batch = self._samples.next_batch(size)
            loss = self._trainer.add_gradients(batch, size / self._step_batch)
        if not math.isfinite(loss):
            return  # nothing was added; these samples are simply not counted
        self._reporter.trained(loss, size)
        self._rounds.grow(self._optimizer.local_epoch, size)
        self._filled += size
        if self._filled == self._step_batch:
            self._hand_over()

    def _hand_over(self) -> None:
        """Count the gradients since the last call into this epoch, if they are finite."""
        if not self._filled:
            return
        filled, self._filled = self._filled, 0
        if self._trainer.gradients_finite():
            self._optimizer.contribute(filled)
        else:
            self._optimizer.discard("gradients that were not finite")

    def _keep_in_step(self) -> None:
        with self._pace.waiting():
            moved_on = self._optimizer.tend(self._hand_over)
        if moved_on:
            self._examiner.begin(self._optimizer.local_epoch)
            self._reporter.tell(at_once=True)

    # --- resting

    def _rest(self, lost_because: str) -> None:
        """Compute nothing; `lost_because` is told of what was accumulated when no round comes for it in time."""
        if self._resting_since is None:
            self._resting_since = time.monotonic()
            self._hand_over()
            self._optimizer.rest()
        if self._optimizer.accumulated:
            self._finish_epoch(self._resting_since, lost_because)
        else:
            self._optimizer.apply_arrived()
        if not self._optimizer.accumulated:
            self._optimizer.withdraw()
        self._pace.wait_for_change(REST_LOOK_SECONDS)

    def _finish_epoch(self, since: float, lost_because: str) -> None:
        """What was accumulated before the rest goes into the round at the end of this epoch."""
        if time.monotonic() - since < LAST_ROUND_SECONDS:
            self._keep_in_step()
        else:
            self._optimizer.discard(lost_because)

    def _is_finished(self) -> bool:
        """One more look before leaving: whether the round took what was accumulated, or none will come."""
        self._rest(LEFT)
        return self._optimizer.settled or self._optimizer.alone

    def _wake(self) -> None:
        if self._resting_since is not None:
            self._resting_since = None
            with self._pace.waiting():
                self._optimizer.wake()
