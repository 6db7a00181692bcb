"""Records of what became of each epoch's gradients: opened when a round begins, closed by the optimizer.

Pure bookkeeping between hivemind's callbacks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from skep.core.session.messages import ContributionConfirmed, ContributionLost, ContributionPending
from skep.core.text import NOTHING, Text

Report = Callable[[ContributionPending | ContributionConfirmed | ContributionLost], None]


@dataclass(frozen=True)
class RoundFacts:
    """What this peer observed of one all-reduce.

    `heard` are the base58 ids of the other peers whose complete data, with a weight above zero, went into the average;
    `missing` are groupmates that did not deliver. `complete` says that every part was averaged with another peer's data.
    `arrived` says that no part failed to come back to this peer, even if only its own data is in it. If `refused`, the
    average was not finite or not plausible, and was not used. `idle` says that each groupmate has sent all with weight
    zero: the average is this peer's own data, on all peers. `epochs` are those that groupmates, by their ids, have said
    themselves that they bring to the round; stock peers say nothing. `weights` are the samples that the heard ones have
    delivered, where this peer reduces.
    """

    group_size: int
    heard: tuple[str, ...]
    missing: tuple[str, ...]
    complete: bool
    arrived: bool = True
    refused: bool = False
    idle: bool = False
    epochs: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        """Whether this peer now has the same average as the others, if only of its own data."""
        return (self.idle or bool(self.heard)) and self.arrived and not self.refused

    @property
    def shared(self) -> bool:
        """Whether this peer and the others now have the same average of their data."""
        return bool(self.heard) and self.equal


@dataclass
class Round:
    """One epoch's gradients of this peer, until the optimizer has used them."""

    id: str
    epoch: int
    samples: int
    facts: RoundFacts | None = None
    failure: Text = NOTHING
    usable: bool = True
    """Whether the optimizer may step: it has averaged or purely local gradients (stock steps on zeros)."""
    decided: bool = False
    """Whether the round is over, successfully or not."""

    @property
    def peers(self) -> int:
        return len(self.facts.heard) if self.facts else 0

    def settle(self, facts: RoundFacts) -> None:
        """The all-reduce returned `facts`."""
        self.facts, self.decided = facts, True
        if facts.idle and facts.equal and self.samples:
            self.failure = Text("round.other_peers_had_computed_nothing")  # and step on these gradients
        elif not facts.heard:
            self.failure, self.usable = Text("round.no_other_peer_data_arrived"), False
        elif not facts.complete:
            self.failure = Text("round.part_round_failed")
        else:
            self.failure = NOTHING

    def fail(self, reason: Text) -> None:
        """The all-reduce failed; the buffers do not contain an average."""
        self.failure, self.usable, self.decided = reason, False, True

    def stand_alone(self) -> None:
        """There is no other peer to average with: the gradients are local."""
        self.decided = True


@dataclass
class Rounds:
    """The growing contribution, and the rounds not yet closed, oldest first.

    Called from the training thread, hivemind's step thread and the thread that ends the worker; nothing is reported
    after `end`.
    """

    session: str
    report: Report
    met: Callable[[Sequence[str]], object] = lambda _peers: None
    """Called with the peers of each round that was confirmed; must return at once."""
    last_peers: int = 0
    grown: int = 0
    """Samples of the growing contribution: computed, and not yet in a round."""
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
        """A context in which other threads cannot grow, open, close or report anything."""
        with self._lock:
            yield

    def grow(self, epoch: int, samples: int) -> None:
        """Add `samples`, whose gradients are in the buffers, to the contribution for the round that ends `epoch`."""
        with self._lock:
            if not self._ended:
                self.grown += samples
                self._epoch = epoch

    def open(self, epoch: int) -> Round:
        """Put the growing contribution into the round that ends `epoch`; all earlier rounds are over by now."""
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
        """Close the oldest round: the optimizer stepped on its gradients, or did not for a `reason`."""
        with self._lock:
            if not self._open:
                return  # the other thread was first: the worker ends during a delayed step
            closed = self._open.popleft()
            self.last_peers = closed.peers
            # no reason, no average and no failure: there was no other peer
            reason = closed.failure or reason or (NOTHING if closed.facts else Text("round.no_other_peer"))
            if not closed.samples:
                return
            if reason:
                self._tell(ContributionLost(closed.id, closed.epoch, closed.samples, reason, closed.peers))
            else:
                self._tell(ContributionConfirmed(closed.id, closed.epoch, closed.samples, closed.peers))
                self.met(closed.facts.heard if closed.facts else ())

    def abandon(self, reason: Text) -> None:
        """Close everything still open as lost."""
        while self.oldest is not None:
            self.close(reason)

    def lose(self, reason: Text) -> None:
        """Report the growing contribution as lost."""
        with self._lock:
            if self.grown:
                lost = self._take(self._epoch)
                self._tell(ContributionPending(lost.id, lost.epoch, lost.samples))
                self._tell(ContributionLost(lost.id, lost.epoch, lost.samples, reason))

    def lose_part(self, samples: int, reason: Text) -> None:
        """Report `samples` of the growing contribution as lost, as a contribution of their own."""
        with self._lock:
            left, self.grown = self.grown - samples, samples
            self.lose(reason)
            self.grown = left

    def end(self, reason: Text) -> None:
        """Report everything undecided as lost. The training thread may still run; its later calls report nothing."""
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
