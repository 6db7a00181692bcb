"""Keeps count of a stay's contributions: each once, in its last state. Pure.

A contribution grows while it is pending; once confirmed or lost it never changes again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from skep.core.model import Contribution, ContributionState, Tally, Totals

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
    if news.state is ContributionState.PENDING:
        after = Account((*others, news), account.settled)
        return after, _with_pending(totals, after)
    after = Account(others, (*account.settled, news.id)[-REMEMBERED:])
    return after, _with_settled(_with_pending(totals, after), news)


def _with_pending(totals: Totals, account: Account) -> Totals:
    samples = sum(each.samples for each in account.pending)
    return replace(totals, pending=Tally(len(account.pending), samples))


def _with_settled(totals: Totals, news: Contribution) -> Totals:
    if news.state is ContributionState.CONFIRMED:
        return replace(totals, confirmed=_plus(totals.confirmed, news.samples))
    return replace(totals, lost=_plus(totals.lost, news.samples))


def _plus(tally: Tally, samples: int) -> Tally:
    return Tally(tally.contributions + 1, tally.samples + samples)
