"""The training loop: micro-batches with naps between them, step batches, rounds, rests.

Everything is throttled here, between micro-batches. It must not know how a round works (optimizer) or where shards
come from (data, link).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from skep.core.errors import SwarmError
from skep.core.messages import ShardArrived, ShardFailed, WorkerEvaluated
from skep.core.stay import LEFT
from skep.worker.batches import Batch
from skep.worker.data import Samples
from skep.worker.examiner import Examiner
from skep.worker.faults import said_in_words
from skep.worker.freed import give_back
from skep.worker.gaps import GAP_SECONDS, Gaps
from skep.worker.link import Link
from skep.worker.manners import Manners
from skep.worker.optimizer import ASLEEP, SwarmOptimizer
from skep.worker.pace import Engagement, Pace
from skep.worker.reporter import Reporter
from skep.worker.rounds import Rounds
from skep.worker.scarcity import SpoiltGradients
from skep.worker.throughput import Throughput
from skep.worker.traffic import Traffic
from skep.worker.trainer import Trainer

REST_LOOK_SECONDS: Final = 0.2
DATA_LOOK_SECONDS: Final = 0.02
LAST_ROUND_SECONDS: Final = 60.0
"""How long a peer that computes nothing is counted on for the round that takes what it had accumulated."""
FIND_BACK_SECONDS: Final = 30.0
"""How long the swarm may take to answer after this computer slept; then the worker starts anew."""


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
        manners: Manners,
        gaps: Gaps | None = None,
    ) -> None:
        self._link, self._pace, self._samples, self._trainer = link, pace, samples, trainer
        self._optimizer, self._rounds = optimizer, rounds
        self._step_batch, self._manners, self._gaps = step_batch, manners, gaps or Gaps()
        self._throughput = Throughput()
        optimizer.tracker.rate = lambda: self._throughput.rate(pace.share)
        self._examiner = Examiner(trainer, samples, lambda: manners.size)
        self._reporter = Reporter(
            link=link,
            pace=pace,
            samples=samples,
            optimizer=optimizer,
            rounds=rounds,
            traffic=traffic,
            heavy=lambda: manners.heavy,
        )
        self._filled = 0
        self._resting_since: float | None = None
        self._stood_in = "joining", time.monotonic()
        self._longest_piece = 0.0

    def run(self, stop: threading.Event, finish: threading.Event | None = None) -> None:
        """Train until `stop` is set, or after `finish` was, until a round took what was accumulated.

        Raises SkepError when the swarm, the data or the device fails for good.
        """
        finish = finish or threading.Event()
        with said_in_words(self._trainer.device_name), self._reporter.beating():
            self._gaps.expected()
            while not stop.is_set():
                hear_data(self._link, self._samples)
                if self._gaps.look(self._longest_piece):
                    self._find_back(stop)
                self._manners.obey(self._stood_in)
                if finish.is_set():
                    if self._is_finished():
                        return
                elif self._pace.share == 0.0 or self._manners.must_rest:
                    self._rest()
                else:
                    self._take_turn(stop, finish)
                self._reporter.tell()

    def _take_turn(self, stop: threading.Event, finish: threading.Event) -> None:
        """A micro-batch, a look at the swarm, and the nap that is owed."""
        self._wake()
        begun, spent_before = time.monotonic(), self._pace.compute_seconds
        trained = self._work()
        if trained is None:
            return
        if self._gaps.look(self._longest_piece):
            self._find_back(stop)  # before a look at the swarm would begin a round that is long over
        elif not self._keep_in_step():
            spent = self._pace.compute_seconds - spent_before
            self._throughput.turn(trained, time.monotonic() - begun, spent)
        while self._pace.nap() and not (stop.is_set() or finish.is_set()):
            self._keep_in_step()

    # --- working

    def _work(self) -> int | None:
        """A micro-batch; the samples that were trained, or None when there was nothing to compute yet."""
        if self._examiner.busy:
            self._evaluate()
            return 0
        if self._samples.ready(self._next_size):
            return self._train()
        with self._pace.waiting():
            time.sleep(DATA_LOOK_SECONDS)
        self._keep_in_step()
        return None

    def _evaluate(self) -> None:
        with self._pace.computing() as allowed:
            evaluation = self._examiner.go_on() if allowed else None
        if evaluation:
            self._link.send(WorkerEvaluated(evaluation))

    @property
    def _next_size(self) -> int:
        return min(self._manners.size, self._step_batch - self._filled)

    def _train(self) -> int:
        size, begun = self._next_size, time.monotonic()
        with self._pace.computing() as allowed:
            if not allowed:
                return 0
            batch = self._samples.next_batch(size)
            loss = self._add_gradients(batch, size / self._step_batch)
        wall = time.monotonic() - begun
        self._longest_piece = max(self._longest_piece, min(wall, GAP_SECONDS))
        self._manners.took(size, wall, self._pace.spent)
        if not math.isfinite(loss):
            return 0  # nothing was added; these samples are simply not counted
        self._reporter.trained(loss, size)
        self._rounds.grow(self._optimizer.local_epoch, size)
        self._filled += size
        if self._filled == self._step_batch:
            self._hand_over()
            # a newcomer's first work before its first examination, which takes as long as some batches
            self._examiner.begin(self._optimizer.local_epoch)
        return size

    def _add_gradients(self, batch: Batch, scale: float) -> float:
        """The loss; not finite when nothing was added."""
        try:
            return self._manners.add_gradients(batch, scale)
        except SpoiltGradients:
            self._filled = 0
            self._optimizer.discard("gradients that were not finite")
            return math.nan

    def _hand_over(self) -> None:
        """Count the gradients since the last call into this epoch, if they are finite."""
        if not self._filled:
            return
        filled, self._filled = self._filled, 0
        if self._trainer.gradients_finite():
            self._optimizer.contribute(filled)
        else:
            self._optimizer.discard("gradients that were not finite")

    def _keep_in_step(self) -> bool:
        """A look at the swarm, and all that follows from it; whether the epoch changed."""
        with self._in_swarm() as engagement:
            moved_on = self._optimizer.tend(self._hand_over)
            engagement.behind = "round" if moved_on else ""
        if moved_on:
            give_back()  # what a round took here, and a state that was handed over
            self._examiner.begin(self._optimizer.local_epoch)
            self._reporter.tell(at_once=True)
        return moved_on

    @contextmanager
    def _in_swarm(self) -> Iterator[Engagement]:
        """What takes long here is named, and is no gap."""
        with self._pace.in_swarm() as engagement:
            yield engagement
        self._gaps.expected()
        if engagement.behind:
            self._stood_in = engagement.behind, time.monotonic()

    # --- resting

    def _rest(self, *, leaving: bool = False) -> None:
        """Compute nothing. What was accumulated goes into the round of this epoch, if that comes soon.

        Later we are off the swarm's books, and it waits for us to take up again in the same epoch; who leaves gives it up.
        """
        if self._resting_since is None:
            self._resting_since = time.monotonic()
            self._hand_over()
            self._optimizer.rest()
        soon = time.monotonic() - self._resting_since < LAST_ROUND_SECONDS
        if self._optimizer.accumulated and soon:
            self._keep_in_step()
        else:
            if self._optimizer.accumulated and leaving:
                self._optimizer.discard(LEFT)
            self._optimizer.apply_arrived()
        if not (self._optimizer.accumulated and soon):
            self._optimizer.withdraw()
        self._pace.wait_for_change(REST_LOOK_SECONDS)

    def _is_finished(self) -> bool:
        """One more look before leaving: whether the round took what was accumulated, or none will come."""
        self._rest(leaving=True)
        return self._optimizer.settled or (self._optimizer.accumulated > 0 and self._optimizer.alone)

    def _wake(self) -> None:
        self._manners.prepare()
        if self._resting_since is not None:
            self._resting_since = None
            with self._in_swarm() as engagement:
                engagement.behind = "state"
                self._optimizer.wake()

    def _find_back(self, stop: threading.Event) -> None:
        """The computer slept: the swarm went on without us, and what was computed before may be worth nothing now."""
        if self._resting_since is not None:
            self._optimizer.discard(ASLEEP)
            return
        company, deadline = self._optimizer.company, time.monotonic() + FIND_BACK_SECONDS
        with self._in_swarm() as engagement:
            engagement.behind = "state"
            while not stop.is_set() and not self._optimizer.find_back(company, self._hand_over):
                if time.monotonic() > deadline:
                    raise SwarmError(
                        "The swarm does not answer since this computer woke up.",
                        "skep tries again; check that the network is connected.",
                    )
