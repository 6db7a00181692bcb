"""What a download knows of the donors that it asks: how each one's last transfer ended, and how fast it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hivemind.p2p import PeerID
from hivemind.utils import get_logger

from skep.worker.swarm.state.pieces import Refusal
from skep.worker.swarm.state.speed import Speed

logger = get_logger(__name__)


class BrokenOffError(Exception):
    """A donor has nothing for us, is gone or stalled."""


class SlowError(BrokenOffError):
    """A donor sends so little that another one is asked."""


class BusyError(Exception):
    """A donor has no place now."""


class UnbelievedError(Refusal):
    """The state of a donor has a later epoch than is believed now; it may be no lie."""


class Asked:
    """The donors of one download. `liars` have sent something wrong; `refusal` says what the first of them has."""

    def __init__(self) -> None:
        self.liars: set[PeerID] = set()
        self.refusal: Refusal | None = None
        self._listed: Sequence[PeerID] = ()
        self._ended: dict[PeerID, type[Exception]] = {}
        self._speeds: defaultdict[PeerID, Speed] = defaultdict(Speed)

    def order(self, listed: Sequence[PeerID]) -> list[PeerID]:
        """In which those that are listed now are asked: slow ones last, and no liars."""
        self._listed = listed
        hopeful = [donor for donor in listed if donor not in self.liars]
        return sorted(hopeful, key=lambda donor: self._ended.get(donor) is SlowError)

    def end(self, donor: PeerID, error: Refusal | BrokenOffError | BusyError) -> None:
        """Its transfer has ended so."""
        self._ended[donor] = type(error)
        if isinstance(error, Refusal):
            self.refusal = self.refusal or error
            if not isinstance(error, UnbelievedError):
                self.liars.add(donor)
            logger.warning("the state of %s was refused, liars: %d: %s", donor, len(self.liars), error)
        elif isinstance(error, BrokenOffError):
            logger.info("%s did not send its state: %s", donor, error)

    @property
    def lost(self) -> bool:
        """Whether donors could not be reached, or none is listed."""
        return not self._listed or BrokenOffError in self._last

    @property
    def waiting(self) -> bool:
        """Whether donors will send something if they are asked again."""
        return bool({BusyError, SlowError} & self._last)

    @property
    def _last(self) -> set[type[Exception] | None]:
        return {self._ended.get(donor) for donor in self._listed}

    def took(self, donor: PeerID, size: int, seconds: float, *, resumable: bool) -> None:
        """A frame of `size` bytes has come from it within `seconds`, of a transfer that can go on later if `resumable`.

        Raises SlowError if it is slow and another one may be faster. A busy one is asked again if nothing is lost by it.
        """
        self._speeds[donor].took(size, seconds)
        if not self._speeds[donor].is_slow:
            return
        hopeful = {None, BusyError} if resumable else {None}
        others = (other for other in self._listed if other != donor and other not in self.liars)
        if any(self._ended.get(other) in hopeful for other in others):
            del self._speeds[donor]
            raise SlowError("it is slow")
