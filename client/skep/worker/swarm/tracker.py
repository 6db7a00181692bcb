"""The progress that this peer publishes to the swarm, and what it believes of the others'."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Collection, Mapping
from concurrent.futures import CancelledError
from typing import Any, Final

from hivemind.optim.progress_tracker import GlobalTrainingProgress, LocalTrainingProgress, ProgressTracker
from hivemind.p2p import PeerID
from hivemind.utils import ValueWithExpiration, get_dht_time

from skep.worker.connection.attendance import ANSWER_SECONDS, Attendance, asking
from skep.worker.connection.stored import LONGEST_ID
from skep.worker.swarm.claims import Believed, Claim, There, nobody_there
from skep.worker.swarm.experience import NOTHING, Experience
from skep.worker.swarm.strategy import Rate

REPORT_MARGIN_SECONDS: Final = 1.0
CHANGE: Final = 0.1
"""A rate that differs from the published one by more than this part is published soon (LEAST_SECONDS)."""
LEAST_SECONDS: Final = 0.5
"""Between two records of which only the rate differs."""
GROWTH_SECONDS: Final = 2.0
"""Between two with only more samples, which other peers extrapolate: each record costs work in three processes."""
LATE_SECONDS: Final = 4.0
"""How much later than due a record may come: clocks may differ by 3 s."""
LONGEST_FETCH_SECONDS: Final = 10.0
"""Between two looks at the others' progress, as in hivemind."""


def fetching(matchmaking_seconds: float) -> dict[str, float]:
    """Options of the tracker with which a peer learns that the epoch has ended while the others still search for it.

    hivemind looks every 10 s at most, whatever the matchmaking time: if others compute faster than expected, it learns
    of the end up to 10 s late. Our search for a group does not last that long.
    """
    longest = min(LONGEST_FETCH_SECONDS, matchmaking_seconds / 2)
    return {"max_refresh_period": longest, "default_refresh_period": min(3.0, longest)}


def coarse(rate: float) -> float:
    """The rate as others are told it: within 5 %, half of CHANGE. An exact one says which computer this is."""
    return float(f"{rate:.1e}")


class Presence(enum.Enum):
    """What this peer publishes of itself."""

    WORKING = enum.auto()
    RESTING = enum.auto()
    AWAY = enum.auto()


class Tombstone(LocalTrainingProgress):
    """A record that is published as None, because hivemind re-sends the last record after `withdraw`."""

    def dict(self, **_kwargs: Any) -> None:
        return None


