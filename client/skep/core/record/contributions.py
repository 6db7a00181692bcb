"""What this computer put into each epoch and what became of it: each contribution counted once, in its last state. Pure."""

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
    """Samples this computer put into one epoch.

    Pending until the round is over; confirmed when another peer's data was really averaged with ours and the
    optimizer used the result; else lost, with the reason in words. `peers` are the others in that round.
    `swarm` is how many samples the whole swarm puts into the epoch, where it is confirmed and that is known, else 0.
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
    """How many contributions and samples are in one state."""

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


REMEMBERED: Final = 256
"""Ids of settled contributions to keep, so that a late word about one changes nothing. Weeks of them would be a leak."""


@dataclass(frozen=True)
class Account:
    """The contributions still pending, and the ids of those settled last."""

    pending: tuple[Contribution, ...] = ()
    settled: tuple[str, ...] = ()


def note(account: Account, totals: Totals, news: Contribution) -> tuple[Account, Totals] | None:
    """Account and totals with `news`; None when it says nothing new or comes after the contribution was settled."""
    if news.id in account.settled or news in account.pending:
        return None
    others = tuple(each for each in account.pending if each.id != news.id)
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
