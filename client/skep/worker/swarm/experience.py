"""How far the progress records of other peers are believed. Times are seconds of hivemind's clock.

Anybody may publish a progress record with any epoch, samples and rate, and hivemind believes the highest epoch and the
sum of the rest: one false record makes every peer load a state again and again, or ends every epoch at once. What a
peer has seen for itself limits that here: the rounds in which it took part, and the state that it has loaded. A peer that
averages with us counts for what it claims, as far as it delivers that in rounds; another one only if somebody answers
under its id. However many peers claim something together, they may all be one.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from skep.worker.swarm.claims import (
    Believed,
    Claim,
    Key,
    There,
    all_there,
    limited,
    reached_by_half,
    reached_by_most,
    usual,
)
from skep.worker.swarm.deliveries import ABSENT_ROUNDS, Deliveries
from skep.worker.swarm.met_peers import MetPeers
from skep.worker.swarm.possible_epochs import PossibleEpochs

NEARLY: Final = 0.8
"""With this part of the epoch's samples it may have ended for others: peers count and end it at slightly different times."""
NOTHING: Final[Mapping[str, float]] = MappingProxyType({})


class Experience:
    """What this peer knows about the swarm without its records. To be used by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._epochs = PossibleEpochs()
        self._met = MetPeers()
        self._deliveries = Deliveries(self._met)

    def averaged(self, epoch: int, heard: Collection[str], now: float, samples: Mapping[str, float] = NOTHING) -> None:
        """A round that ended `epoch` has averaged our data with that of the peers `heard`.

        `samples` has those that each of them has delivered, as far as this is known.
        """
        with self._lock:
            self._deliveries.judge(epoch, samples)  # by whom we had met before this round
            self._epochs.round_ended(epoch, now)
            self._deliveries.round_ended(epoch, heard)
            self._met.averaged(heard)

    def loaded(self, epoch: int, since: float) -> None:
        """A state of `epoch` has arrived, asked for at the time `since`."""
        with self._lock:
            self._epochs.loaded(epoch, since)

    def had_reached(self, epoch: int, since: float) -> None:
        """A state of `epoch`, our own or the publisher's, shows that the swarm had reached it at the time `since`."""
        with self._lock:
            self._epochs.reached(epoch, since)

    def possible(self, now: float) -> float:
        """The highest epoch that the swarm may have reached by what we know; infinite while we know nothing."""
        with self._lock:
            return self._epochs.highest(now)

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
        last round counts as they do. Where we have met nobody, of the peers that are there and not behind us one epoch more
        is believed than most of those that compute have reached; every epoch while we know none ourselves: the state that
        a newcomer loads shows which. `own` is our record; an epoch has `target` samples, 0 where that is not known.
        """
        with self._lock:
            self._met.see(claims)
            known = {
                key: claim.counting(self._deliveries.part_of(claim.peer))
                for key, claim in claims.items()
                if self._met.is_of_met(key, claim.peer)
            }
            kept = self._without_impossible(claims, known, own, now, target)
            self._deliveries.note(claims, kept, own.epoch)
            strangers = {key: claim for key, claim in kept.items() if key not in known}
            known = {key: claim for key, claim in known.items() if key in kept}
            parts = there({claim.peer for claim in strangers.values()})
            reached = usual([*known.values(), *(claim for claim in strangers.values() if parts[claim.peer])])
            if not known:
                strangers = self._with_the_most(strangers, parts, own)
            strangers = self._as_far_as_there(strangers, parts, own, known.values())
            if not known:
                return Believed(strangers, usual=reached)
            at_least = min(claim.epoch for claim in known.values())
            return Believed(self._beside_met(known, strangers, own), at_least, reached)

    def _without_impossible(
        self, claims: Mapping[Key, Claim], known: Mapping[Key, Claim], own: Claim, now: float, target: float
    ) -> dict[Key, Claim]:
        """The claims whose epoch the swarm may have reached. `known` are those of peers that we have met."""
        told = reached_by_half([claim.epoch for claim in known.values()])
        highest = max(self._epochs.highest(now, next_too=self._is_near(known, own, target)), told)
        return {key: claim for key, claim in claims.items() if claim.epoch <= highest}

    def _is_near(self, known: Mapping[Key, Claim], own: Claim, target: float) -> bool:
        """Whether most samples of the swarm's epoch are there, by what we know; without a target or other peers, yes."""
        if not known or not target:
            return True
        epoch = own.epoch if self._epochs.known is None else max(own.epoch, self._epochs.known)
        # those that have gone on had the others before
        theirs = (
            claim.by_now if claim.epoch == epoch else self._deliveries.most_claimed(key, epoch)
            for key, claim in known.items()
        )
        return (own.by_now if own.epoch == epoch else 0.0) + sum(theirs) >= NEARLY * target

    def _with_the_most(
        self, strangers: Mapping[Key, Claim], parts: Mapping[str, float], own: Claim
    ) -> dict[Key, Claim]:
        """Without those that are further than most of them; who has several records has a part of a vote for each."""
        if self._epochs.known is None:
            return dict(strangers)
        there = [claim for claim in strangers.values() if parts[claim.peer] == 1.0 and claim.epoch >= own.epoch]
        voting = [claim for claim in there if claim.rate] or there  # one at rest stays where it was
        votes = [(claim.epoch, 1.0 / len(self._met.records_of(claim.peer))) for claim in voting]
        highest = reached_by_most(votes) + 1
        return {key: claim for key, claim in strangers.items() if claim.epoch <= max(highest, own.epoch)}

    def _as_far_as_there(
        self, strangers: Mapping[Key, Claim], parts: Mapping[str, float], own: Claim, known: Collection[Claim]
    ) -> dict[Key, Claim]:
        """Each with the part of it that counts; of several records under one id, each counts for a part of that.

        Of one of which it is not known that it is there only an epoch is believed that says nothing new, and where we have
        met some, no larger amounts than theirs or ours: a part of an amount without limits has none either.
        """
        samples = max(claim.samples for claim in (own, *known))
        rate = max(claim.rate for claim in (own, *known))
        counted = {}
        for key, claim in strangers.items():
            part = parts[claim.peer]
            if part == 1.0 or claim.epoch <= own.epoch:
                bounded = claim if part == 1.0 or not known else claim.at_most(samples, rate)
                counted[key] = bounded.counting(part / len(self._met.records_of(claim.peer)))
        return counted

    def _beside_met(self, known: Mapping[Key, Claim], strangers: Mapping[Key, Claim], own: Claim) -> dict[Key, Claim]:
        """Those of peers that we have met, and of which no claimed data is missing, in full; the others limited by these."""
        absent = {key for key in strangers if self._deliveries.missing(key) >= ABSENT_ROUNDS}
        others = {
            key: claim.counting(0.0) if key in absent else claim
            for key, claim in strangers.items()
            if key not in absent or claim.epoch <= own.epoch
        }
        in_full = {key: claim for key, claim in known.items() if not self._deliveries.missing(key)}
        others |= {key: claim for key, claim in known.items() if key not in in_full}
        return in_full | limited(others, [own, *in_full.values()])
