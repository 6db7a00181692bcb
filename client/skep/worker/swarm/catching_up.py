"""How a peer gets the swarm's state, on joining and when it fell behind: from its own snapshot, and from other peers.

Where the project's newcomers begin with the publisher's signed checkpoint, that takes the place of other peers' states: none
of them is asked for, whatever happens. A peer that lacks steps then takes those of the others in a round of the state.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from hivemind.utils import get_dht_time

from skep.core.errors import SkepError, SwarmError
from skep.core.text import NOTHING, Text
from skep.worker.process.memory import give_back
from skep.worker.swarm.apart import Apart
from skep.worker.swarm.averaging.averagers import CheckedGradientAverager, CheckedStateAverager
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.state.checkpoints import Checkpoint
from skep.worker.swarm.state.coming import Loading, Tell
from skep.worker.swarm.state.signed import SignedState
from skep.worker.swarm.state.snapshots import Snapshots
from skep.worker.swarm.tracker import LiveProgressTracker

STATE_ATTEMPTS: Final = 3
PAUSED: Final = Text("round.computer_was_paused")
BEHIND: Final = Text("round.computer_had_fallen_behind_swarm")
STATE_PAUSE_SECONDS: Final = 2.0
"""Before another attempt to load the state."""
FRESH_EPOCHS: Final = 3
"""A snapshot of our own is good enough if the swarm is at most this many epochs further."""
LONG_AGO: Final = 0.0
"""By hivemind's clock, for a state of which it is not known when the swarm was there."""
LOOK_SECONDS: Final = 2.0
"""How long a returning peer waits for the swarm's progress: right after a pause, what it knows may be 10 s old."""


