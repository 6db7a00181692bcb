"""What the worker may use now, and the sentence that says why: of all rules that hold, the lowest ceiling wins.

Pure; time comes in as an argument. It must not know how a share is enforced (the worker) nor who shows the sentence.
`decide` and `holding` answer for one moment, as if whatever is seen had lasted; how a share goes down and up over time
is `ramp`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Final

from skep.core.policy.allowance import Allowance, GpuMemory, PauseState
from skep.core.policy.conditions import Conditions
from skep.core.policy.rules import RULES, Facts, Settings

_STRICTNESS: Final = (GpuMemory.KEEP, GpuMemory.SHRINK, GpuMemory.RELEASE)


@dataclass(frozen=True)
class Holding:
    """A rule that holds now, with what it proposes."""

    rule: str
    allowance: Allowance


def decide(
    conditions: Conditions,
    settings: Settings,
    now: float,
    *,
    zone: tzinfo = UTC,
    pause: PauseState | None = None,
    on_processor: bool = False,
) -> Allowance:
    """What is granted under these conditions, once they have lasted. `now` is wall clock seconds."""
    facts = Facts(conditions, settings, now, zone, pause, on_processor=on_processor)
    return combined(holding(facts))


def holding(facts: Facts) -> tuple[Holding, ...]:
    """Every rule that holds, the winner first."""
    proposals = ((rule.name, rule.propose(facts)) for rule in RULES)
    return ranked(Holding(name, proposal) for name, proposal in proposals if proposal is not None)


def ranked(held: Iterable[Holding]) -> tuple[Holding, ...]:
    """The lowest ceiling first; of equal ones that which comes first already, as in RULES."""
    return tuple(sorted((_named(each) for each in held), key=lambda each: each.allowance.share))


def _named(each: Holding) -> Holding:
    if each.allowance.rule == each.rule:
        return each
    return Holding(each.rule, replace(each.allowance, rule=each.rule))


def combined(held: tuple[Holding, ...]) -> Allowance:
    """The winner's share and sentence, with the strictest that any rule says of memory, network and presence."""
    said = [each.allowance for each in held]
    return replace(
        said[0],
        present=any(each.present for each in said),
        memory=strictest(each.memory for each in said),
        network=all(each.network for each in said),
    )


def strictest(levels: Iterable[GpuMemory]) -> GpuMemory:
    return max(levels, key=_STRICTNESS.index)
