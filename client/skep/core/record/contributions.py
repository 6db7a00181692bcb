"""Contributions of this computer and their states; each contribution is counted once, in its latest state. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from skep.core.text import NOTHING, Text


class ContributionState(StrEnum):
    PENDING = "pending"
    CONFIRMED = "confirmed"
    LOST = "lost"


@dataclass(frozen=True)
class Contribution:
    """The samples that this computer contributed to one epoch.

    Pending until the round is over; confirmed when another peer's data was averaged with that of this computer and the
    optimizer used the result; else lost, with a reason. `peers` is the number of other peers in the round.
    `swarm` is the number of samples of the whole swarm in the epoch if confirmed and known, else 0.
    """

    id: str
    epoch: int
    samples: int
    state: ContributionState
    reason: Text = NOTHING
    peers: int = 0
    swarm: int = 0


@dataclass(frozen=True)
class Tally:
    """The number of contributions and samples in one state."""

    contributions: int = 0
    samples: int = 0


@dataclass(frozen=True)
class Totals:
    pending: Tally = field(default_factory=Tally)
    confirmed: Tally = field(default_factory=Tally)
    lost: Tally = field(default_factory=Tally)


@dataclass(frozen=True)
class Evaluation:
    """Loss on the held-out shard, in nats per token, at an epoch."""

    epoch: int
    loss: float


MOST_PENDING: Final = 256
"""Contributions whose round is not over; there are one or two. Bounds the memory, also of a worker that is not itself."""
REMEMBERED: Final = 256
"""Ids of settled contributions to keep, so that late messages about them change nothing. Bounds the memory."""


@dataclass(frozen=True)
class Account:
    """The pending contributions, and the ids of the latest settled ones."""

    pending: tuple[Contribution, ...] = ()
    settled: tuple[str, ...] = ()


def note(account: Account, totals: Totals, news: Contribution) -> tuple[Account, Totals] | None:
    """Account and totals with `news`; None when it changes nothing, is settled already, or too many are pending."""
    if news.id in account.settled or news in account.pending:
        return None
    others = tuple(each for each in account.pending if each.id != news.id)
    if news.state is ContributionState.PENDING and len(others) >= MOST_PENDING:
        return None
    settled = Account(others, (*account.settled, news.id)[-REMEMBERED:])
    match news.state:
        case ContributionState.PENDING:
            growing = Account((*others, news), account.settled)
            return growing, _with_pending(totals, growing)
        case ContributionState.CONFIRMED:
            return settled, replace(_with_pending(totals, settled), confirmed=_plus(totals.confirmed, news.samples))
        case ContributionState.LOST:
            return settled, replace(_with_pending(totals, settled), lost=_plus(totals.lost, news.samples))


def _with_pending(totals: Totals, account: Account) -> Totals:
    samples = sum(each.samples for each in account.pending)
    return replace(totals, pending=Tally(len(account.pending), samples))


def _plus(tally: Tally, samples: int) -> Tally:
    return Tally(tally.contributions + 1, tally.samples + samples)
