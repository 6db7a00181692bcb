"""How a peer gets the swarm's state: from its own snapshot or from other peers, on joining and when it fell behind."""

from __future__ import annotations

import time
from typing import Final

from skep.core.errors import SwarmError
from skep.core.text import NOTHING, Text
from skep.worker.process.memory import give_back
from skep.worker.swarm.apart import Apart
from skep.worker.swarm.averaging.averagers import CheckedGradientAverager, CheckedStateAverager
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.state.coming import Tell
from skep.worker.swarm.state.snapshots import Snapshots
from skep.worker.swarm.tracker import LiveProgressTracker

STATE_ATTEMPTS: Final = 3
STATE_PAUSE_SECONDS: Final = 2.0
"""Before another attempt to load the state."""
FRESH_EPOCHS: Final = 3
"""A snapshot of our own is good enough if the swarm is at most this many epochs further."""
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

    def withdraw_from_rounds(self) -> None:
        """Leave pre-arranged rounds."""
        raise NotImplementedError

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        raise NotImplementedError

    @property
    def accumulated(self) -> int:
        """As in SyncStrategy."""
        raise NotImplementedError

    def take_up_snapshot(self) -> None:
        """Begin with the state that this computer has kept, unless the swarm is much further.

        Where nobody trains, the run goes on from it, however old it is.
        """
        kept = self._snapshots.newest() if self._snapshots else None
        if self._snapshots is None or kept is None or self.tracker.global_epoch - kept.epoch > self._fresh:
            return
        try:
            self.state_averager.adopt(kept.epoch, self._snapshots.tensors(kept))
        except SwarmError:
            return  # a state of another optimizer, say; the swarm has a right one
        self.tracker.stand_at(kept.epoch)

    @property
    def _needs_state(self) -> bool:
        ahead = self.tracker.global_epoch - self.local_epoch
        return bool(ahead > (self._fresh if self.local_epoch else 0))

    def ask_for_state(self) -> None:
        """Start downloading the state for `synchronise` in the background."""
        if self._needs_state and not self.finished:
            self.state_averager.ask_for_state(self.tracker.global_epoch)

    def synchronise(self) -> None:
        """Before the first sample: load the swarm's state, unless there is none yet or ours is. Raises SwarmError."""
        if self._needs_state:
            self.catch_up(NOTHING)
        elif self.local_epoch:
            self._enter_epoch()

    def catch_up(self, reason: Text) -> None:
        """Load the newest state from the swarm, checked. Raises SwarmError.

        However old it is when it has arrived, this peer goes on in the swarm's epoch: another download would take as
        long. Its parameters lack steps then, until it takes those of the others in a round of the state.
        """
        self.withdraw_from_rounds()
        self.state_averager.step(wait_for_delayed_updates=True)
        self._rounds.lose(reason)
        self._load_state()
        self.tracker.loaded(self.local_epoch, self.state_averager.asked_at)
        self.grad_averager.catch_up()
        self._enter_epoch()
        self._apart.together()
        give_back()

    def reload(self) -> None:
        """As in SyncStrategy."""
        try:
            self.catch_up(Text("round.model_was_not_finite"))
        except SwarmError as error:
            raise SwarmError(Text("round.model_was_lost"), Text("round.skep_joins_again")) from error

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

    def save(self, within: float) -> None:
        if self._snapshots and self.state_averager.whole_epoch:
            self._snapshots.finish(self.state_averager.copied, within)

    def _load_state(self) -> None:
        for attempt in range(STATE_ATTEMPTS):
            try:
                if self.state_averager.load_checked(self.tracker.global_epoch, self._tell_loading) is not None:
                    return
                failure: SwarmError | None = None
            except SwarmError as error:
                failure = error
            if attempt + 1 < STATE_ATTEMPTS:
                time.sleep(self._state_pause)
        raise failure or SwarmError(Text("round.no_peer_swarm_hands_over"), Text("round.others_may_have_just_left"))