class CatchingUp:
    """Part of GlobalRounds, mixed in before hivemind's optimizer."""

    tracker: LiveProgressTracker
    state_averager: CheckedStateAverager
    grad_averager: CheckedGradientAverager
    local_epoch: int
    client_mode: bool
    delay_optimizer_step: bool
    _rounds: Rounds
    _tell_loading: Tell
    _snapshots: Snapshots | None
    _apart: Apart
    _state_pause: float
    _fresh: int
    """Epochs that a snapshot may be behind."""
    _has_looked = False
    """Whether those who are there were asked for before the first state."""
    _offered = 0
    """If no peer computes, the newest epoch of the states that peers offer: a paused peer has no progress record."""
    _resting_since: float | None = None
    """At rest: when that began, in monotonic seconds."""
    _signed: SignedState | None
    """If there is one, no state of other peers is ever loaded."""

    def withdraw_from_rounds(self) -> None:
        """Leave pre-arranged rounds."""
        raise NotImplementedError

    def discard(self, reason: Text) -> None:
        """Drop what waits for a round."""
        raise NotImplementedError

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        raise NotImplementedError

    @property
    def accumulated(self) -> int:
        """As in SyncStrategy."""
        raise NotImplementedError

    def begin(self) -> None:
        """Take up a state for which no peer is asked, if there is one: our own, or else the publisher's.

        Raises CheckpointError, StorageError when the publisher's cannot be used.
        """
        if not self.take_up_snapshot() and self._signed is not None:
            self._take_up_signed(self._signed)

    def _take_up_signed(self, signed: SignedState) -> None:
        """Raises CheckpointError, StorageError."""
        tensors = signed.tensors()
        try:
            self.state_averager.adopt(signed.epoch, tensors)
        except SwarmError as error:
            raise signed.unfit() from error
        self.tracker.stand_at(signed.epoch, LONG_AGO)

    def take_up_snapshot(self) -> bool:
        """Begin with the state that this computer has kept, unless the swarm is much further; whether that was done.

        Where nobody trains, the run goes on from it, however old it is.
        """
        kept = self._snapshots.newest() if self._snapshots else None
        if self._snapshots is None or kept is None:
            return False
        self.tracker.look_thoroughly(LOOK_SECONDS)
        if self._signed is None and self._is_beyond(kept.epoch):
            self._snapshots.supersede()
            return False
        return self._is_new_enough(kept.epoch) and self._adopt(self._snapshots, kept, LONG_AGO)

    def _adopt(self, snapshots: Snapshots, kept: Checkpoint, since: float) -> bool:
        """Take up our own state, of `since`; False if it is that of another optimizer, say."""
        try:
            self.state_averager.adopt(kept.epoch, snapshots.tensors(kept))
        except SwarmError:  # a state of another optimizer, say
            snapshots.supersede()
            return False
        self.tracker.stand_at(kept.epoch, since)
        return True

    def _take_up_older(self) -> bool:
        """Take up our own state, however old, since nobody hands over another; whether there is one.

        What others claim of later epochs is believed only as far as time passes from now on.
        """
        kept = self._snapshots.newest() if self._snapshots else None
        if self._snapshots is None or kept is None or self._is_beyond(kept.epoch):
            return False
        return self._adopt(self._snapshots, kept, get_dht_time())

    def _is_new_enough(self, epoch: int) -> bool:
        """Whether a snapshot of `epoch` is. The publisher's checkpoint shows how far the swarm was, also without peers."""
        reached = self.tracker.global_epoch
        if self._signed is not None:
            if epoch >= self._signed.epoch:
                return True
            reached = max(reached, self._signed.epoch)
        return bool(reached - epoch <= self._fresh)

    def _is_beyond(self, epoch: int) -> bool:
        """Whether most of at least two others go on from before `epoch`: a state of it is of a swarm that has ended."""
        return 0 < self.tracker.usual < epoch - 1

    @property
    def _needs_state(self) -> bool:
        if self._signed is not None:
            return False
        newest = self._newest_known
        # after the run's last epoch there is no round of the state in which a peer could take up the steps that it lacks
        behind = self._fresh if self.local_epoch and newest < self.tracker.last_epoch else 0
        return bool(newest - self.local_epoch > behind)

    @property
    def _newest_known(self) -> int:
        return max(int(self.tracker.global_epoch), self._offered)

    def ask_for_state(self) -> None:
        """Start downloading the state for `synchronise` in the background."""
        self._look_before_state()
        if self._needs_state and not self.finished:
            self.state_averager.ask_for_state(self._newest_known)

    def synchronise(self) -> None:
        """Before the first sample: load the swarm's state, unless there is none yet, ours is, or no peer's is taken.

        If nobody hands over a usable one, our own is taken up, however old. Raises SwarmError, unless no other peer has
        a progress record, or we have a state and the run is over.
        """
        self._look_before_state()
        if self._needs_state:
            try:
                self.catch_up(NOTHING)
            except SwarmError:
                alone = self._offered and not self.tracker.others
                over = self.local_epoch and self._newest_known >= self.tracker.last_epoch
                if (self.local_epoch or not self._take_up_older()) and not (alone or over):
                    raise
                self._enter_epoch()
            finally:
                self._offered = 0
        elif self.local_epoch or self._signed is not None:
            self._enter_epoch()

    def _look_before_state(self) -> None:
        """A newcomer believes epochs only of peers that answer; if no peer computes, those of the states that they offer."""
        if self.local_epoch or self._has_looked:
            return
        self._has_looked = True
        self.tracker.look_thoroughly(LOOK_SECONDS)
        if self._signed is None and not self.tracker.at_work:
            offers = self.state_averager.offers()
            self._offered = self.tracker.newest_of_there({str(peer): epoch for peer, epoch in offers.items()})

    def catch_up(self, reason: Text) -> None:
        """Load the newest state from the swarm, checked, unless no peer's state is taken. Raises SwarmError.

        However old it is when it has arrived, this peer goes on in the swarm's epoch: another download would take as
        long. Its parameters lack steps then, until it takes those of the others in a round of the state. So do those of
        a peer that has loaded none.
        """
        self._go_on(reason, self._load_all if self._signed is None else self.grad_averager.forget)

    def reload(self) -> None:
        """As in SyncStrategy. Our own snapshot is not used: it may be what the numbers went wrong from."""
        signed = self._signed
        renew = self._load_all if signed is None else partial(self._begin_again, signed)
        try:
            self._go_on(Text("round.model_was_not_finite"), renew)
        except SkepError as error:
            raise SwarmError(Text("round.model_was_lost"), Text("round.skep_joins_again")) from error

    def _go_on(self, reason: Text, renew: Callable[[], None]) -> None:
        """Drop what waits for a round, have `renew` bring another state or keep this one, and enter the swarm's epoch."""
        self.withdraw_from_rounds()
        self.state_averager.step(wait_for_delayed_updates=True)
        self._rounds.lose(reason)
        renew()
        self._enter_epoch()
        give_back()

    def _fall_in(self) -> None:
        """Behind the others: load the state, or at rest only drop what waits for a round, since `wake` loads it."""
        if self._resting_since is None:
            self.catch_up(BEHIND)
        else:
            self.discard(BEHIND)

    def _come_together(self) -> None:
        """At the beginning of an epoch, unless at rest: load a state if our parameters may differ from those of the others.

        So it is too for a peer that was cut off and has gone on alone, faster than the others together: they believe no
        stranger that is epochs ahead, and it would stay alone for ever. Without a state, training goes on as it is.
        """
        if self._signed is not None or not self.tracker.others or self._resting_since is not None:
            return
        earlier = self.tracker.usual
        with contextlib.suppress(SwarmError):
            if self._is_beyond(self.local_epoch) and self._apart.may_stand_back(self.local_epoch):
                self._go_on(Text("round.computer_had_gone_on_alone"), partial(self._load_earlier, earlier))
            elif self._apart.must_load(self.local_epoch):
                self.catch_up(Text("round.computer_had_missed_round"))

    def _load_earlier(self, epoch: int) -> None:
        """Load a state of `epoch` or later. Raises SwarmError; then this peer stays where it is."""
        before, reached = self.local_epoch, self.state_averager.reached
        self._stand_back_at(epoch, reached=epoch)
        try:
            self._load_all()
        except SwarmError:
            self._stand_back_at(before, reached=reached)
            raise
        self._apart.stood_back()
        if self._snapshots:
            self._snapshots.supersede()

    def _stand_back_at(self, epoch: int, *, reached: int) -> None:
        self.state_averager.local_epoch, self.state_averager.reached = epoch, reached
        self.tracker.stand_back_at(epoch)

    def _begin_again(self, signed: SignedState) -> None:
        self._take_up_signed(signed)
        self.grad_averager.forget()

    def _load_all(self) -> None:
        self._load_state()
        self.tracker.loaded(self.local_epoch, self.state_averager.asked_at)
        self.grad_averager.catch_up()
        self._apart.together()

    def _enter_epoch(self) -> None:
        """Go on in the swarm's epoch, with the state that we have."""
        self.tracker.look(LOOK_SECONDS)
        with self.tracker.pause_updates():
            averager = self.state_averager
            averager.local_epoch = max(averager.local_epoch, self.tracker.global_epoch)
            averager._update_scheduler()  # noqa: SLF001 - hivemind has no other way
            self.tracker.report_local_progress(self.local_epoch, samples_accumulated=0)
        self._should_check_synchronization_on_update = False  # it was checked now
        if not self.client_mode:
            averager.state_sharing_priority = averager.whole_epoch

    def _follow(self) -> None:
        """Go on in the epoch of the peers with which a round was shared, if theirs was one later than ours.

        With hivemind alone both keep the difference for ever. The one behind begins each round as soon as it has seen
        that the other is ahead, with hardly a sample.
        """
        if self.state_averager.reached > self.local_epoch:
            self.withdraw_from_rounds()  # of the epoch before, whose number our search tells
            with self.tracker.pause_updates():
                self.state_averager.local_epoch = self.state_averager.reached
                self.tracker.update_epoch(self.local_epoch)
            self.tracker.report_local_progress(self.local_epoch, self.accumulated)

    def _look_before_round(self) -> None:
        """Before a round that is due: use the last one's result, and see whether a lone peer is still alone."""
        if self.delay_optimizer_step:
            self.state_averager.step(wait_for_delayed_updates=True)
            self._follow()
        if not self.tracker.others:
            self.tracker.look(LOOK_SECONDS)

    def save(self, within: float, copied: Callable[[], object] = lambda: None) -> None:
        if self._snapshots and self.state_averager.whole_epoch:
            self._snapshots.finish(self.state_averager.copied, within, copied)
        else:
            copied()

    def _tell(self, loading: Loading) -> None:
        """While a state is loaded, which may take many epochs."""
        self.state_averager.loading.known = self._newest_known
        self._tell_loading(loading)

    def _load_state(self) -> None:
        failure: SwarmError | None = None  # the last one: whoever has sent something wrong is not asked again
        for attempt in range(STATE_ATTEMPTS):
            try:
                if self.state_averager.load_checked(self._newest_known, self._tell) is not None:
                    return
            except SwarmError as error:
                failure = error
            if attempt + 1 < STATE_ATTEMPTS:
                time.sleep(self._state_pause)
                self.tracker.look(LOOK_SECONDS)  # a donor may be further than we know
        raise failure or SwarmError(Text("round.no_peer_swarm_hands_over"), Text("round.others_may_have_just_left"))
