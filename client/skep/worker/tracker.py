"""What the swarm is told of this peer's progress: nothing it could not count on. It must not decide when to rest."""

from __future__ import annotations

import enum
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Final

from hivemind.optim.progress_tracker import LocalTrainingProgress, ProgressTracker
from hivemind.utils import get_dht_time

REPORT_MARGIN_SECONDS: Final = 1.0


class Presence(enum.Enum):
    """What the swarm may count on."""

    WORKING = enum.auto()
    RESTING = enum.auto()
    AWAY = enum.auto()


class Absence(LocalTrainingProgress):
    """A record that is published as none at all: hivemind re-sends the last one, which must not bring us back."""

    def dict(self, **_kwargs: Any) -> None:
        return None


class PoliteTracker(ProgressTracker):
    """Progress tracker that can say "I am resting", so that the others stop extrapolating our old rate."""

    local_progress: LocalTrainingProgress
    presence = Presence.WORKING

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
        except (FutureTimeout, CancelledError, OSError):
            gone.cancel()  # the swarm forgets us by itself when the record expires

    def back(self, within: float) -> None:
        """Be counted on again, and look at once how far the swarm is; returns after at most `within` seconds."""
        self.presence = Presence.WORKING
        self.local_progress = self._get_local_progress(
            self.local_progress.epoch, self.local_progress.samples_accumulated
        )
        self.performance_ema.reset_timer()
        self.fetched_global_progress_this_epoch.clear()
        self.global_progress.next_fetch_time = 0.0
        self.global_state_updated.set()
        self.fetched_global_progress_this_epoch.wait(within)

    def _get_local_progress(self, local_epoch: int, samples_accumulated: int) -> LocalTrainingProgress:
        progress = super()._get_local_progress(local_epoch, samples_accumulated)
        match self.presence:
            case Presence.WORKING:
                return progress
            case Presence.RESTING:
                return progress.copy(update={"samples_per_second": 0.0})
            case Presence.AWAY:
                return Absence(**progress.dict())
