"""The decision of the policy: the rule with the lowest ceiling determines the allowance and its sentence. Pure.

`holding` evaluates one moment, as if every condition had lasted. `grant` adds the behaviour over time: delays before a
rule counts and after it ends, immediate reductions, and ramped increases. Its frozen state is part of the snapshot and
updated in every step. Its time is steady: it grows by the time between two steps, by MOMENT at most, and never
decreases, so that neither clock adjustments nor suspends count as time during which a condition lasted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from skep.core.policy import device_shares
from skep.core.policy.allowance import Allowance, GpuMemory
from skep.core.policy.conditions import Condition
from skep.core.policy.device_shares import number_of
from skep.core.policy.regulators import Heat, Room, heated, roomed
from skep.core.policy.rules import RAMP, RULES, Facts, Rule
from skep.core.text import Text

_STRICTNESS: Final = (GpuMemory.KEEP, GpuMemory.SHRINK, GpuMemory.RELEASE)


@dataclass(frozen=True)
class Holding:
    """A rule that holds now, with the allowance that it proposes."""

    rule: str
    allowance: Allowance


def holding(facts: Facts) -> tuple[Holding, ...]:
    """Every rule that holds, the one with the lowest ceiling first."""
    proposals = ((rule.name, rule.propose(facts)) for rule in RULES)
    return ranked(Holding(name, proposal) for name, proposal in proposals if proposal is not None)


def ranked(held: Iterable[Holding]) -> tuple[Holding, ...]:
    """`held` sorted by ceiling, the lowest first; equal ceilings keep their order, which is that of RULES."""
    return tuple(sorted((_named(each) for each in held), key=lambda each: each.allowance.share))


def _named(each: Holding) -> Holding:
    if each.allowance.rule == each.rule:
        return each
    return Holding(each.rule, replace(each.allowance, rule=each.rule))


def combined(held: tuple[Holding, ...]) -> Allowance:
    """The first rule's share and sentence, with the strictest memory, network and presence of all rules."""
    said = [each.allowance for each in held]
    return replace(
        said[0],
        present=any(each.present for each in said),
        memory=strictest(each.memory for each in said),
        network=all(each.network for each in said),
    )


def strictest(levels: Iterable[GpuMemory]) -> GpuMemory:
    return max(levels, key=_STRICTNESS.index)


# --- over time

MOMENT: Final = 2.0
"""The longest time between two steps that counts, in seconds; more is a suspend or a clock put forward."""
CALM_BETWEEN_RISES: Final = 5.0
"""Seconds between the beginnings of two rises."""
SMALL: Final = 0.0501
"""A rise of at most this share, such as a step of the heat loop, is not ramped."""
RAMP_STEP: Final = 1.0
"""Seconds."""


@dataclass(frozen=True)
class Held:
    """A rule that counts: its last proposal, and the steady time when it last held."""

    proposal: Allowance
    at: float


@dataclass(frozen=True)
class Rise:
    """A ramp in progress: its first and last share, and the steady time of its start."""

    begin: float
    end: float
    since: float


@dataclass(frozen=True)
class PolicyState:
    """`wall` is the wall clock of the last step; all other times are steady seconds.

    `holds_since` has the time since when each rule has held continuously, whether it counts yet or not; `held` has the
    rules that count. `heats` and `rooms` are the loops of each device. `share` is granted now. `risen_at` is the start of the last rise, `paused_since` of this pause.
    """

    wall: float | None = None
    steady: float = 0.0
    holds_since: Mapping[str, float] = field(default_factory=dict)
    held: Mapping[str, Held] = field(default_factory=dict)
    input_at: float = 0.0
    heats: Mapping[str, Heat] = field(default_factory=dict)
    rooms: Mapping[str, Room] = field(default_factory=dict)
    share: float = 0.0
    rise: Rise | None = None
    risen_at: float = -math.inf
    paused_since: float | None = None


@dataclass(frozen=True)
class Grant:
    """The allowance granted now, and every rule that holds, the one with the lowest ceiling first."""

    state: PolicyState
    holding: tuple[Holding, ...]
    allowance: Allowance


def with_input_read(state: PolicyState) -> PolicyState:
    """The state after an input reading was taken now."""
    return replace(state, input_at=state.steady)


def grant(state: PolicyState, facts: Facts, *, at_once: bool = False) -> Grant:
    """The state updated to `facts.now`, and what it grants.

    `at_once` is for requests of the user: rules that ended stop counting immediately, and nothing is ramped.
    """
    moved = _moved(state, facts)
    lasting = regulated(facts, moved)
    holds_since, held, rules = _counting(moved, lasting, at_once=at_once)
    target, ramp = rules[0].allowance.share, number_of(facts.settings, "compute.ramp_seconds")
    share, rise, risen_at = _risen(moved, target, ramp, at_once=at_once)
    paused_since = (moved.steady if moved.paused_since is None else moved.paused_since) if share == 0.0 else None
    after = replace(
        moved,
        holds_since=holds_since,
        held=held,
        share=share,
        rise=rise,
        risen_at=risen_at,
        paused_since=paused_since,
    )
    with_ramp = _with_ramp(after, rules, facts.now, ramp)
    return Grant(after, with_ramp, _after_long_pause(after, combined(with_ramp), facts))


