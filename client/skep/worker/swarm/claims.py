"""How far the progress records of other peers are believed. Pure; times are seconds of hivemind's clock.

Anybody may publish a progress record with any epoch, samples and rate, and hivemind believes the highest epoch and the
sum of the rest: one false record makes every peer load a state again and again, or ends every epoch at once. What a
peer has seen for itself limits that here: the rounds in which it took part, and the state that it has loaded. A record
of a peer that averages with us is not limited. However many peers claim something together, they may all be one.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final, Generic, TypeVar

SHORTEST_EPOCH: Final = 1.0
"""Seconds. Without rounds of our own to compare with, the swarm is believed to be this fast."""
ROUNDS_COMPARED: Final = 5
LATE: Final = 3
"""Once our last round is this many usual epochs ago, the usual length says nothing about the epochs since then."""
MET_ROUNDS: Final = 3
"""A peer counts as met for this many of our rounds."""
ABSENT_ROUNDS: Final = 3
"""After so many of our rounds without its data, what a peer claims counts for nothing."""

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Claim:
    """What a record says: the id of its peer, an epoch, the samples in it, and samples per second."""

    peer: str
    epoch: int
    samples: int
    rate: float


@dataclass(frozen=True)
class Believed(Generic[Key]):
    """What is believed of the claims of others. `at_least` is the lowest epoch of peers that we have met, 0 without any.

    `usual` is the epoch that most of the others have reached, 0 while these are fewer than two.
    """

    claims: dict[Key, Claim]
    at_least: int = 0

    @property
    def usual(self) -> int:
        epochs = {claim.peer: claim.epoch for claim in self.claims.values()}
        return reached_by_half(epochs.values()) if len(epochs) > 1 else 0


@dataclass(eq=False)
class Experience:
    """What this peer knows about the swarm without its records. To be used by any thread."""

    _known: tuple[int, float] | None = None
    """An epoch that the swarm had reached, and when."""
    _lasted: deque[float] = field(default_factory=lambda: deque(maxlen=ROUNDS_COMPARED))
    """Seconds of an epoch, between rounds of ours."""
    _round_at: tuple[int, float] | None = None
    _heard: deque[frozenset[str]] = field(default_factory=lambda: deque(maxlen=MET_ROUNDS))
    _records: dict[str, set[Hashable]] = field(default_factory=dict)
    """The records that there were under the id of each peer, as last seen."""
    _record_of: dict[str, Hashable] = field(default_factory=dict)
    """The only one that there was when we averaged with that peer. Other peers can publish more records under its id later."""
    _claimed: dict[Hashable, Claim] = field(default_factory=dict)
    """The last claims of samples."""
    _absent: Counter[Hashable] = field(default_factory=Counter)
    """In how many of our rounds the data that a record had claimed did not arrive."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def averaged(self, epoch: int, heard: Collection[str], now: float) -> None:
        """A round that ended `epoch` has averaged our data with that of the peers `heard`."""
        with self._lock:
            if self._round_at and epoch >= self._round_at[0]:
                self._lasted.append((now - self._round_at[1]) / (epoch + 1 - self._round_at[0]))
            self._round_at = epoch + 1, now
            self._learn(epoch + 1, now)
            self._heard.append(frozenset(heard))
            for peer in heard:
                if len(keys := self._records.get(peer, set())) == 1:
                    (self._record_of[peer],) = keys
            self._record_of = {peer: key for peer, key in self._record_of.items() if self._has_met(peer)}
            for key, claim in self._claimed.items():
                if claim.peer in heard:
                    del self._absent[key]
                elif claim.epoch >= epoch:
                    self._absent[key] += 1
            self._claimed = {key: claim for key, claim in self._claimed.items() if claim.epoch > epoch}

    def loaded(self, epoch: int, since: float) -> None:
        """A state of `epoch` has arrived, asked for at the time `since`."""
        with self._lock:
            self._learn(epoch, since)

    def _learn(self, epoch: int, now: float) -> None:
        if self._known is None or epoch > self._known[0]:
            self._known = epoch, now

    def believed(self, claims: Mapping[Key, Claim], own: Claim, now: float) -> Believed[Key]:
        """The claims of other peers without those whose epoch cannot be true, and with the amounts that count.

        An epoch is believed if the swarm may have reached it since we knew its epoch, or if at least half of the peers
        that we have met say so. Where we have met some, the others together count for no more samples, and no higher
        rate, than they and we do; what one of these claims counts for nothing when several rounds have ended without its
        data. `own` is our record.
        """
        with self._lock:
            records: dict[str, set[Hashable]] = defaultdict(set)
            for key, claim in claims.items():
                records[claim.peer].add(key)
            self._records = records
            met = {key for key, claim in claims.items() if self._is_of(claim.peer, key)}
            highest = max(self._possible(now), reached_by_half([claims[key].epoch for key in met]))
            kept = {key: claim for key, claim in claims.items() if claim.epoch <= highest}
            self._claimed |= {key: claim for key, claim in kept.items() if claim.samples or claim.epoch > own.epoch}
            self._absent = Counter({key: count for key, count in self._absent.items() if key in claims})
            known = {key: claim for key, claim in kept.items() if key in met}
            if not known:
                return Believed(kept)
            absent = {key for key in kept if self._absent[key] >= ABSENT_ROUNDS}
            strangers = {
                key: replace(claim, samples=0, rate=0.0) if key in absent else claim
                for key, claim in kept.items()
                if key not in known and (key not in absent or claim.epoch <= own.epoch)
            }
            at_least = min(claim.epoch for claim in known.values())
            return Believed(known | _limited(strangers, [own, *known.values()]), at_least)

    def _is_of(self, peer: str, key: Hashable) -> bool:
        """Whether this record is that of a peer that we have met. Of several under its id, all but one are false."""
        records = self._records[peer]
        return self._has_met(peer) and (len(records) == 1 or (self._record_of.get(peer) == key))

    def _has_met(self, peer: str) -> bool:
        return any(peer in heard for heard in self._heard)

    def possible(self, now: float) -> float:
        """The highest epoch that the swarm may have reached by what we know; infinite while we know nothing."""
        with self._lock:
            return self._possible(now)

    def _possible(self, now: float) -> float:
        if self._known is None:
            return math.inf
        known, at = self._known
        elapsed = max(0.0, now - at)
        usual = max(SHORTEST_EPOCH, median(self._lasted)) if self._lasted else SHORTEST_EPOCH
        passed = elapsed // (usual if elapsed < LATE * usual else SHORTEST_EPOCH)
        return known + 1 + passed


def reached_by_half(epochs: Collection[int]) -> int:
    """The highest epoch that at least half of the peers have reached; 0 without peers."""
    return sorted(epochs)[(len(epochs) - 1) // 2] if epochs else 0


def ended_together(own: int, told: Collection[int | None]) -> int:
    """The epoch that a round of gradients has ended: `own`, or the next one.

    `told` is what each of the other peers whose data was heard has said itself: the epoch that it was in, or, as stock
    peers do, nothing. It is the next one if at least half of them were in a later epoch than `own`.
    """
    later = sum(epoch is not None and epoch > own for epoch in told)
    return own + 1 if later and 2 * later >= len(told) else own


def _limited(strangers: Mapping[Key, Claim], met: Sequence[Claim]) -> dict[Key, Claim]:
    samples = _part(sum(claim.samples for claim in met), sum(claim.samples for claim in strangers.values()))
    rate = _part(sum(claim.rate for claim in met), sum(claim.rate for claim in strangers.values()))
    return {
        key: replace(claim, samples=int(claim.samples * samples), rate=claim.rate * rate if rate else 0.0)
        for key, claim in strangers.items()
    }


def _part(limit: float, total: float) -> float:
    return min(1.0, limit / total) if total else 1.0
