"""How far the progress records of other peers are believed. Pure; times are seconds of hivemind's clock.

Anybody may publish a progress record with any epoch, samples and rate, and hivemind believes the highest epoch and the
sum of the rest: one false record makes every peer load a state again and again, or ends every epoch at once. What a
peer has seen for itself limits that here: the rounds in which it took part, and the state that it has loaded. A peer that
averages with us counts for what it claims, as far as it delivers that in rounds; another one only if somebody answers
under its id. However many peers claim something together, they may all be one.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median, median_high
from types import MappingProxyType
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
ROUNDS_JUDGED: Final = 3
"""What a peer delivers is judged by the median of so many rounds, so that one that went wrong decides nothing."""
SLACK: Final = 1.25
"""A peer may claim that many times what it delivers: others extrapolate what it has told."""
DELAYED: Final = 2
"""A round that runs while training goes on ends so many epochs later at most."""
NEARLY: Final = 0.8
"""With this part of the epoch's samples it may have ended for others: peers count and end it at slightly different times."""

NOTHING: Final[Mapping[str, float]] = MappingProxyType({})

Key = TypeVar("Key", bound=Hashable)


There = Callable[[Collection[str]], Mapping[str, float]]
"""How far each of the given peers counts, 0..1."""


def all_there(peers: Collection[str]) -> Mapping[str, float]:
    """Each peer counts in full."""
    return dict.fromkeys(peers, 1.0)


def nobody_there(peers: Collection[str]) -> Mapping[str, float]:
    """No peer counts."""
    return dict.fromkeys(peers, 0.0)


@dataclass(frozen=True)
class Claim:
    """What a record says: the id of its peer, an epoch, the samples in it, and samples per second since then.

    `age` is how many seconds ago it said so.
    """

    peer: str
    epoch: int
    samples: int
    rate: float
    age: float = 0.0

    @property
    def by_now(self) -> float:
        """Samples in the epoch, if the rate has stayed as it was."""
        return self.samples + self.rate * self.age

    def counting(self, part: float) -> Claim:
        """The claim with that part of its samples and of its rate."""
        return self if part == 1.0 else replace(self, samples=int(self.samples * part), rate=self.rate * part)


