"""The training loop: micro-batches with naps between them, step batches, rounds, rests, and reports to the engine.

Training is throttled here, between micro-batches. Progress is reported about once a second; a separate thread reports
too, since the training thread may be in a round for half a minute.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from skep.core.errors import SwarmError
from skep.core.session import messages
from skep.core.session.losses import ASLEEP
from skep.core.session.phases import Wait
from skep.core.text import Problem, Text
from skep.recipes.tensors.batches import Batch
from skep.worker.connection.network import ByteCounters
from skep.worker.process.link import Link
from skep.worker.process.memory import give_back
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.strategy import SyncStrategy
from skep.worker.training.bad_losses import BadLosses
from skep.worker.training.data import ASK_AGAIN_SECONDS, NotFetched, Samples, hear_data
from skep.worker.training.device_errors import PartialGradients, as_device_error
from skep.worker.training.pace import Pace, SleepDetector, SwarmWait
from skep.worker.training.reporter import Reporter
from skep.worker.training.resource_limits import ResourceLimits
from skep.worker.training.trainer import Evaluator, Trainer

REST_LOOK_SECONDS: Final = 0.2
DATA_LOOK_SECONDS: Final = 0.02
FIND_BACK_SECONDS: Final = 30.0
"""How long the swarm may take to answer after this computer slept; then the worker restarts."""
HAND_OVER_SECONDS: Final = 45.0
"""After the run's end: a worker exits when it has sent no part of its state for this long. The host looks less often."""
STATE_PART_BYTES: Final = 64 * 1024
"""Less than this sent is no part of a state."""
DOUBTFUL: Final = 10
"""Micro-batches in a row whose loss is not finite after which the parameters are checked."""
HOPELESS: Final = 100
"""The same, after which training ends, to begin again with the swarm's state. In fp16 the scale of the loss needs up
to 32 to adapt. So many step batches in a row whose gradients cannot be used end it too: a device that computes wrongly."""
RUN_FINISHED: Final = Text("round.run_is_finished")
FETCHED_AGAIN: Final = Problem(Text("data.fetched_again"))


