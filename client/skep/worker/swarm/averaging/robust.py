"""What a reducer makes of the parts that peers sent it, so that no single peer decides the average.

Gradients are averaged as by stock hivemind, weighted by samples, with two exceptions. A part whose norm is far above what
such parts usually have is scaled down. A peer whose gradients do not point where those of the others point, part after
part, is left out until they do: gradients of honest peers have the same expectation, so their inner products have the
same positive one, however few samples a peer has. Of parameters, which are equal on all peers that missed no step, the
median is taken.

Stock behaviour that this corrects, covered by tests: one peer's values and weight may be as large as it likes. In-bounds
attacks and the reasons for a bound on the norm: Karimireddy et al., "Learning from History for Byzantine Robust
Optimization", arXiv:2012.10333. What two peers send for a part cannot be judged: neither is a majority.
"""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Protocol

import torch

from skep.worker.swarm.averaging.returned import UsualNorms

LOOSE: Final = 4.0
"""By how many times the usual excess of a norm over its reference a part may exceed it."""
TIGHT: Final = 1.5
"""The same for a peer that has not agreed with others yet."""
QUARTILE: Final = 0.75
"""The reference of a peer is this quantile of the norms of the others, and the usual excess one of all peers' excesses."""
ROUNDS_COMPARED: Final = 9
"""Rounds of which the median norm of our own gradients is a reference too, as others may have nothing in a sparse part;
and whose largest norms show what is usual."""
JUDGES: Final = 3
"""Peers of a group, at least, to judge one of them."""
LEAST_AGREEMENT: Final = 0.4
"""Of what is usual among the peers: less than this is no agreement."""
MEMORY: Final = 0.95
"""What remains of the evidence of earlier rounds with each new one."""
LEAST_ROUNDS: Final = 4.0
FIRST_SPREAD: Final = 0.1
"""Standard deviation of a round's agreement, as a cosine, that is expected before any was seen."""
FIRST_ROUNDS: Final = 2.0
"""Rounds that this expectation counts for."""
DOUBT: Final = 4.0
"""Standard errors below LEAST_AGREEMENT at which a peer is left out, until it has agreed again."""
PROVEN: Final = 2.0
"""Standard errors above LEAST_AGREEMENT at which a peer has agreed, until it is left out."""
KEPT: Final = 256
"""Number of peers remembered."""
WHOLE: Final = 0.5
"""Of the largest weight: parameters of peers with less lack steps, and have no vote."""


@dataclass(frozen=True)
class Part:
    """What one peer sent for a part of the tensors: values in one dimension, and the weight that they count with."""

    sender: Hashable
    values: torch.Tensor
    weight: float


@dataclass(frozen=True)
class Combined:
    """The result for a part, and the peers whose values were scaled down for it or left out of it."""

    values: torch.Tensor
    scaled: frozenset[Hashable] = frozenset()
    left_out: frozenset[Hashable] = frozenset()


class Combination(Protocol):
    """Combines parts of one kind of tensors, round after round."""

    most_weight: float
    """The largest weight that a peer may have."""
    usual: UsualNorms | None
    """What is known of such tensors, to compare what other reducers return; None where that is checked otherwise."""

    def begin(self) -> None:
        """A round begins."""

    def see_own(self, norms: Sequence[float]) -> None:
        """The norms of all parts of our own tensors in this round, if they count."""

    def combine(self, number: int, parts: Sequence[Part]) -> Combined:
        """`number` is that of the part among all parts of the tensors: the same values in each round."""


def mean(parts: Sequence[Part]) -> torch.Tensor:
    """The weighted mean, computed as by stock hivemind; not a number if no part has weight."""
    total = torch.zeros(parts[0].values.shape)
    for part in parts:
        total.add_(part.values, alpha=part.weight)
    return total.div_(sum(part.weight for part in parts))


@dataclass
class _Conduct:
    """What the rounds have shown of a peer: sums of its agreement above LEAST_AGREEMENT, each round a sample.

    Parts of one round are no samples of their own, since the same training samples are in all of them.
    """

    rounds: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    left_out: bool = False
    proven: bool = False
    excess: float = 0.0
    """The largest norm of its parts in this round, by their references."""
    excesses: deque[float] = field(default_factory=lambda: deque(maxlen=ROUNDS_COMPARED))
    """The same of earlier rounds."""

    def judge(self, agreement: float) -> None:
        self.rounds = MEMORY * self.rounds + 1.0
        self.total = MEMORY * self.total + agreement
        self.squares = MEMORY * self.squares + agreement**2
        if self.rounds >= LEAST_ROUNDS or self.left_out:
            self.left_out = self.deviations < (PROVEN if self.left_out else -DOUBT)
        self.proven = not self.left_out and (self.proven or self.deviations > PROVEN)

    @property
    def deviations(self) -> float:
        """Standard errors of the mean above 0."""
        count = self.rounds + FIRST_ROUNDS
        average = self.total / count
        spread = max(0.0, self.squares + FIRST_ROUNDS * FIRST_SPREAD**2 - count * average**2) / count
        return average / math.sqrt(spread / count) if spread else 0.0


