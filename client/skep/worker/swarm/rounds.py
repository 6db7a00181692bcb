"""What became of the gradients of each epoch: opened when a round begins, judged by facts, closed by the optimizer.

Pure bookkeeping between hivemind's callbacks; it sends nothing and computes nothing.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from skep.core.session.messages import ContributionConfirmed, ContributionLost, ContributionPending
from skep.core.text import NOTHING, Text

Report = Callable[[ContributionPending | ContributionConfirmed | ContributionLost], None]


@dataclass(frozen=True)
class RoundFacts:
    """What was really seen of one all-reduce, from this peer's own seat.

    `heard` are the base58 ids of the others whose whole data, with a weight above zero, went into the average;
    `missing` are groupmates that did not deliver. `complete` says that every part came back averaged.
    """

    group_size: int
    heard: tuple[str, ...]
    missing: tuple[str, ...]
    complete: bool


@dataclass
class Round:
    """One epoch's gradients of this peer on their way into the model."""

    id: str
    epoch: int
    samples: int
    facts: RoundFacts | None = None
    failure: Text = NOTHING
    usable: bool = True
    """Whether the optimizer may step: averaged or purely local gradients are there (stock steps on zeros)."""
    decided: bool = False
    """Whether the round is over, one way or the other."""

    @property
    def peers(self) -> int:
        return len(self.facts.heard) if self.facts else 0

    def settle(self, facts: RoundFacts) -> None:
        """The all-reduce came back."""
        self.facts, self.decided = facts, True
        if not facts.heard:
            self.failure, self.usable = Text("round.no_other_peer_data_arrived"), False
        elif not facts.complete:
            self.failure = Text("round.part_round_failed")
        else:
            self.failure = NOTHING

    def fail(self, reason: Text) -> None:
        """The all-reduce did not come back; what lies in the buffers is no average."""
        self.failure, self.usable, self.decided = reason, False, True

    def stand_alone(self) -> None:
        """There is nobody to average with: the gradients are our own."""
        self.decided = True


@dataclass
class Rounds:
    """What is growing, and the rounds not yet closed, oldest first.

    Called from the training thread, hivemind's step thread and whichever thread departs: after `end` nothing is told.
    """

    session: str
    report: Report
    last_peers: int = 0
    grown: int = 0
    """Samples of the contribution that is growing: computed, and in no round yet."""
    _epoch: int = 0
    _serial: int = 0
    _ended: bool = False
    _open: deque[Round] = field(default_factory=deque)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def growing(self) -> str:
        """Id of the contribution that is accumulating now."""
        return f"{self.session}-{self._serial:04d}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile nothing grows, opens or closes, and nobody else tells of it."""
        with self._lock:
            yield

    def grow(self, epoch: int, samples: int) -> None:
        """Gradients of so many more samples lie in the buffers, for the round that ends `epoch`."""
        with self._lock:
            if not self._ended:
                self.grown += samples
                self._epoch = epoch

    def open(self, epoch: int) -> Round:
        """All that has grown goes into the round that ends `epoch`; every earlier round is over by now."""
        with self._lock:
            self.abandon(Text("round.optimizer_did_not_use_result"))
            opened = self._take(epoch)
            self._open.append(opened)
            if opened.samples:
                self._tell(ContributionPending(opened.id, epoch, opened.samples))
            return opened

    @property
    def oldest(self) -> Round | None:
        with self._lock:
            return self._open[0] if self._open else None

    def close(self, reason: Text = NOTHING) -> None:
        """The optimizer is done with the oldest round: it stepped on its gradients, or did not for a `reason`."""
        with self._lock:
            if not self._open:
                return  # the other thread was first: a departure beside a delayed step
            closed = self._open.popleft()
            self.last_peers = closed.peers
            # without a reason, nothing averaged and nothing failed: we were alone
            reason = closed.failure or reason or (NOTHING if closed.facts else Text("round.no_other_peer"))
            if not closed.samples:
                return
            if reason:
                self._tell(ContributionLost(closed.id, closed.epoch, closed.samples, reason, closed.peers))
            else:
                self._tell(ContributionConfirmed(closed.id, closed.epoch, closed.samples, closed.peers))

    def abandon(self, reason: Text) -> None:
        """Close everything still open as lost."""
        while self.oldest is not None:
            self.close(reason)

    def lose(self, reason: Text) -> None:
        """What has grown never reaches a round."""
        with self._lock:
            if self.grown:
                lost = self._take(self._epoch)
                self._tell(ContributionPending(lost.id, lost.epoch, lost.samples))
                self._tell(ContributionLost(lost.id, lost.epoch, lost.samples, reason))

    def end(self, reason: Text) -> None:
        """Lose everything that is not decided. The training thread may go on beside us; nobody hears of it."""
        with self._lock:
            self.abandon(reason)
            self.lose(reason)
            self._ended = True

    def _take(self, epoch: int) -> Round:
        taken = Round(self.growing, epoch, self.grown)
        self._serial += 1
        self.grown = 0
        return taken

    def _tell(self, news: ContributionPending | ContributionConfirmed | ContributionLost) -> None:
        if not self._ended:
            self.report(news)
