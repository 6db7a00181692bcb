"""What the swarm is told of this peer's progress: nothing it could not count on. It must not decide when to rest."""

from __future__ import annotations

import enum
import math
import time
from concurrent.futures import CancelledError
from typing import Any, Final

from hivemind.optim.progress_tracker import GlobalTrainingProgress, LocalTrainingProgress, ProgressTracker
from hivemind.utils import get_dht_time

from skep.worker.swarm.strategy import Rate

REPORT_MARGIN_SECONDS: Final = 1.0
CHANGE: Final = 0.1
"""A rate that differs by more than this part from the one that others know is told at once."""
LEAST_SECONDS: Final = 0.5
"""Between two records that tell nothing but another rate."""
GROWTH_SECONDS: Final = 2.0
"""Between two that tell nothing but more samples, which the others extrapolate: each keeps three processes busy."""


class Presence(enum.Enum):
    """What the swarm may count on."""

    WORKING = enum.auto()
    RESTING = enum.auto()
    AWAY = enum.auto()


class Tombstone(LocalTrainingProgress):
    """A record that is published as none at all: hivemind re-sends the last one, which must not bring us back."""

    def dict(self, **_kwargs: Any) -> None:
        return None


class LiveProgressTracker(ProgressTracker):
    """Progress tracker that tells the rate of now, and "I am resting": others extrapolate what they were told last.

    hivemind's own is a moving average over dozens of step batches, which after a change of share is wrong for minutes; and
    it tells of every step batch, dozens of times a second for a small model.
    """

    local_progress: LocalTrainingProgress
    presence = Presence.WORKING
    rate: Rate = staticmethod(lambda: None)
    """That of a peer that measures none: hivemind's estimate stands."""
    others = 0
    """Peers but for us on the swarm's books, as last seen."""
    _told_samples, _told_rate = 0, 0.0
    """What the others know of us, or are about to."""
    _told_at = -LEAST_SECONDS

    def report_local_progress(self, *args: Any, **kwargs: Any) -> None:
        """As hivemind's: count, and publish at once."""
        super().report_local_progress(*args, **kwargs)
        self._note_told()

    def grow(self, local_epoch: int, samples_accumulated: int) -> None:
        """Count more samples of this epoch at once; `tell` publishes them soon."""
        extra = samples_accumulated - self.local_progress.samples_accumulated
        if local_epoch == self.local_progress.epoch == self.global_progress.epoch:
            self.global_progress.samples_accumulated += extra
        self.performance_ema.update(task_size=extra)
        self.local_progress = self._get_local_progress(local_epoch, samples_accumulated)

    def tell(self) -> None:
        """Publish what the others do not know yet, unless what they were told still stands. Cheap; call it often."""
        now = time.monotonic()
        if self.presence is Presence.WORKING and now - self._told_at >= self._stands_for():
            self._told_at = now
            self._renew()
            self._note_told()
            self.should_report_progress.set()

    def _stands_for(self) -> float:
        """For how many seconds what was told last stands for what we really train."""
        rate, samples = self.rate(), self.local_progress.samples_accumulated
        if samples and not self._told_samples:
            return 0.0  # hivemind publishes no more of a peer that told of no samples for two epochs
        if rate is not None and abs(rate - self._told_rate) > CHANGE * max(rate, self._told_rate):
            return LEAST_SECONDS
        return GROWTH_SECONDS if samples > self._told_samples else math.inf

    def _renew(self) -> None:
        """Make our record anew, with the rate of now."""
        told = self.local_progress
        self.local_progress = self._get_local_progress(told.epoch, told.samples_accumulated)

    def _note_told(self) -> None:
        told = self.local_progress
        self._told_samples, self._told_rate = told.samples_accumulated, told.samples_per_second

    def rest(self) -> None:
        """Publish what is accumulated with a rate of zero, and nothing but zero until `back`."""
        self.presence = Presence.RESTING
        self.report_local_progress(self.local_progress.epoch, self.local_progress.samples_accumulated)

    def withdraw(self, within: float) -> None:
        """Take our record off the swarm's books until `back`; returns after at most `within` seconds."""
        self.presence = Presence.AWAY
        self.local_progress = self._get_local_progress(self.local_progress.epoch, 0)
        gone = self.dht.store(
            self.training_progress_key,
            subkey=self._local_public_key,
            value=None,
            # outlives a report that is on its way
            expiration_time=get_dht_time() + self.metadata_expiration + REPORT_MARGIN_SECONDS,
            return_future=True,
        )
        try:
            gone.result(within)
        except (TimeoutError, CancelledError, OSError):
            gone.cancel()  # the swarm forgets us by itself when the record expires

    def back(self, within: float) -> None:
        """Be counted on again, and look at once how far the swarm is; returns after at most `within` seconds."""
        self.presence = Presence.WORKING
        self._renew()
        self.performance_ema.reset_timer()
        self.fetched_global_progress_this_epoch.clear()
        self.global_progress.next_fetch_time = 0.0
        self.global_state_updated.set()
        self.fetched_global_progress_this_epoch.wait(within)

    def _parse_swarm_progress_data(self, metadata: Any) -> GlobalTrainingProgress:
        records = metadata if isinstance(metadata, dict) else {}
        self.others = sum(record.value is not None for key, record in records.items() if key != self._local_public_key)
        return super()._parse_swarm_progress_data(metadata)

    def _get_local_progress(self, local_epoch: int, samples_accumulated: int) -> LocalTrainingProgress:
        progress = super()._get_local_progress(local_epoch, samples_accumulated)
        rate = self.rate()
        if rate is not None:
            progress = progress.copy(update={"samples_per_second": rate})
        match self.presence:
            case Presence.WORKING:
                return progress
            case Presence.RESTING:
                return progress.copy(update={"samples_per_second": 0.0})
            case Presence.AWAY:
                return Tombstone(**progress.dict())