class RobustMean:
    """The weighted mean of gradients, without peers that disagree, and with bounded norms. `own` is never left out."""

    def __init__(self, own: Hashable, most_weight: float = math.inf) -> None:
        self.most_weight = most_weight
        self.usual: UsualNorms | None = UsualNorms()
        self._own = own
        self._norms: dict[int, deque[float]] = defaultdict(lambda: deque(maxlen=ROUNDS_COMPARED))
        """Of our own parts in the latest rounds, by the part's number."""
        self._conducts: OrderedDict[Hashable, _Conduct] = OrderedDict()
        self._products: dict[tuple[Hashable, Hashable], float] = defaultdict(float)
        """Inner products of what two peers sent in this round, summed over the parts that we reduce."""
        self._excess = 1.0
        """The largest norm of a peer's parts in a few rounds, by their references, as it is usual among the peers."""

    def begin(self) -> None:
        peers = {peer for peer, _ in self._products}
        self._judge(peers)
        self._products.clear()
        for peer in peers:
            conduct = self._conduct(peer)
            conduct.excesses.append(conduct.excess)
            conduct.excess = 0.0
        while len(self._conducts) > max(KEPT, len(peers)):
            self._conducts.popitem(last=False)  # not of this round: those were used last
        largest = sorted(max(self._conduct(peer).excesses) for peer in peers)
        if largest:
            self._excess = max(1.0, largest[int(QUARTILE * (len(largest) - 1))])

    def see_own(self, norms: Sequence[float]) -> None:
        for number, norm in enumerate(norms):
            self._norms[number].append(norm)

    @torch.no_grad()
    def combine(self, number: int, parts: Sequence[Part]) -> Combined:
        counted = [part for part in parts if part.weight > 0]
        if len(counted) < 2:  # noqa: PLR2004 - alone
            return Combined(mean(parts))
        norms = [float(part.values.norm()) for part in counted]
        references = self._references(number, counted, norms)
        judged = len(counted) >= JUDGES
        bounded, scaled = [], set()
        for index, (part, reference) in enumerate(zip(counted, references, strict=True)):
            most = self._most(part.sender, reference, judged=judged)
            if norms[index] > most > 0:
                scaled.add(part.sender)
                bounded.append(Part(part.sender, part.values * (most / norms[index]), part.weight))
                norms[index] = most
            else:
                bounded.append(part)
        if judged:
            self._compare(bounded, norms, references)
        left_out = {part.sender for part in bounded if self._is_left_out(part.sender)}
        kept = [part for part in bounded if part.sender not in left_out]
        return Combined(mean(kept or bounded), frozenset(scaled), frozenset(left_out if kept else ()))

    def _most(self, sender: Hashable, reference: float, *, judged: bool) -> float:
        """The largest norm that a peer's part may have. Of two peers neither can prove anything: theirs is the wide one."""
        return reference * self._excess * (LOOSE if not judged or self._conduct(sender).proven else TIGHT)

    def _conduct(self, sender: Hashable) -> _Conduct:
        conduct = self._conducts.setdefault(sender, _Conduct())
        self._conducts.move_to_end(sender)
        return conduct

    def _is_left_out(self, sender: Hashable) -> bool:
        return sender != self._own and self._conduct(sender).left_out

    def _references(self, number: int, parts: Sequence[Part], norms: Sequence[float]) -> list[float]:
        """The norm that each part may be expected to have: less samples mean more noise, by their square root."""
        usual = median(self._norms[number]) if self._norms[number] else 0.0
        weight = median(part.weight for part in parts)
        found = []
        for index, part in enumerate(parts):
            others = sorted([*norms[:index], *norms[index + 1 :]])
            reference = max(others[int(QUARTILE * len(others))], usual)
            found.append(reference * max(1.0, math.sqrt(weight / part.weight)))
        return found

    def _compare(self, parts: Sequence[Part], norms: Sequence[float], references: Sequence[float]) -> None:
        """Note the norms, and the inner products with at most the expected norm: a large part counts no more than another."""
        equal = []
        for part, norm, reference in zip(parts, norms, references, strict=True):
            if reference > 0:
                conduct = self._conduct(part.sender)
                conduct.excess = max(conduct.excess, norm / reference)
            equal.append(part.values * (reference / norm) if norm > reference else part.values)
        stacked = torch.stack(equal)
        for first, products in zip(parts, (stacked @ stacked.t()).tolist(), strict=True):
            for second, product in zip(parts, products, strict=True):
                self._products[first.sender, second.sender] += product

    def _judge(self, peers: Collection[Hashable]) -> None:
        """Judge the peers of the round that is over, each by its median inner product with the others."""
        if len(peers) < JUDGES:
            return
        agreements = {
            peer: _upper_median(self._products[peer, other] for other in peers if other != peer) for peer in peers
        }
        scale = median(self._products[peer, peer] for peer in peers)
        usual = _upper_median(agreements.values())
        for peer, agreement in agreements.items():
            if self._products[peer, peer] > 0 and scale > 0:  # one that sends zeros says nothing
                self._conduct(peer).judge(min(1.0, max(-1.0, (agreement - LEAST_AGREEMENT * usual) / scale)))


def _upper_median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


class Median:
    """The median, value by value, of the parameters of peers that lack no steps; of two the mean."""

    most_weight = 1.0  # that of every peer that lacks no step
    usual: UsualNorms | None = None

    def begin(self) -> None:
        """Nothing is remembered: what a value should be is what the peers have."""

    def see_own(self, norms: Sequence[float]) -> None:
        """As above."""

    @torch.no_grad()
    def combine(self, number: int, parts: Sequence[Part]) -> Combined:  # noqa: ARG002 - as above
        largest = max(part.weight for part in parts)
        voting = [part for part in parts if part.weight > 0 and part.weight >= WHOLE * largest]
        if len(voting) < JUDGES:
            return Combined(mean(parts))
        ordered = torch.stack([part.values.float() for part in voting]).sort(dim=0).values
        middle = len(voting) // 2
        if len(voting) % 2:
            return Combined(ordered[middle])
        return Combined((ordered[middle - 1] + ordered[middle]) / 2)
