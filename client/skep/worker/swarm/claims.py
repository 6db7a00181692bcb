"""What a progress record of another peer claims, and what several claims together say. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

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

    def at_most(self, samples: int, rate: float) -> Claim:
        """The claim with no more samples, and no higher rate, than these."""
        return replace(self, samples=min(self.samples, samples), rate=min(self.rate, rate))

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


def reached_by_half(epochs: Collection[int]) -> int:
    """The highest epoch that at least half of the peers have reached; 0 without peers."""
    return sorted(epochs)[(len(epochs) - 1) // 2] if epochs else 0


def votes(told: Collection[tuple[str, int]], there: Mapping[str, float]) -> list[tuple[int, float]]:
    """One vote for each peer that is known to be there; one with several records, of which all but one are false, has a part
    of a vote for each. `told` are ids and epochs.
    """
    records = Counter(peer for peer, _ in told)
    return [(epoch, 1.0 / records[peer]) for peer, epoch in told if there[peer] == 1.0]


def reached_by_most(votes: Collection[tuple[int, float]]) -> int:
    """The highest epoch that more than half of the votes have reached, which are epochs and their weights; 0 without votes."""
    left = sum(weight for _, weight in votes) / 2.0
    for epoch, weight in sorted(votes, reverse=True):
        left -= weight
        if left < 0.0:
            return epoch
    return 0


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


def limited(strangers: Mapping[Key, Claim], met: Sequence[Claim]) -> dict[Key, Claim]:
    """The claims of `strangers`, of which all together count for no more samples, and no higher rate, than those of `met`."""
    samples = _part(sum(claim.samples for claim in met), sum(claim.samples for claim in strangers.values()))
    rate = _part(sum(claim.rate for claim in met), sum(claim.rate for claim in strangers.values()))
    return {
        key: replace(claim, samples=int(claim.samples * samples), rate=claim.rate * rate if rate else 0.0)
        for key, claim in strangers.items()
    }


def _part(limit: float, total: float) -> float:
    return min(1.0, limit / total) if total else 1.0