@dataclass(frozen=True)
class Believed(Generic[Key]):
    """What is believed of the claims of others. `at_least` is the lowest epoch of peers that we have met, 0 without any.

    `usual` is the epoch that most of the others have reached, 0 while these are fewer than two.
    """

    claims: dict[Key, Claim]
    at_least: int = 0
    usual: int = 0


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
    _most: dict[tuple[Hashable, int], float] = field(default_factory=dict)
    """The most samples that each record has claimed in each epoch from DELAYED before ours on."""
    _delivered: dict[str, deque[float]] = field(default_factory=dict)
    """Which part 0..1 of what it had claimed each peer that we have met delivered in the last rounds."""
    _absent: Counter[Hashable] = field(default_factory=Counter)
    """In how many of our rounds the data that a record had claimed did not arrive."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def averaged(self, epoch: int, heard: Collection[str], now: float, samples: Mapping[str, float] = NOTHING) -> None:
        """A round that ended `epoch` has averaged our data with that of the peers `heard`.

        `samples` has those that each of them has delivered, as far as this is known.
        """
        with self._lock:
            self._judge(epoch, samples)
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
                if claim.peer not in heard and claim.epoch >= epoch:
                    self._absent[key] += 1
            for peer in heard:
                for key in self._records.get(peer, ()):
                    del self._absent[key]
            self._claimed = {key: claim for key, claim in self._claimed.items() if claim.epoch > epoch}
            self._most = {(key, of): most for (key, of), most in self._most.items() if of > epoch}

    def _judge(self, epoch: int, samples: Mapping[str, float]) -> None:
        for key, claim in self._claimed.items():
            most = self._most.get((key, epoch), 0.0)
            if claim.peer in samples and most > 0 and self._is_only_one_of(claim.peer, key):
                part = min(1.0, SLACK * samples[claim.peer] / most)
                self._delivered.setdefault(claim.peer, deque(maxlen=ROUNDS_JUDGED)).append(part)
        self._delivered = {
            peer: parts for peer, parts in self._delivered.items() if self._has_met(peer) or peer in samples
        }

    def loaded(self, epoch: int, since: float) -> None:
        """A state of `epoch` has arrived, asked for at the time `since`."""
        with self._lock:
            self._learn(epoch, since)

    def _learn(self, epoch: int, now: float) -> None:
        if self._known is None or epoch > self._known[0]:
            self._known = epoch, now

    def believed(
        self,
        claims: Mapping[Key, Claim],
        own: Claim,
        now: float,
        *,
        target: float = 0.0,
        there: There = all_there,
    ) -> Believed[Key]:
        """The claims of other peers without those whose epoch cannot be true, and with the amounts that count.

        An epoch is believed if the swarm may have reached it since we knew its epoch, or if at least half of the peers
        that we have met say so. A peer that we have met counts for the part of its claims that it delivers in rounds,
        and another one as far as it is `there`: of the peers given, how far each counts, 0..1. Where we have met some,
        the others together count for no more samples, and no higher rate, than they and we do; what one of these claims
        counts for nothing when several rounds have ended without its data. One that we have met and that was missing in our
        last round counts as they do. `own` is our record; an epoch has `target` samples, 0 where that is not known.
        """
        with self._lock:
            records: dict[str, set[Hashable]] = defaultdict(set)
            for key, claim in claims.items():
                records[claim.peer].add(key)
            self._records = records
            met = {key for key, claim in claims.items() if self._is_of(claim.peer, key)}
            here = {key for key in met if not self._absent[key]}
            known = {key: claims[key].counting(self._part_of(claims[key].peer)) for key in met}
            told = [claim.epoch for claim in known.values()]
            highest = max(self._possible(now, next_too=self._is_near(known, own, target)), reached_by_half(told))
            kept = {key: claim for key, claim in claims.items() if claim.epoch <= highest}
            self._note_claimed(claims, kept, own)
            known = {key: claim for key, claim in known.items() if key in kept}
            strangers = {key: claim for key, claim in kept.items() if key not in met}
            parts = there({claim.peer for claim in strangers.values()})
            present = [*known.values(), *(claim for claim in strangers.values() if parts[claim.peer])]
            strangers = {
                key: claim
                for key, claim in self._counting(strangers, parts).items()
                if parts[claim.peer] or claim.epoch <= own.epoch or self._known is None
            }
            if not known:
                return Believed(strangers, usual=usual(present))
            absent = {key for key in strangers if self._absent[key] >= ABSENT_ROUNDS}
            strangers = {
                key: claim.counting(0.0) if key in absent else claim
                for key, claim in strangers.items()
                if key not in absent or claim.epoch <= own.epoch
            }
            at_least = min(claim.epoch for claim in known.values())
            in_full = {key: claim for key, claim in known.items() if key in here}
            limited = _limited(strangers | {key: known[key] for key in known.keys() - here}, [own, *in_full.values()])
            return Believed(in_full | limited, at_least, usual(present))

    def _note_claimed(self, claims: Mapping[Key, Claim], kept: Mapping[Key, Claim], own: Claim) -> None:
        for key, claim in kept.items():
            if claim.samples or claim.epoch > own.epoch:
                place = key, claim.epoch
                self._claimed[key], self._most[place] = claim, max(self._most.get(place, 0.0), claim.by_now)
        first = own.epoch - DELAYED
        self._most = {(key, of): most for (key, of), most in self._most.items() if of >= first and key in claims}
        self._absent = Counter({key: count for key, count in self._absent.items() if key in claims})

    def _part_of(self, peer: str) -> float:
        parts = self._delivered.get(peer)
        return median_high(parts) if parts else 1.0

    def _is_near(self, met: Mapping[Key, Claim], own: Claim, target: float) -> bool:
        """Whether most samples of the swarm's epoch are there, by what we know; without a target or other peers, yes."""
        if not met or not target:
            return True
        epoch = max(own.epoch, self._known[0]) if self._known else own.epoch
        # those that have gone on had the others before
        theirs = (
            claim.by_now if claim.epoch == epoch else self._most.get((key, epoch), 0.0) for key, claim in met.items()
        )
        return (own.by_now if own.epoch == epoch else 0.0) + sum(theirs) >= NEARLY * target

    def _counting(self, strangers: Mapping[Key, Claim], parts: Mapping[str, float]) -> dict[Key, Claim]:
        """Of several records under one id, each counts for a part."""
        return {
            key: claim.counting(parts[claim.peer] / len(self._records[claim.peer])) for key, claim in strangers.items()
        }

    def _is_of(self, peer: str, key: Hashable) -> bool:
        """Whether this record is that of a peer that we have met. Of several under its id, all but one are false."""
        return self._has_met(peer) and self._is_only_one_of(peer, key)

    def _is_only_one_of(self, peer: str, key: Hashable) -> bool:
        """Whether this is the only record under the id of `peer`, or was when we averaged with it."""
        return self._records.get(peer) == {key} or self._record_of.get(peer) == key

    def _has_met(self, peer: str) -> bool:
        return any(peer in heard for heard in self._heard)

    def possible(self, now: float) -> float:
        """The highest epoch that the swarm may have reached by what we know; infinite while we know nothing."""
        with self._lock:
            return self._possible(now)

    def _possible(self, now: float, *, next_too: bool = True) -> float:
        if self._known is None:
            return math.inf
        known, at = self._known
        elapsed = max(0.0, now - at)
        usual = max(SHORTEST_EPOCH, median(self._lasted)) if self._lasted else SHORTEST_EPOCH
        passed = elapsed // (usual if elapsed < LATE * usual else SHORTEST_EPOCH)
        return known + next_too + passed


def reached_by_half(epochs: Collection[int]) -> int:
    """The highest epoch that at least half of the peers have reached; 0 without peers."""
    return sorted(epochs)[(len(epochs) - 1) // 2] if epochs else 0


def usual(claims: Collection[Claim]) -> int:
    """The epoch that most peers have reached, 0 where these are fewer than two."""
    epochs = {claim.peer: claim.epoch for claim in claims}
    return reached_by_half(epochs.values()) if len(epochs) > 1 else 0


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
