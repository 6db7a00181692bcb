"""Explanation of the share: the rules that hold now, or would hold under assumed conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import tzinfo
from typing import Any, Final

from skep.core.device import refusals
from skep.core.errors import BadInput
from skep.core.policy.allowance import GpuMemory
from skep.core.policy.conditions import Condition, Conditions, Source, answered
from skep.core.policy.decision import Holding, combined, holding, regulated
from skep.core.policy.device_shares import number_of
from skep.core.policy.regulators import Heat, heated
from skep.core.policy.rules import ALL, RULES, Facts, contradictions
from skep.core.session import step
from skep.core.session.snapshot import Snapshot
from skep.core.text import Text, as_data

_TOO_WARM: Final = 5.0
"""The assumed temperature, in degrees above the cap."""

_IMAGINED: Final[Mapping[str, tuple[Condition, float | bool]]] = {
    word: (condition, value) for condition in Condition for word, value in condition.spec.imagined.items()
}
HOT: Final = "hot"
WORDS: Final = (*_IMAGINED, HOT)
"""The conditions that can be assumed, as in `--if input,battery`."""


def explained(snapshot: Snapshot, words: object, now: float, zone: tzinfo) -> dict[str, Any]:
    """The rules that hold, or would hold under `words`, the lowest ceiling first, and the missing sources; as JSON.

    Without words, the current rules with delays and the ramp; with words, the rules once the conditions have lasted.
    Raises BadInput for an unknown word.
    """
    asked = _asked(words)
    held = _would_hold(snapshot, asked, now, zone) if asked else snapshot.holding
    granted = combined(held) if asked else snapshot.allowance
    return {
        "if": list(asked),
        "allowance": asdict(granted),
        "holding": [told(each) for each in held],
        "missing": [{"rule": rule, "note": as_data(note)} for rule, note in missing(snapshot.conditions).items()],
        "remarks": [as_data(each) for each in remarks(snapshot)],
    }


def remarks(snapshot: Snapshot) -> tuple[Text, ...]:
    """Sentences about settings that have no effect."""
    refused = refusals(snapshot.power_caps.values())
    return (
        *contradictions(snapshot.settings),
        *(Text("explain.power_cap_has_no_effect", refused=each) for each in refused),
    )


def _asked(words: object) -> tuple[str, ...]:
    if not isinstance(words, Iterable) or isinstance(words, str):
        raise BadInput(Text("explain.what_asked_not_list_words"))
    asked = tuple(str(word).strip().lower().replace("-", "").replace("_", "") for word in words)
    for word in asked:
        if word not in WORDS:
            raise BadInput(
                Text("explain.nothing_imagine", word=word[:40]), Text("explain.choose_from", names=tuple(WORDS))
            )
    return asked


def told(each: Holding) -> dict[str, Any]:
    """A rule that holds as JSON, with its name in lists and its setting."""
    rule = ALL[each.rule]
    return asdict(each) | {"label": as_data(rule.label), "setting": rule.setting}


def _would_hold(snapshot: Snapshot, words: tuple[str, ...], now: float, zone: tzinfo) -> tuple[Holding, ...]:
    facts = regulated(step.facts_of(snapshot, now, zone), snapshot.policy_state)
    for word in words:
        facts = _imagine(facts, word)
    return holding(facts)


def _imagine(facts: Facts, word: str) -> Facts:
    """The facts under an assumed condition; "busy" applies to the device that trains, processor or GPU."""
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


def missing(conditions: Conditions) -> dict[str, Text]:
    """The rules whose source does not exist on this computer, and why."""
    needed = {rule.name: rule.condition for rule in RULES if rule.condition is not None}
    return {
        rule: conditions[condition].note or Text("explain.nothing_here_says", what=condition.spec.names.phrase)
        for rule, condition in needed.items()
        if conditions[condition].source is Source.MISSING
    }
