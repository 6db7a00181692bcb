"""What peers have claimed, and how much of it they have delivered in rounds. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Hashable, Mapping
from statistics import median_high
from typing import Final

from skep.worker.swarm.claims import Claim, Key
from skep.worker.swarm.met_peers import MetPeers

ABSENT_ROUNDS: Final = 3
"""After so many of our rounds without its data, what a peer claims counts for nothing."""
ROUNDS_JUDGED: Final = 3
"""What a peer delivers is judged by the median of so many rounds, so that one that went wrong decides nothing."""
SLACK: Final = 1.25
"""A peer may claim that many times what it delivers: others extrapolate what it has told."""
DELAYED: Final = 2
"""A round that runs while training goes on ends so many epochs later at most."""


class Deliveries:
    """The claims of each record beside what arrived from its peer in our rounds."""

    def __init__(self, met: MetPeers) -> None:
        self._met = met
        self._claimed: dict[Hashable, Claim] = {}
        """The last claims of samples."""
        self._most: dict[tuple[Hashable, int], float] = {}
        """The most samples that each record has claimed in each epoch from DELAYED before ours on."""
        self._delivered: dict[str, deque[float]] = {}
        """Which part 0..1 of what it had claimed each peer that we have met delivered in the last rounds."""
        self._absent: Counter[Hashable] = Counter()
        """In how many of our rounds the data that a record had claimed did not arrive."""
        self._excused = False
        """Whether the last round was one that says nothing of who was missing in it."""

    def note(self, records: Collection[Hashable], claims: Mapping[Key, Claim], epoch: int) -> None:
        """There are these records, of which those of `claims` may be true; ours is in `epoch`."""
        for key, claim in claims.items():
            if claim.samples or claim.epoch > epoch:
                place = key, claim.epoch
                self._claimed[key], self._most[place] = claim, max(self._most.get(place, 0.0), claim.by_now)
        first = epoch - DELAYED
        self._most = {(key, of): most for (key, of), most in self._most.items() if of >= first and key in records}
        self._absent = Counter({key: count for key, count in self._absent.items() if key in records})

    def judge(self, epoch: int, samples: Mapping[str, float]) -> None:
        """In the round that ended `epoch` each peer of `samples` has delivered so many.

        Call it before `MetPeers.averaged` of the same round.
        """
        for key, claim in self._claimed.items():
            most = self.most_claimed(key, epoch)
            if claim.peer in samples and most > 0 and self._met.is_only_one(key, claim.peer):
                part = min(1.0, SLACK * samples[claim.peer] / most)
                self._delivered.setdefault(claim.peer, deque(maxlen=ROUNDS_JUDGED)).append(part)
        self._delivered = {
            peer: parts for peer, parts in self._delivered.items() if self._met.has(peer) or peer in samples
        }

    def round_ended(self, epoch: int, heard: Collection[str]) -> None:
        """The round that ended `epoch` had the data of the peers `heard`, and of no others.

        If most peers of the round before are missing, which had claimed data, we were in another group than they, and count
        none of them as missing; but not twice in succession. Else we would believe too little of the others' progress, learn
        too late that an epoch has ended, and be in no group of theirs from then on. Call it before `MetPeers.averaged` of
        the same round.
        """
        missing = {
            key: claim.peer for key, claim in self._claimed.items() if claim.epoch >= epoch and claim.peer not in heard
        }
        before = self._met.in_last_round
        self._excused = not self._excused and 2 * len(before.intersection(missing.values())) > len(before)
        if not self._excused:
            self._absent.update(missing.keys())
        for peer in heard:
            for key in self._met.records_of(peer):
                del self._absent[key]
        self._claimed = {key: claim for key, claim in self._claimed.items() if claim.epoch > epoch}
        self._most = {(key, of): most for (key, of), most in self._most.items() if of > epoch}

    def part_of(self, peer: str) -> float:
        """Which part 0..1 of what it claims this peer delivers; 1 while nothing is known."""
        parts = self._delivered.get(peer)
        return median_high(parts) if parts else 1.0

    def most_claimed(self, key: Hashable, epoch: int) -> float:
        """Samples that this record has claimed in that epoch, at most."""
        return self._most.get((key, epoch), 0.0)

    def missing(self, key: Hashable) -> int:
        """Rounds since its peer was last in one, in which the data that this record had claimed did not arrive."""
        return self._absent[key]
