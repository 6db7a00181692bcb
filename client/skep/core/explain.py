"""Why the share is what it is, and what it would be if: the policy's own rules, asked under other conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import tzinfo
from typing import Any, Final

from skep.core import session
from skep.core.conditions import Condition, Conditions, Source, answered
from skep.core.contradictions import contradictions
from skep.core.errors import BadInput
from skep.core.loops import Heat, heated
from skep.core.model import GpuMemory
from skep.core.policy import Holding, combined, holding
from skep.core.rules import ALL, RULES, Facts, number_of, reading_of
from skep.core.sensible import NAMES
from skep.core.snapshot import Snapshot

_LONG_AGO: Final = 1e6
"""Seconds without input that are longer than any setting."""
_TOO_WARM: Final = 5.0
"""Degrees above the cap that are imagined."""

_IMAGINED: Final[Mapping[str, tuple[Condition, float | bool]]] = {
    "input": (Condition.INPUT, 0.0),
    "away": (Condition.INPUT, _LONG_AGO),
    "locked": (Condition.LOCKED, True),
    "unlocked": (Condition.LOCKED, False),
    "fullscreen": (Condition.FULL_SCREEN, True),
    "call": (Condition.INHIBITED, True),
    "film": (Condition.INHIBITED, True),
    "busy": (Condition.GPU_USE, 1.0),
    "processor": (Condition.PROCESSOR_USE, 1.0),
    "memory": (Condition.GPU_MEMORY, 0),
    "battery": (Condition.BATTERY, True),
    "mains": (Condition.BATTERY, False),
    "metered": (Condition.METERED, True),
    "unmetered": (Condition.METERED, False),
}
HOT: Final = "hot"
WORDS: Final = (*_IMAGINED, HOT)
"""What may be asked for: `--if input,battery`."""


@dataclass(frozen=True)
class Missing:
    """A rule that has no source here, and why."""

    rule: str
    note: str


def explained(snapshot: Snapshot, words: object, now: float, zone: tzinfo) -> dict[str, Any]:
    """Every rule that holds, or would if `words`, the winner first, and the sources that are missing; as JSON.

    Without words it is what really holds, waits and the ramp included; with words, what would once it has lasted.
    Raises BadInput for a word that is none.
    """
    asked = _asked(words)
    held = _would_hold(snapshot, asked, now, zone) if asked else snapshot.holding
    granted = combined(held) if asked else snapshot.allowance
    return {
        "if": list(asked),
        "allowance": asdict(granted),
        "holding": [_told(each) for each in held],
        "missing": [asdict(each) for each in missing(snapshot.conditions)],
        "remarks": list(remarks(snapshot)),
    }


def remarks(snapshot: Snapshot) -> tuple[str, ...]:
    """What the settings ask for and do not get, in sentences."""
    told, cap = contradictions(snapshot.settings), snapshot.power_cap
    return (*told, f"The power cap has no effect here. {cap.refused}") if cap is not None and cap.refused else told


def _asked(words: object) -> tuple[str, ...]:
    if not isinstance(words, Iterable) or isinstance(words, str):
        raise BadInput("What is asked for is not a list of words.")
    asked = tuple(str(word).strip().lower().replace("-", "").replace("_", "") for word in words)
    for word in asked:
        if word not in WORDS:
            raise BadInput(f"“{word[:40]}” is nothing to imagine.", f"Choose from {', '.join(WORDS)}.")
    return asked


def _told(each: Holding) -> dict[str, Any]:
    rule = ALL[each.rule]
    return asdict(each) | {"label": rule.label, "setting": rule.setting}


def _would_hold(snapshot: Snapshot, words: tuple[str, ...], now: float, zone: tzinfo) -> tuple[Holding, ...]:
    facts = session.facts_of(snapshot, now, zone)
    grades = snapshot.grades
    facts = replace(
        facts,
        idle_more=grades.steady - grades.input_at,
        heat=grades.heat.limit,
        gpu_memory=grades.room.level,
    )
    for word in words:
        facts = _imagine(facts, word)
    return holding(facts)


def _imagine(facts: Facts, word: str) -> Facts:
    """The facts as they would be; a processor that is busy, or a GPU, is that of the device that trains."""
    if word == HOT:
        cap = number_of(facts.settings, "heat.cap_celsius")
        seen = facts.conditions.with_seen({Condition.TEMPERATURE: answered(cap + _TOO_WARM)})
        share = combined(holding(facts)).share
        return replace(facts, conditions=seen, heat=heated(Heat(), cap + _TOO_WARM, cap, share, 0.0).limit)
    condition, value = _IMAGINED["processor" if word == "busy" and facts.on_processor else word]
    seen = facts.conditions.with_seen({condition: answered(value)})
    if condition is Condition.INPUT:
        facts = replace(facts, idle_more=0.0)
    if condition is Condition.GPU_MEMORY:
        facts = replace(facts, gpu_memory=GpuMemory.RELEASE)
    return replace(facts, conditions=seen)


def missing(conditions: Conditions) -> tuple[Missing, ...]:
    """The rules whose source does not exist on this computer."""
    return tuple(
        Missing(rule.name, reading_of(conditions, rule.condition).note or f"Nothing here says {NAMES[rule.condition]}.")
        for rule in RULES
        if rule.condition is not None and reading_of(conditions, rule.condition).source is Source.MISSING
    )
