"""What the worker may use now, and the sentence that says why: named rules as data, the lowest ceiling wins.

Pure; time comes in as an argument. It must not know how a share is enforced (the worker) nor who shows the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from skep.core.model import Allowance, PauseState

Settings = Mapping[str, bool | int | float | str]

FULL: Final = 1.0


@dataclass(frozen=True)
class Facts:
    """What the rules look at. `now` is wall clock seconds."""

    pause: PauseState | None
    settings: Settings
    now: float


@dataclass(frozen=True)
class Rule:
    """`propose` gives a ceiling with its sentence while the rule holds, else None."""

    name: str
    propose: Callable[[Facts], Allowance | None]


@dataclass(frozen=True)
class Holding:
    """A rule that holds now, with what it proposes."""

    rule: str
    allowance: Allowance


def decide(pause: PauseState | None, settings: Settings, now: float) -> Allowance:
    """What is granted now: the proposal of the rule that wins."""
    return holding(Facts(pause, settings, now))[0].allowance


def holding(facts: Facts) -> tuple[Holding, ...]:
    """Every rule that holds, the winner first; of equal ceilings the one listed first in RULES wins."""
    proposals = ((rule.name, rule.propose(facts)) for rule in RULES)
    held = (Holding(name, allowance) for name, allowance in proposals if allowance is not None)
    return tuple(sorted(held, key=lambda each: each.allowance.share))


def is_over(pause: PauseState, now: float) -> bool:
    """Whether a pause with an end has reached it."""
    return pause.until is not None and not now < pause.until


def _paused(facts: Facts) -> Allowance | None:
    if facts.pause is None or is_over(facts.pause, facts.now):
        return None
    if facts.pause.until is None:
        return Allowance(0.0, "Paused until you resume.")
    return Allowance(0.0, "Paused for a while.", until=facts.pause.until)


def _away(facts: Facts) -> Allowance:
    share = _share(facts.settings, "compute.share_away")
    return Allowance(share, "Training at full share." if share == FULL else f"Training at {share:.0%} share.")


def _share(settings: Settings, key: str) -> float:
    """A setting as a share 0..1. Full where it is not set, as its declared default is."""
    value = settings.get(key, FULL)
    return min(FULL, max(0.0, float(value))) if isinstance(value, int | float) else FULL


RULES: Final = (
    Rule("paused", _paused),
    Rule("away", _away),
)
"""In the order of their rank where ceilings are equal. "away" always holds, so that there is always a winner."""
