"""Whether this peer's parameters may differ from those of the others, and when it loads a state for that reason."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from skep.core.session.messages import WorkerNoticed
from skep.core.text import Problem, Text
from skep.worker.swarm.rounds import RoundFacts

WAIT_EPOCHS: Final = 10
ALONE_EPOCHS: Final = 4
"""After so many epochs without a shared round a peer counts as alone; with delays its last one is two epochs old."""
REFUSED: Final = Problem(Text("apart.average_was_refused"), Text("apart.parameters_from_before_are_kept"))
AVERAGED_AGAIN: Final = Problem(Text("apart.averaged_again"))
_log = logging.getLogger(__name__)

Notice = Callable[[WorkerNoticed], object]
"""Tells the user of a problem that does not end training, or that it is over."""


@dataclass
class Apart:
    """Notes rounds without a result for this peer: from then on its parameters differ from those of the others.

    The next averaging of parameters, every `every` epochs, makes them equal again. A peer waits for one that comes
    within WAIT_EPOCHS: it takes place anyway, and sends a third of a state's bytes. If none comes that soon, or if it
    fails as well, the peer loads the state of another one, for which it needs nobody else to be in a round. It does so
    at the beginning of an epoch, when little waits for a round, and once in WAIT_EPOCHS at most: where most rounds
    fail, or a state takes longer than an epoch, it would otherwise do nothing else.
    """

    every: int
    notice: Notice
    _load_at: int | None = None
    """The epoch from which on a state is needed; None while the parameters are the others'."""
    _not_before: int = 0
    _told: bool = False
    _shared: int | None = None
    """The epoch of the last shared round, or the first one that we saw."""

    def gradients_averaged(self, epoch: int, facts: RoundFacts | None) -> None:
        """The round of gradients that ends `epoch` is over; `facts` is None if it failed."""
        if self._shared is None or (facts is not None and facts.shared):
            self._shared = epoch
        if facts is None or not facts.equal:
            self._missed(epoch)

    def parameters_averaged(self, epoch: int, facts: RoundFacts | None) -> None:
        """The round of parameters that begins `epoch` is over; `facts` is None if it failed."""
        if facts is not None and facts.shared:
            self.together()
            if self._told:
                self._told = False
                self.notice(WorkerNoticed(AVERAGED_AGAIN, over=REFUSED))
            return
        self._missed(epoch)
        if facts is not None and facts.refused:
            _log.warning("The average of the parameters of epoch %d is not used: %s", epoch, facts)
            if not self._told:
                self._told = True
                self.notice(WorkerNoticed(REFUSED))

    def _missed(self, epoch: int) -> None:
        if self._load_at is None:
            soon = -(epoch + 1) % self.every <= WAIT_EPOCHS
            self._load_at = epoch + WAIT_EPOCHS if soon else epoch

    def together(self) -> None:
        """The parameters are those of the others."""
        self._load_at = self._shared = None

    def may_stand_back(self, epoch: int) -> bool:
        """Whether to load an earlier state of the others now, at the beginning of `epoch`; once in WAIT_EPOCHS at most."""
        if not self.is_alone(epoch) or epoch < self._not_before:
            return False
        self._not_before = epoch + WAIT_EPOCHS
        return True

    def stood_back(self) -> None:
        """This peer goes on from an earlier epoch: what it did in later ones is past."""
        self._not_before = 0

    def is_alone(self, epoch: int) -> bool:
        """Whether this peer has come to the beginning of `epoch` without the others."""
        return self._shared is not None and epoch - self._shared > ALONE_EPOCHS

    def must_load(self, epoch: int) -> bool:
        """Whether to load a state now, at the beginning of `epoch`."""
        if self._load_at is None or epoch < max(self._load_at, self._not_before):
            return False
        self._not_before = epoch + WAIT_EPOCHS
        return True