class LiveProgressTracker(ProgressTracker):
    """Progress tracker that publishes the current rate, or zero at rest: other peers extrapolate the last record.

    hivemind's rate is a moving average over dozens of step batches, which is wrong for minutes after a change of share;
    and it publishes after every step batch, dozens of times a second for a small model.
    """

    local_progress: LocalTrainingProgress
    presence = Presence.WORKING
    rate: Rate = staticmethod(lambda: None)
    """Default of a peer that does not measure its rate: hivemind's estimate is used."""
    step_batch = 1
    """Samples by which a peer's record grows."""
    last_epoch: float = math.inf
    """That with which the run is over; later ones in records count as this one."""
    trains = True
    """Whether this peer has a record of its own."""
    others = 0
    """Other peers with a progress record, as last seen."""
    at_work = 0
    """Those of them that compute."""
    usual = 0
    """The epoch that most of the others have reached, 0 while these are fewer than two."""
    others_at_least = 0
    """The lowest epoch in the records of peers that have averaged with us; 0 without any."""
    _told_samples, _told_rate = 0, 0.0
    """The values last published, or about to be."""
    _told_at = -LEAST_SECONDS
    _stood_at = -math.inf

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._experience = Experience()  # before hivemind's constructor, which reads the others' records
        self._there: There = nobody_there
        super().__init__(*args, **kwargs)
        self._attendance = Attendance(asking(self.dht), self._look_again)
        self._there = self._attendance.of
        self._look_again()

    def averaged(self, epoch: int, peers: Collection[str], samples: Mapping[str, float] = NOTHING) -> None:
        """A round that ended `epoch` has averaged our data with that of `peers`, by their base58 ids.

        `samples` are those that each has delivered, as far as they are known.
        """
        self._experience.averaged(epoch, peers, get_dht_time(), samples)

    def loaded(self, epoch: int, since: float) -> None:
        """A state of `epoch` has arrived, asked for at the time `since` by hivemind's clock."""
        self._experience.loaded(epoch, since)
        self._know_better()

    def _know_better(self) -> None:
        highest = self._experience.possible(get_dht_time())
        if self.global_progress.epoch > highest:  # from before
            self.global_progress.epoch = int(highest)

    def report_local_progress(self, *args: Any, **kwargs: Any) -> None:
        """As hivemind's: count, and publish immediately."""
        super().report_local_progress(*args, **kwargs)
        self._note_told()

    def grow(self, local_epoch: int, samples_accumulated: int) -> None:
        """Count more samples of this epoch; `tell` publishes them later."""
        extra = samples_accumulated - self.local_progress.samples_accumulated
        if local_epoch == self.local_progress.epoch == self.global_progress.epoch:
            self.global_progress.samples_accumulated += extra
        self.performance_ema.update(task_size=extra)
        self.local_progress = self._get_local_progress(local_epoch, samples_accumulated)

    def tell(self) -> None:
        """Publish changes, unless the last record is still accurate enough. Cheap; call it often."""
        now = time.monotonic()
        if self.presence is Presence.WORKING and now - self._told_at >= self._valid_seconds():
            self._told_at = now
            self._renew()
            self._note_told()
            self.should_report_progress.set()

    def _valid_seconds(self) -> float:
        """For how many seconds the last record remains accurate enough."""
        rate, samples = self.rate(), self.local_progress.samples_accumulated
        if samples and not self._told_samples:
            return 0.0  # hivemind stops publishing for a peer without samples for two epochs
        if rate is not None and abs(rate - self._told_rate) > CHANGE * max(rate, self._told_rate):
            return LEAST_SECONDS
        return GROWTH_SECONDS if samples > self._told_samples else math.inf

    def _renew(self) -> None:
        """Rebuild our record with the current rate."""
        told = self.local_progress
        self.local_progress = self._get_local_progress(told.epoch, told.samples_accumulated)

    def _note_told(self) -> None:
        told = self.local_progress
        self._told_samples, self._told_rate = told.samples_accumulated, told.samples_per_second

    def rest(self) -> None:
        """Publish what is accumulated with a rate of zero, and nothing but zero until `back`."""
        self.presence = Presence.RESTING
        self.report_local_progress(self.local_progress.epoch, self.local_progress.samples_accumulated)

    def stand(self) -> None:
        """Keep our record in the DHT, also if we have contributed nothing: then hivemind does not. Cheap; call it often."""
        now = time.monotonic()
        if now - self._stood_at < self.metadata_expiration / 2:
            return
        self._stood_at = now
        self.dht.store(
            self.training_progress_key,
            subkey=self._local_public_key,
            value=self.local_progress.dict(),
            expiration_time=get_dht_time() + self.metadata_expiration,
            return_future=True,
        )

    def withdraw(self, within: float) -> None:
        """Remove our record from the DHT until `back`; returns after at most `within` seconds."""
        self.presence = Presence.AWAY
        self.local_progress = self._get_local_progress(self.local_progress.epoch, 0)
        gone = self.dht.store(
            self.training_progress_key,
            subkey=self._local_public_key,
            value=None,
            # later than the expiration of a report still being sent
            expiration_time=get_dht_time() + self.metadata_expiration + REPORT_MARGIN_SECONDS,
            return_future=True,
        )
        try:
            gone.result(within)
        except (TimeoutError, CancelledError, OSError):
            gone.cancel()  # the record expires anyway

    def back(self, within: float) -> None:
        """Publish progress again, and learn the swarm's as `look_thoroughly` does."""
        self.presence = Presence.WORKING
        self._renew()
        self.performance_ema.reset_timer()
        self.look_thoroughly(within)

    def stand_at(self, epoch: int, since: float | None = None) -> None:
        """Our state is of this epoch; not published yet. `since` is when the swarm had reached it, if that says anything."""
        self.local_progress = self._get_local_progress(epoch, 0)
        self.global_progress.epoch = max(self.global_progress.epoch, epoch)
        if since is not None:
            self._experience.had_reached(epoch, since)
            self._know_better()

    def stand_back_at(self, epoch: int) -> None:
        """Our state is of this epoch again, which is before the one that we have published."""
        self.local_progress = self._get_local_progress(epoch, 0)
        self.global_progress.epoch = epoch

    def look(self, within: float) -> None:
        """Fetch the swarm's progress; returns after at most `within` seconds."""
        self.fetched_global_progress_this_epoch.clear()
        self._look_again()
        self.fetched_global_progress_this_epoch.wait(within)

    def look_thoroughly(self, within: float) -> None:
        """Fetch the swarm's progress, and learn which of its peers there are.

        Returns after about `within` seconds, and as many as peers have for an answer.
        """
        self.look(within)
        self._attendance.wait(2 * ANSWER_SECONDS)
        if self._attendance.ask_again():  # a busy peer may miss one question, and who sees nobody begins alone
            self.look(within)
            self._attendance.wait(2 * ANSWER_SECONDS)
        self.look(within)

    def newest_of_there(self, epochs: Mapping[str, float]) -> int:
        """The newest of `epochs`, by base58 ids, of those peers that answer; 0 without any.

        A newcomer believes the epochs of progress records under the same condition. Takes at most 4 * ANSWER_SECONDS.
        """
        for _ in range(2):  # at first others may be being asked
            self._there(epochs.keys())
            self._attendance.wait(2 * ANSWER_SECONDS)
        there = self._there(epochs.keys())
        found = [min(epoch, self.last_epoch) for peer, epoch in epochs.items() if there[peer] == 1.0]
        return math.ceil(max(found, default=0.0))

    def _look_again(self) -> None:
        self.global_progress.next_fetch_time = 0.0
        self.global_state_updated.set()

    def _parse_swarm_progress_data(self, metadata: Any) -> GlobalTrainingProgress:
        records = dict(metadata) if isinstance(metadata, dict) else {}
        told = {
            key: LocalTrainingProgress.parse_obj(each.value)
            for key, each in records.items()
            if each.value is not None and key != self._local_public_key
        }
        own = self.local_progress.peer_id  # under another key a process before this one has left a record
        told = {key: each for key, each in told.items() if len(each.peer_id) <= LONGEST_ID and each.peer_id != own}
        found = self._believed(told)
        believed = {
            key: told[key].copy(
                update={
                    "epoch": claim.epoch,
                    "samples_accumulated": claim.samples,
                    "samples_per_second": claim.rate,
                }
            )
            for key, claim in found.claims.items()
        }
        ours = {
            key: each for key, each in records.items() if key == self._local_public_key and self._is_ours(each.value)
        }
        theirs = {key: ValueWithExpiration(each.dict(), records[key].expiration_time) for key, each in believed.items()}
        self.others, self.others_at_least, self.usual = len(believed), found.at_least, found.usual
        self.at_work = sum(claim.rate > 0 for claim in found.claims.values())
        progress = super()._parse_swarm_progress_data(ours | theirs)
        if self.others and self.trains and self.presence is not Presence.AWAY:
            # hivemind counts records: one that has just joined, and whose own is not there yet, would step alone
            progress.num_peers = max(progress.num_peers, self.others + 1)
        return progress

    def _is_ours(self, told: Any) -> bool:
        """Whether our record is not from before we stood back."""
        return told is None or int(told["epoch"]) <= self.local_progress.epoch

    def _believed(self, told: dict[Any, LocalTrainingProgress]) -> Believed[Any]:
        now, own = get_dht_time(), self.local_progress
        claims = {
            key: Claim(
                str(PeerID(each.peer_id)),
                int(min(each.epoch, self.last_epoch)),
                min(each.samples_accumulated, self.target_batch_size),
                self._current_rate(each, now),
                max(0.0, now - each.time),
            )
            for key, each in told.items()
        }
        ours = Claim("", own.epoch, own.samples_accumulated, own.samples_per_second, max(0.0, now - own.time))
        return self._experience.believed(claims, ours, now, target=self.target_batch_size, there=self._there)

    def _current_rate(self, told: LocalTrainingProgress, now: float) -> float:
        """A peer whose next record is overdue counts with what it has reported: it may have died.

        None has a rate of more than an epoch in a second.
        """
        rate = min(told.samples_per_second, float(self.target_batch_size))
        due = GROWTH_SECONDS + 2 * self.step_batch / rate if rate else math.inf
        return rate if now - told.time <= due + LATE_SECONDS else 0.0

    def _get_local_progress(self, local_epoch: int, samples_accumulated: int) -> LocalTrainingProgress:
        progress = super()._get_local_progress(local_epoch, samples_accumulated)
        rate = self.rate()
        told = coarse(progress.samples_per_second if rate is None else rate)
        match self.presence:
            case Presence.WORKING:
                return progress.copy(update={"samples_per_second": told})
            case Presence.RESTING:
                return progress.copy(update={"samples_per_second": 0.0})
            case Presence.AWAY:
                return Tombstone(**progress.dict())
