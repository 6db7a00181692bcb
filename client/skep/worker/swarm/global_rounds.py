"""The sync mode "global": the gradients of all peers are averaged in one round per epoch, by hivemind.

This is the only module that subclasses hivemind.Optimizer. Stock behaviour that it corrects, each covered by a test:
after a failed round it steps on zeros; one NaN spreads to all peers; a peer that has fallen behind downloads the state
in an endless loop; clipping in the loop clips the accumulated buffer repeatedly; other peers extrapolate a paused
peer's old rate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from itertools import chain
from typing import Any, Final
from weakref import WeakKeyDictionary

import hivemind
import torch
from hivemind.averaging.control import AveragingStage, StepControl
from hivemind.utils import get_dht_time

from skep.core.errors import SwarmError
from skep.core.session.losses import ASLEEP, LEFT
from skep.core.text import Text
from skep.worker.connection.watch import Part, part_of
from skep.worker.process.memory import DroppedInForks
from skep.worker.swarm.apart import Apart
from skep.worker.swarm.averaging import averagers, codecs, low_rank
from skep.worker.swarm.catching_up import BEHIND, FRESH_EPOCHS, LOOK_SECONDS, PAUSED, STATE_PAUSE_SECONDS, CatchingUp
from skep.worker.swarm.claims import ended_together
from skep.worker.swarm.optimizers import tensors_of
from skep.worker.swarm.rounds import Round, RoundFacts
from skep.worker.swarm.state.uplink import Uplink
from skep.worker.swarm.strategy import EpochProgress, Participant, StrategyMaker
from skep.worker.swarm.tracker import LiveProgressTracker, Presence, fetching

RECORD_SECONDS: Final = 20.0
"""Lifetime of our progress record in the DHT; a third of stock's, so that a peer that disappears is dropped sooner."""
LAST_ROUND_SECONDS: Final = 60.0
"""How long a peer that computes nothing stays registered for the round of what it has accumulated, at least."""
LONGEST_LAST_ROUND_SECONDS: Final = 3600.0
"""The same at most, while the round is expected within this time."""