@dataclass
class TrainingLoop:
    """The training thread's work, with all parts that it uses.

    `find_back_seconds` and those after it are as FIND_BACK_SECONDS, HAND_OVER_SECONDS and ASK_AGAIN_SECONDS.
    """

    link: Link
    pace: Pace
    samples: Samples
    trainer: Trainer
    sync: SyncStrategy
    rounds: Rounds
    traffic: ByteCounters
    step_batch: int
    limits: ResourceLimits
    sleep: SleepDetector = field(default_factory=SleepDetector)
    find_back_seconds: float = FIND_BACK_SECONDS
    hand_over_seconds: float = HAND_OVER_SECONDS
    ask_again_seconds: float = ASK_AGAIN_SECONDS
    _filled: int = 0
    _computing: int = 0
    """Samples of the micro-batch that is computed."""
    _resting: bool = False
    _skipped: int = 0
    """Micro-batches in a row whose loss was not finite."""
    _refused: int = 0
    """Times in a row that the gradients of finite losses could not be handed over."""
    _ask_at: float = 0.0
    """When data that could not be fetched is asked for again."""
    _not_fetched: Problem | None = None
    """Why data could not be fetched, until there is some again."""
    _slept: float = 0.0
    """Seconds of sleep that were handled."""
    waits_for: Wait = Wait.NOTHING

    def __post_init__(self) -> None:
        self._evaluator = Evaluator(self.trainer, self.samples, self._evaluated_size)
        self._reporter = Reporter(self)
        self._last_wait = "joining", time.monotonic()
        self.pace.slept = self.sleep.slept
        self.trainer.meanwhile = self._work_ahead
        self._bad_losses = BadLosses(self.link.send)

    def run(
        self, stop: threading.Event, finish: threading.Event | None = None, at_edge: threading.Event | None = None
    ) -> None:
        """Train until `stop` is set, or after `finish` is set, until a round has used what was accumulated.

        After `at_edge` is set, `finish` is set when the epoch has changed, before anything is computed for the next one.

        When the run is finished, report that, and return when no peer loads the state any more. Raises SkepError when
        the swarm, the data or the device fails permanently.
        """
        finish, at_edge = finish or threading.Event(), at_edge or threading.Event()
        with as_device_error(self.trainer.name), self._reporter.beating(), self.sleep.watching():
            while not stop.is_set():
                hear_data(self.link, self.samples)
                if self._overslept():
                    self._find_back(stop)
                self.limits.obey(self._last_wait)
                if self.sync.finished:
                    self._see_out(stop)
                    return
                epoch = self.sync.epoch
                if finish.is_set():
                    if self._is_settled():
                        return
                elif self.pace.share == 0.0 or self.limits.must_rest:
                    self._rest()
                else:
                    self._take_turn(stop, finish)
                if at_edge.is_set() and self.sync.epoch != epoch:
                    finish.set()
                self._reporter.tell()

    def state_bytes(self) -> int:
        """Bytes of what is trained and of the optimizer's statistics, and of what else is kept for each parameter."""
        trained = (each for each in self.trainer.model.parameters() if each.requires_grad)
        return sum(each.nbytes for each in chain(trained, self.sync.tensors()))

    def _take_turn(self, stop: threading.Event, finish: threading.Event) -> None:
        """Compute a micro-batch, synchronise with the swarm, and take the nap that is due."""
        self._wake()
        begun, spent_before = time.monotonic(), self.pace.compute_seconds
        trained = self._work()
        if trained is None:
            return
        if self._overslept():
            self._find_back(stop)  # first, because synchronising would begin a round that is over
        elif not self._keep_in_step() and self.sleep.slept() == self._slept:
            spent = self.pace.compute_seconds - spent_before
            self.pace.throughput.turn(trained, time.monotonic() - begun, spent)
        while self.pace.nap() and not (stop.is_set() or finish.is_set() or self.sync.finished):
            self._keep_in_step()

    def _overslept(self) -> bool:
        """Whether the computer slept since the last call."""
        before, self._slept = self._slept, self.sleep.slept()
        return self._slept > before

    # --- working

    def _work(self) -> int | None:
        """Compute a micro-batch; return the number of samples, or None when there was nothing to compute yet."""
        self.waits_for = Wait.NOTHING
        if self._evaluator.busy:
            with self.pace.computing() as allowed:
                evaluation = self._evaluator.go_on() if allowed else None
            if evaluation:
                self.link.send(messages.WorkerEvaluated(evaluation))
            return 0
        size = self._next_size  # read once: the data are ready for this many
        if self._has_data(size):
            return self._train(size)
        self.waits_for = Wait.DATA
        with self.pace.waiting():
            time.sleep(DATA_LOOK_SECONDS)
        self._keep_in_step()
        return None

    def _has_data(self, size: int) -> bool:
        """Whether a micro-batch of `size` samples can be computed. What cannot be fetched is said once, and asked for again."""
        if time.monotonic() < self._ask_at:
            return False
        try:
            ready = self.samples.ready(size)
        except NotFetched as error:
            if self._not_fetched is None:
                self._not_fetched = error.problem
                self.link.send(messages.WorkerNoticed(error.problem))
            self._ask_at = time.monotonic() + self.ask_again_seconds
            return False
        if ready and self._not_fetched is not None:
            self.link.send(messages.WorkerNoticed(FETCHED_AGAIN, over=self._not_fetched))
            self._not_fetched = None
        return ready

    @property
    def _next_size(self) -> int:
        return min(self.limits.size, self.step_batch - self._filled)

    def _train(self, size: int) -> int:
        begun = time.monotonic()
        self._computing = size
        with self.pace.computing() as allowed:
            if not allowed:
                return 0
            batch = self.samples.next_batch(size)
            loss = self._add_gradients(batch, size / self.step_batch)
        wall = time.monotonic() - begun
        self.limits.took(size, wall, self.pace.spent)
        self._bad_losses.count(finite=math.isfinite(loss))
        if not math.isfinite(loss):
            self._count_lost()
            self._doubt()
            return 0  # nothing was added; these samples are not counted
        self._skipped = 0
        self._reporter.trained(loss, size)
        self.rounds.grow(self.sync.epoch, size)
        self._filled += size
        self._count_lost()  # some of them may be of this micro-batch, if it was computed in halves
        if self._filled == self.step_batch:
            self._hand_over()
            self._reporter.handed_over()
            # a newcomer trains before its first evaluation, which takes as long as several batches
            self._evaluator.begin(self.sync.epoch)
        return size

    def _evaluated_size(self) -> int:
        """Samples of a micro-batch without gradients."""
        return self.trainer.loss_size(self.limits.size)

    def _work_ahead(self) -> None:
        """While the device computes a micro-batch: what its step batch, if it is the last, and the next one need."""
        left = self.step_batch - self._filled - self._computing
        if not left:
            self.trainer.measure_gradients()
        self.samples.plan(min(self.limits.size, left or self.step_batch))

    def _doubt(self) -> None:
        """After a loss that is not finite: if there were many, the cause may be the parameters and not the samples."""
        self._skipped += 1
        if self._skipped % DOUBTFUL == 0 and not self.trainer.parameters_finite():
            self._drop()
            with self._in_swarm() as wait:
                wait.behind = "state"
                self.sync.reload()
        elif self._skipped >= HOPELESS:
            raise SwarmError(
                Text("training.no_loss_was_finite", count=self._skipped), Text("training.skep_joins_again")
            )

    def _add_gradients(self, batch: Batch, scale: float) -> float:
        """The loss; not finite when nothing was added."""
        try:
            return self.limits.add_gradients(batch, scale)
        except PartialGradients:
            self._drop()
            self.sync.discard(Text("training.gradients_unusable"))
            return math.nan

    def _hand_over(self) -> None:
        """Count the gradients since the last call into this epoch, if they are finite. Raises SwarmError if many were not."""
        if not self._filled:
            return
        self.trainer.collect()
        self._count_lost()
        filled, self._filled = self._filled, 0
        if not filled:  # all of them were lost with a device
            return
        if self.trainer.gradients_finite():
            self._refused = 0
            self.sync.contribute(filled)
            return
        self.sync.discard(Text("training.gradients_unusable"))
        self._refused += 1
        if self._refused >= HOPELESS:
            raise SwarmError(
                Text("training.no_gradients_were_usable", count=self._refused), Text("training.skep_joins_again")
            )

    def _drop(self) -> None:
        """Forget what was not handed over yet."""
        self._filled = 0
        self.trainer.forget()

    def _count_lost(self) -> None:
        """Count no longer the samples whose gradients are lost with one of several devices."""
        if lost := self.trainer.lost():
            self._filled -= lost
            self.rounds.lose_part(lost, Text("ranks.lost_with_device"))

    def _keep_in_step(self) -> bool:
        """Synchronise with the swarm as far as needed; return whether the epoch changed."""
        with self._in_swarm() as wait:
            moved_on = self.sync.tend(self._hand_over)
            wait.behind = "round" if moved_on else ""
        if moved_on:
            give_back()  # memory of a round, and of a state that was sent
            self._evaluator.begin(self.sync.epoch)
            self._reporter.tell(at_once=True)
        return moved_on

    @contextmanager
    def _in_swarm(self) -> Iterator[SwarmWait]:
        """A context for calls that may block on the swarm."""
        before, self.waits_for = self.waits_for, Wait.SWARM
        with self.pace.in_swarm() as wait:
            yield wait
        self.waits_for = before
        if wait.behind:
            self._last_wait = wait.behind, time.monotonic()

    # --- resting

    def _rest(self, *, leaving: bool = False) -> None:
        """Compute nothing."""
        if not self._resting:
            self._resting = True
            self._hand_over()
        self.sync.rest(leaving=leaving)
        self._keep_in_step()
        self.waits_for = Wait.MEMORY if self.limits.must_rest else Wait.NOTHING
        self.pace.wait_for_change(REST_LOOK_SECONDS)

    def _is_settled(self) -> bool:
        """Synchronise once more before leaving; return whether there is nothing left to wait for."""
        self._rest(leaving=True)
        return self.sync.settled

    def _see_out(self, stop: threading.Event) -> None:
        """After the run's last epoch: compute nothing, take the last step, report the end, hand over the state."""
        self._drop()
        if self.rounds.grown:
            self.sync.discard(RUN_FINISHED)
        self._rest()
        while not (stop.is_set() or self.sync.settled):
            self.limits.obey(self._last_wait)
            self._rest()
        if stop.is_set():
            return
        self._reporter.tell(at_once=True)
        self.link.send(messages.WorkerFinished())
        sent, quiet_since = self.traffic.sent.value, time.monotonic()
        while not stop.is_set() and time.monotonic() - quiet_since < self.hand_over_seconds:
            self.limits.obey(self._last_wait)
            self._rest()
            if self.traffic.sent.value - sent >= STATE_PART_BYTES:
                sent, quiet_since = self.traffic.sent.value, time.monotonic()

    def _wake(self) -> None:
        self.limits.prepare()
        if self._resting:
            self._resting = False
            with self._in_swarm() as wait:
                wait.behind = "state"
                self.sync.wake()

    def _find_back(self, stop: threading.Event) -> None:
        """Synchronise after the computer slept: the swarm has continued, and gradients from before may be outdated."""
        deadline = time.monotonic() + self.find_back_seconds
        with self._in_swarm() as wait:
            wait.behind = "state"
            while not stop.is_set() and not self.sync.find_back(self._hand_over):
                if time.monotonic() > deadline:
                    if self._resting:
                        self.sync.discard(ASLEEP)
                        return
                    raise SwarmError(
                        Text("training.swarm_does_not_answer_since"),
                        Text("training.skep_tries_again_check_network"),
                    )