def regulated(facts: Facts, state: PolicyState) -> Facts:
    """`facts` with the limits of the two loops and the time since the input reading."""
    since_input = state.steady - state.input_at
    heat, hot = device_shares.heat_of_all(facts.settings, state.heats, in_step=facts.in_step)
    memory = strictest((GpuMemory.KEEP, *(room.level for room in state.rooms.values())))
    return replace(facts, idle_more=since_input, heat=heat, hot=hot, gpu_memory=memory)


def _moved(state: PolicyState, facts: Facts) -> PolicyState:
    """The state with its clock and the two loops updated."""
    now = facts.now
    if not math.isfinite(now):
        return state
    steady = state.steady + (0.0 if state.wall is None else min(MOMENT, max(0.0, now - state.wall)))
    return replace(
        state,
        wall=now,
        steady=steady,
        heats=_heats(state, facts, steady),
        rooms=_rooms(state, facts, steady),
    )


def _heats(state: PolicyState, facts: Facts, steady: float) -> Mapping[str, Heat]:
    after, reading = {}, facts.conditions[Condition.TEMPERATURE]
    for device in facts.devices:
        limits, before = device_shares.limits_of(facts.settings, device), state.heats.get(device, Heat())
        celsius, share = device_shares.value_of(reading, device), min(state.share, limits.share)
        after[device] = heated(before, celsius, limits.celsius, share, steady)
    return after


def _rooms(state: PolicyState, facts: Facts, steady: float) -> Mapping[str, Room]:
    after, reading = {}, facts.conditions[Condition.GPU_MEMORY]
    for device in facts.devices:
        free = None if facts.on_processor else device_shares.value_of(reading, device)
        reserve = device_shares.limits_of(facts.settings, device).leave_memory
        after[device] = roomed(state.rooms.get(device, Room()), None if free is None else int(free), reserve, steady)
    return after


# --- which rules count


def _counting(
    state: PolicyState, facts: Facts, *, at_once: bool
) -> tuple[dict[str, float], dict[str, Held], tuple[Holding, ...]]:
    """Since when each rule holds, the rules that count, and their proposals, the lowest ceiling first."""
    since: dict[str, float] = {}
    held: dict[str, Held] = {}
    rules: list[Holding] = []
    for rule in RULES:
        proposal, silent = rule.propose(facts), rule.is_silent(facts)
        if proposal is not None and not silent:
            since[rule.name] = state.holds_since.get(rule.name, state.steady)
        lasts = rule.name in since and (rule.name in state.held or state.steady - since[rule.name] >= rule.onset)
        if proposal is not None and lasts:
            held[rule.name] = Held(proposal, state.steady)
            rules.append(Holding(rule.name, proposal))
            continue
        before = None if at_once else _still(state, rule, facts)
        if before is not None:
            held[rule.name] = before
            rules.append(Holding(rule.name, replace(before.proposal, reason=rule.over, until=None)))
        elif proposal is not None and silent:
            rules.append(Holding(rule.name, proposal))
    return since, held, ranked(rules)


def _still(state: PolicyState, rule: Rule, facts: Facts) -> Held | None:
    """The rule with its last proposal while it still counts after its end, else None."""
    before = state.held.get(rule.name)
    if before is None or not rule.calm:
        return None
    return before if state.steady - before.at < number_of(facts.settings, rule.calm) else None


# --- how the share moves


def _risen(state: PolicyState, target: float, ramp: float, *, at_once: bool) -> tuple[float, Rise | None, float]:
    """The share, the rise in progress if any, and when the last rise began."""
    if at_once or target <= state.share:
        return target, None, state.risen_at
    rise, risen_at = state.rise, state.risen_at
    if _may_begin(state, target):
        rise, risen_at = Rise(state.share, target, state.steady), state.steady
    if rise is None:
        return state.share, None, risen_at
    return max(state.share, min(target, _on_the_way(rise, state.steady, ramp))), rise, risen_at


def _may_begin(state: PolicyState, target: float) -> bool:
    higher = state.rise is None or target > state.rise.end
    return higher and state.steady - state.risen_at >= CALM_BETWEEN_RISES


def _on_the_way(rise: Rise, steady: float, ramp: float) -> float:
    if rise.end - rise.begin <= SMALL or ramp <= 0:
        return rise.end
    steps = max(1, round(ramp / RAMP_STEP))
    done = math.floor((steady - rise.since) / ramp * steps + 1e-6) + 1
    return rise.end if done > steps else rise.begin + (rise.end - rise.begin) * done / (steps + 1)


def _with_ramp(state: PolicyState, rules: tuple[Holding, ...], now: float, ramp: float) -> tuple[Holding, ...]:
    target = rules[0].allowance.share
    if state.share >= target:
        return rules
    until = None if state.rise is None else now + max(0.0, state.rise.since + ramp - state.steady)
    going = Allowance(state.share, Text("ramp.going_up_gently", target=target), until, RAMP.name)
    return (Holding(RAMP.name, going), *rules)


def _after_long_pause(state: PolicyState, allowance: Allowance, facts: Facts) -> Allowance:
    """The allowance during a pause: a long pause also releases the GPU's memory, a longer one leaves the swarm."""
    if state.paused_since is None:
        return allowance
    paused = state.steady - state.paused_since
    memory, network = allowance.memory, allowance.network
    if paused >= number_of(facts.settings, "memory.free_gpu_seconds"):
        memory = strictest((memory, GpuMemory.RELEASE))
    if paused >= number_of(facts.settings, "memory.leave_swarm_minutes") * 60:
        network = False
    return replace(allowance, memory=memory, network=network)