class GlobalRounds(CatchingUp, hivemind.Optimizer):
    """Implements SyncStrategy. Use `Rounds.grow` after each micro-batch, and never `step` or `zero_grad`.

    At rest, what was accumulated goes into the round of this epoch, if that comes soon. After that this peer removes
    its progress record, and keeps the gradients in case it wakes in the same epoch; a peer that leaves discards them.
    """

    scheduled_grads: StepControl | None
    scheduled_state: StepControl | None
    _leaving = False
    _company: int | None = None
    """Other peers with a progress record before this computer slept; None once synchronised again."""

    def __init__(self, own: Participant, *, state_pause: float = STATE_PAUSE_SECONDS) -> None:
        """`state_pause` as STATE_PAUSE_SECONDS."""
        run, sync, rounds = own.run, own.run.sync, own.rounds
        self._state_pause = state_pause
        self._rounds, self._apart = rounds, Apart(sync.average_state_every, own.notice)
        self._total_epochs = run.total_epochs
        self._round_of: WeakKeyDictionary[StepControl, Round] = WeakKeyDictionary()
        # hivemind passes these to the state averager only
        shared = {
            "request_timeout": averagers.request_timeout(sync.matchmaking_seconds),
            "membership": own.membership,
            "bandwidth": own.bandwidth,
            "uplink": Uplink(),
        }
        threshold = sync.size_adaptive_threshold
        self._trained, self._stepping = own.parameters, list[torch.optim.Optimizer]()
        dropped = DroppedInForks(self._not_averaged)
        super().__init__(
            dht=own.dht,
            run_id=run.run_id,
            target_batch_size=sync.target_batch_size,
            batch_size_per_step=own.step_batch,
            params=own.groups or own.parameters,
            optimizer=partial(self._make_stepping, run.optimizer(rounds)),
            scheduler=run.scheduler,
            matchmaking_time=sync.matchmaking_seconds,
            averaging_timeout=sync.averaging_timeout_seconds,
            next_chunk_timeout=sync.silence_seconds,
            reuse_grad_buffers=sync.reuse_grad_buffers,
            offload_optimizer=sync.offload_optimizer,
            delay_optimizer_step=sync.delay_optimizer_step,
            delay_grad_averaging=sync.delay_grad_averaging,
            delay_state_averaging=sync.delay_state_averaging,
            average_state_every=sync.average_state_every,
            client_mode=own.dht.client_mode,
            grad_compression=codecs.round_codec(sync.grad_compression, threshold),
            state_averaging_compression=codecs.round_codec(sync.state_compression, threshold),
            load_state_compression=codecs.loading_codec(sync.load_compression, threshold),
            grad_averager_factory=low_rank.gradient_averager(sync, shared),
            averager_opts=shared,
            tracker_opts={"metadata_expiration": RECORD_SECONDS, **fetching(sync.matchmaking_seconds)},
        )
        dropped.end()  # the averagers are forked by now; later forks, such as a DataLoader's, may need the model
        self.grad_averager.step_batch = self.tracker.step_batch = own.step_batch
        self.state_averager.settled = lambda facts: self._apart.parameters_averaged(self.local_epoch, facts)
        self.grad_averager.ends = lambda: self.local_epoch
        self.grad_averager.is_due = lambda: self.tracker.ready_to_update_epoch
        self.tracker.rate, self.tracker.last_epoch = own.rate, run.total_epochs
        self._tell_loading, self._snapshots, self._signed = own.loading, own.snapshots, own.signed
        # a state that lacks more steps would stay apart from the others' if no round of the state comes soon
        self._fresh = FRESH_EPOCHS if sync.average_state_every <= FRESH_EPOCHS else 1

    def _make_stepping(self, make: Callable[[Any], torch.optim.Optimizer], groups: Any) -> torch.optim.Optimizer:
        self._stepping.append(make(groups))
        return self._stepping[-1]

    def _not_averaged(self) -> Iterator[torch.Tensor]:
        """Tensors that the averagers' processes do not need: they average copies, in memory shared with us."""
        parameters = [p for optimizer in self._stepping for group in optimizer.param_groups for p in group["params"]]
        yield from self._trained
        yield from (p.grad for p in chain(self._trained, parameters) if p.grad is not None)
        for optimizer in self._stepping:
            yield from tensors_of(optimizer)

    def _make_progress_tracker(self, target_batch_size: int, **kwargs: Any) -> LiveProgressTracker:
        return LiveProgressTracker(
            dht=self.dht,
            prefix=self.run_id,
            target_batch_size=target_batch_size,
            client_mode=self.client_mode,
            status_loglevel=self.status_loglevel,
            start=True,
            **kwargs,
        )

    def _make_state_averager(self, **kwargs: Any) -> averagers.CheckedStateAverager:
        return averagers.CheckedStateAverager(
            dht=self.dht,
            prefix=averagers.state_prefix(self.run_id),
            min_matchmaking_time=self.matchmaking_time,
            allreduce_timeout=self.allreduce_timeout,
            shutdown_timeout=self.shutdown_timeout,
            offload_optimizer=self.offload_optimizer,
            custom_gradients=self.offload_optimizer,
            status_loglevel=self.status_loglevel,
            next_chunk_timeout=self.next_chunk_timeout,
            client_mode=self.client_mode,
            auxiliary=self.auxiliary,
            start=True,
            **kwargs,
        )

    # --- what the training loop calls

    @property
    def accumulated(self) -> int:
        """This peer's samples, in step batches handed over, that wait for the round of this epoch."""
        return int(self.grad_averager.local_samples_accumulated)

    @property
    def epoch(self) -> int:
        return int(self.local_epoch)

    @property
    def progress(self) -> EpochProgress:
        swarm = self.tracker.global_progress
        left = swarm.eta_next_epoch - get_dht_time()
        seconds_left = max(0.0, left) if math.isfinite(left) else None
        return EpochProgress(max(0, int(swarm.samples_accumulated)), int(swarm.target_batch_size), seconds_left)

    @property
    def settled(self) -> bool:
        """Whether none of our samples wait for a round and no round or step is running, or no round will come."""
        alone = self.tracker.global_progress.num_peers <= 1
        under_way = self._rounds.oldest or self.state_averager.pending_updates
        return bool(alone if self.accumulated else not under_way)

    @property
    def finished(self) -> bool:
        """As in SyncStrategy. Claims of strangers end no run: all peers that have averaged with us have to say the same.

        A newcomer learns it from the state that it loads.
        """
        return bool(max(self.local_epoch, self.tracker.others_at_least) >= self._total_epochs)

    def ready(self, within: float) -> None:
        """Wait until the averager processes, started in the background, are ready. Raises SwarmError if one is not."""
        try:
            for averager in (self.state_averager, self.grad_averager):
                averager.wait_until_ready(within)
        except Exception as error:
            raise SwarmError(Text("round.part_skep_averages_others_did"), Text("round.skep_tries_again")) from error
        self.grad_averager.reset_accumulated_grads_()

    def contribute(self, samples: int) -> None:
        """Count `samples` whose scaled gradients were added to `.grad` since the last call."""
        self.grad_averager.accumulate_grads_(samples)
        self.tracker.grow(self.local_epoch, self.accumulated)

    def discard(self, reason: Text) -> None:
        """Discard this epoch's gradients, and report them as lost."""
        self._rounds.lose(reason)
        self.grad_averager.reset_accumulated_grads_()
        self.tracker.report_local_progress(self.local_epoch, samples_accumulated=0)

    def apply_arrived(self) -> None:
        """Apply the results of background averaging to the model."""
        self.state_averager.step(apply_delayed_updates=True)

    def tend(self, hand_over: Callable[[], None]) -> bool:
        if self._resting_since is None:
            moved_on = self._keep_in_step(hand_over)
            if moved_on and self._snapshots:
                self._snapshots.consider(self.state_averager.copied)
            return moved_on
        moved_on = False
        if self._counted_on:
            moved_on = self._keep_in_step(hand_over)
        else:
            if self.accumulated and self._leaving:
                self.discard(LEFT)
            self.apply_arrived()
        if self.local_epoch >= self._total_epochs:
            self.withdraw_from_rounds()
            self.tracker.stand()  # the record stays, so that the host and late peers find the last state
        elif not self._counted_on:
            self.withdraw()
        return moved_on

    @property
    def _counted_on(self) -> bool:
        """At rest: whether a round may still use what was accumulated."""
        if self._resting_since is None or not self.accumulated:
            return False
        rested, left = time.monotonic() - self._resting_since, self.progress.seconds_left
        comes = left is not None and self.tracker.global_progress.num_peers > 1
        return rested < LAST_ROUND_SECONDS or (comes and rested + (left or 0.0) < LONGEST_LAST_ROUND_SECONDS)

    def _keep_in_step(self, hand_over: Callable[[], None]) -> bool:
        """Apply results of background averaging, load the state if behind and not at rest, take part in a round that is due.

        `hand_over` is called right before a round begins or the gradients are discarded, to count the samples of an
        unfinished step batch. Returns whether the epoch changed. Blocks for as long as a round or a state download
        takes. Raises SwarmError when this peer is behind and no peer sends the state.
        """
        before = self.local_epoch
        self.tracker.tell()
        self.apply_arrived()
        self._follow()
        if self.tracker.ready_to_update_epoch:
            self._look_before_round()
        if self._should_load_state_from_peers():
            hand_over()
            self._fall_in()
        else:
            self._maybe_schedule_gradient_averaging()
            self._maybe_schedule_state_averaging()
            if self.tracker.ready_to_update_epoch:
                hand_over()
                self._update_global_epoch(None)
                self._come_together()
        return bool(self.local_epoch != before)

    def load_state_from_peers(self, **_kwargs: Any) -> None:
        """Stock entry point, which retries without limit; ours is bounded."""
        self.catch_up(BEHIND)

    def rest(self, *, leaving: bool) -> None:
        """Publish a rate of zero; what is accumulated stays for this epoch's round."""
        self._leaving = leaving
        if self._resting_since is None:
            self._resting_since = time.monotonic()
            self.tracker.rest()

    def wake(self) -> None:
        """Resume after a rest, synchronised with the swarm. Raises SwarmError."""
        self._resting_since = self._company = None
        self.tracker.back(LOOK_SECONDS)
        if self.local_epoch < self.tracker.global_epoch:
            self.catch_up(PAUSED)
        else:
            self.tracker.report_local_progress(self.local_epoch, self.accumulated)
            if not self.accumulated:
                self._come_together()  # it may have missed a round at rest

    def find_back(self, hand_over: Callable[[], None]) -> bool:
        """After the computer slept: synchronise; return whether that succeeded. Raises SwarmError.

        If the swarm had other peers before, it does not count as empty until it answers. At rest no state is loaded.
        """
        resting = self._resting_since is not None
        if resting and not self._counted_on:
            return True
        self._company = self._company or int(self.tracker.others)
        self.withdraw_from_rounds()
        self.tracker.back(LOOK_SECONDS)
        heard = self.tracker.fetched_global_progress_this_epoch.is_set()
        if not heard or (self._company and not self.tracker.others):
            return False
        if resting:
            self.tracker.rest()
        if self.local_epoch < self.tracker.global_epoch and resting:
            self.discard(ASLEEP)
        elif self.local_epoch < self.tracker.global_epoch:
            hand_over()
            self.catch_up(ASLEEP)
        self._company = None
        return True

    def tensors(self) -> Iterator[torch.Tensor]:
        """Tensors on the training device besides the model: gradient accumulators, the optimizer's statistics."""
        yield from self.grad_averager.local_accumulators
        yield from tensors_of(self.state_averager.optimizer)

    def parts(self) -> Iterator[Part]:
        yield part_of(self.grad_averager, Text("watch.gradients"))
        yield part_of(self.state_averager, Text("watch.state"))
        # a thread, which ends at its first error; what hangs in it waits for the DHT's process, which is asked itself
        yield Part(Text("watch.progress"), lambda: not self.tracker.is_alive(), lambda _within: None)

    def farewell(self, within: float) -> None:
        self.tracker.withdraw(within)

    def withdraw(self) -> None:
        """Remove our progress record until `wake`, as nothing is left for a round. May be called repeatedly."""
        if self.tracker.presence is not Presence.AWAY:
            self.tracker.withdraw(0.0)
            self.withdraw_from_rounds()

    def withdraw_from_rounds(self) -> None:
        """Leave pre-arranged rounds: cancel the search for a group, take part with zero weight in a formed group.

        A round that runs in the background contains our work already, and is not touched.
        """
        for control in (self.scheduled_grads, self.scheduled_state):
            if control is not None and not control.done() and not control.triggered:
                if control.stage in {AveragingStage.IDLE, AveragingStage.LOOKING_FOR_GROUP}:
                    control.cancel()
                else:
                    self._tag_along_with_zero_weight(control)
        self.scheduled_grads = self.scheduled_state = None

    # --- overrides of hivemind's steps

    def _begin_averaging_gradients(self, grad_scaler: Any) -> bool:
        if not self.offload_optimizer:
            # parameters averaged in the background would overwrite the next step
            self.state_averager.step(wait_for_delayed_updates=True)
        # by now hivemind has waited for the earlier epoch's delayed step, so its round is closed
        opened = self._rounds.open(self.local_epoch)
        began = bool(super()._begin_averaging_gradients(grad_scaler))
        if began:
            self._round_of[self.scheduled_grads] = opened
        elif self.tracker.global_progress.num_peers > 1:
            opened.fail(Text("round.round_could_not_begin"))
            self._apart.gradients_averaged(opened.epoch, opened.facts)
        else:
            opened.stand_alone()
            super()._load_local_gradients_into_optimizer()
        return began

    def _load_local_gradients_into_optimizer(self) -> None:
        """Does nothing: for a lone peer with a plain optimizer, hivemind would skip or repeat division by the count."""

    def _average_gradients_and_load_into_optimizer(self, maybe_step_control: StepControl | None) -> None:
        assert maybe_step_control is not None
        opened, jumped = self._round_of[maybe_step_control], False
        try:
            facts: RoundFacts = maybe_step_control.result(self.averaging_timeout).facts
            opened.settle(facts)
            if facts.shared:
                ended = ended_together(opened.epoch, [facts.epochs.get(peer) for peer in facts.heard])
                self.tracker.averaged(ended, facts.heard, facts.weights)
                self.state_averager.reached, jumped = ended + 1, ended > opened.epoch
                if not self.delay_grad_averaging:
                    self.state_averager.local_epoch = ended  # hivemind counts on from here
        except (Exception, CancelledError) as error:  # noqa: BLE001 - hivemind raises any error of its processes
            opened.fail(failure_words(error))
        # a peer that goes on in a later epoch lacks the step of the one between
        self._apart.gradients_averaged(opened.epoch, None if jumped else opened.facts)
        self._load_averaged_gradients_into_optimizer_()


def failure_words(error: BaseException) -> Text:
    """Why a round failed, for the ledger."""
    if isinstance(error, TimeoutError):
        return Text("round.round_took_too_long")
    if "could not find a group" in str(error):
        return Text("round.no_group_was_found_round")
    return Text("round.round_failed")


def take_part(own: Participant) -> GlobalRounds:
    made = GlobalRounds(own)
    made.begin()
    made.ask_for_state()
    return made


STRATEGY: Final[StrategyMaker] = take_part
