"""The share falls immediately and rises slowly: waiting times, the ramp, and changes of clocks and sleep."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from english import in_english
from skep.core.device import PowerCap
from skep.core.policy import decision as g
from skep.core.policy.allowance import GpuMemory, PauseState
from skep.core.policy.conditions import Condition, Conditions, answered, missing, sensible, silent
from skep.core.policy.rules import RULES, Facts
from skep.core.text import NOTHING, verbatim

NOW = 1_000_000.0
GONE = {Condition.INPUT: answered(9999.0)}


class Computer:
    """A computer whose conditions the test sets; time advances in quarter seconds."""

    def __init__(self, **settings: Any) -> None:
        self.facts = Facts(Conditions(graphical=True).with_seen(GONE), dict(settings), NOW)
        self.granted = g.grant(g.PolicyState(), self.facts, at_once=True)

    def see(self, at_once: bool = False, **readings: Any) -> Computer:
        seen = {
            Condition(name): value if hasattr(value, "source") else answered(value) for name, value in readings.items()
        }
        self.facts = replace(self.facts, conditions=self.facts.conditions.with_seen(sensible(seen)))
        state = self.granted.state
        if Condition.INPUT in seen:
            state = g.with_input_read(state)
        self.granted = g.grant(state, self.facts, at_once=at_once)
        return self

    def after(self, seconds: float, step: float = 0.25) -> Computer:
        for _ in range(round(seconds / step)):
            self.jump(step)
        return self

    def jump(self, seconds: float) -> Computer:
        self.facts = replace(self.facts, now=self.facts.now + seconds)
        self.granted = g.grant(self.granted.state, self.facts)
        return self

    @property
    def share(self) -> float:
        return self.granted.allowance.share

    @property
    def rule(self) -> str:
        return self.granted.allowance.rule


@pytest.fixture
def computer() -> Computer:
    return Computer()


def test_nobody_there_and_nothing_else_is_the_full_share(computer: Computer):
    assert (computer.share, computer.rule) == (1.0, "away")


def test_down_is_at_once(computer: Computer):
    assert computer.see(input=0.0).share == 0.2
    assert computer.see(full_screen=True).share == 0.0


def test_idle_goes_on_without_a_new_reading(computer: Computer):
    computer.see(input=0.0).after(179.75)
    assert (computer.share, computer.rule) == (0.2, "input")
    computer.after(0.25)
    assert 0.2 < computer.share < 1.0
    assert computer.after(10).share == 1.0


def test_up_is_a_ramp_that_says_where_it_goes(computer: Computer):
    computer.see(battery=True).after(10).see(battery=False).after(4.75)
    assert (computer.share, in_english(computer.granted.allowance.reason)) == (0.0, "On battery a moment ago.")
    shares = [computer.after(1).share for _ in range(12)]
    assert shares[0] == pytest.approx(1 / 11)
    assert shares == sorted(shares)
    assert shares[9] < 1.0
    assert shares[10:] == [1.0, 1.0]
    going = computer.see(battery=True).see(battery=False).after(6).granted
    assert going.allowance.rule == "ramp"
    assert in_english(going.allowance.reason) == "The share rises to 100 %."
    assert going.allowance.until is not None
    assert [each.rule for each in going.holding] == ["ramp", "away"]


@pytest.mark.parametrize(
    ("condition", "on", "off", "calm"),
    [
        ("full_screen", True, False, 15),
        ("inhibited", True, False, 15),
        ("gpu_use", 0.9, 0.0, 15),
        ("metered", True, False, 5),
    ],
)
def test_what_is_over_must_be_over_for_its_calm_time(
    computer: Computer, condition: str, on: Any, off: Any, calm: float
):
    computer.see(**{condition: on}).after(5)
    assert computer.share == 0.0
    computer.see(**{condition: off}).after(calm - 0.25)
    assert (computer.share, computer.granted.allowance.network) == (0.0, condition != "metered")
    assert "a moment ago" in in_english(computer.granted.allowance.reason)
    computer.after(0.25)
    assert computer.share > 0.0


def test_a_condition_that_comes_back_begins_its_calm_time_anew(computer: Computer):
    computer.see(full_screen=True).see(full_screen=False).after(14)
    computer.see(full_screen=True).see(full_screen=False)
    assert computer.after(14.75).share == 0.0
    assert computer.after(0.25).share > 0.0


def test_calm_times_are_settings():
    computer = Computer(**{"when.calm_seconds": 2.0}).see(full_screen=True).see(full_screen=False)
    assert computer.after(2).share > 0.0


@pytest.mark.parametrize(("condition", "seconds", "on_processor"), [("gpu_use", 2, False), ("processor_use", 5, True)])
def test_being_busy_must_last(computer: Computer, condition: str, seconds: float, on_processor: bool):
    computer.facts = replace(computer.facts, on_processor=on_processor)
    computer.see(**{condition: 0.9}).after(seconds - 0.25)
    assert computer.share == 1.0
    assert computer.after(0.25).share < 1.0


def test_being_busy_now_and_then_is_not_being_busy(computer: Computer):
    for _ in range(10):
        computer.see(gpu_use=0.9).after(1.5).see(gpu_use=0.0).after(0.25)
    assert computer.share == 1.0


def test_a_rise_stops_where_another_rule_says_so(computer: Computer):
    computer.see(battery=True).see(battery=False).after(8)
    assert 0.2 < computer.share < 1.0
    assert computer.see(input=0.0).share == 0.2
    assert computer.after(20).share == 0.2


def test_rises_begin_five_seconds_apart(computer: Computer):
    computer.see(full_screen=True, input=0.0).after(1).see(full_screen=False).after(15)
    assert 0.0 < computer.share < 0.2
    computer.see(input=9999.0).after(4)
    assert computer.share < 0.2
    assert computer.after(3).share > 0.2


def test_a_share_that_fell_right_after_a_rise_waits_where_it_is(computer: Computer):
    computer.see(battery=True).see(battery=False).after(5.25)
    computer.see(full_screen=True).see(full_screen=False)
    computer.facts = replace(computer.facts, settings={"when.calm_seconds": 0.0})
    before = computer.share
    assert computer.jump(0.25).share == before
    assert computer.after(6).share > before


def test_without_a_ramp_the_share_rises_at_once_after_the_calm():
    computer = Computer(**{"compute.ramp_seconds": 0.0}).see(battery=True).see(battery=False)
    assert computer.after(5).share == 1.0


def test_a_slight_rise_needs_no_ramp():
    computer = Computer(**{"compute.share_away": 0.5}).after(10)
    computer.facts = replace(computer.facts, settings={"compute.share_away": 0.55})
    assert computer.jump(0.25).share == 0.55


def test_slight_rises_do_not_follow_each_other_at_once():
    computer = Computer(**{"compute.share_away": 0.5}).after(10)
    for share in (0.55, 0.6):
        computer.facts = replace(computer.facts, settings={"compute.share_away": share})
        computer.jump(0.25)
    assert computer.share == 0.55
    assert computer.after(5).share == 0.6


def test_what_a_person_asks_for_is_neither_waited_for_nor_ramped(computer: Computer):
    computer.see(battery=True).see(battery=False).after(1)
    assert computer.share == 0.0
    assert computer.see(at_once=True).share == 1.0


def test_what_a_person_asks_for_never_passes_a_rule_that_holds(computer: Computer):
    computer.see(battery=True)
    assert computer.see(at_once=True).share == 0.0


# --- silence


def test_a_source_that_falls_silent_caps_until_it_answers(computer: Computer):
    computer.see(battery=silent(verbatim("The battery does not answer.")))
    assert (computer.share, computer.rule) == (0.2, "battery")
    computer.see(battery=False)
    assert computer.after(11).share == 1.0


def test_silence_does_not_cut_a_calm_time_short(computer: Computer):
    computer.see(full_screen=True).see(full_screen=silent(verbatim("The display is gone."))).after(14.75)
    assert computer.share == 0.0
    computer.after(20)
    assert (computer.share, computer.rule) == (0.2, "full_screen")


@pytest.mark.parametrize("nonsense", [-0.1, math.nan, math.inf, 1e12, "soon", None, True])
def test_an_idle_time_that_cannot_be_counts_as_somebody_there(computer: Computer, nonsense: Any):
    computer.see(input=answered(nonsense))
    assert (computer.share, computer.granted.allowance.present) == (0.2, True)


def test_a_computer_without_a_screen_has_nobody_there():
    computer = Computer()
    computer.facts = replace(computer.facts, conditions=Conditions(graphical=False))
    assert computer.jump(0.25).share == 1.0


# --- clocks and sleep


def test_a_clock_put_forward_makes_nobody_go_away(computer: Computer):
    assert computer.see(input=0.0).jump(86_400).share == 0.2
    assert computer.after(100).share == 0.2


def test_a_clock_put_back_neither_keeps_nor_hurries_anything(computer: Computer):
    computer.see(battery=True).see(battery=False).after(3).jump(-86_400)
    assert computer.share == 0.0
    assert computer.after(1.75).share == 0.0
    assert computer.after(0.5).share > 0.0


def test_sleep_is_not_calm(computer: Computer):
    assert computer.see(full_screen=True).see(full_screen=False).jump(3600).share == 0.0


def test_a_clock_that_is_no_number_moves_nothing(computer: Computer):
    computer.facts = replace(computer.facts, now=math.nan, settings={"when.schedule": "full"})
    before = computer.granted.state
    assert g._moved(before, computer.facts) is before


# --- long pauses


def test_a_long_pause_frees_the_gpu_and_a_longer_one_leaves_the_swarm(computer: Computer):
    computer.facts = replace(computer.facts, pause=PauseState(None))
    kept, released = GpuMemory.KEEP, GpuMemory.RELEASE
    computer.jump(0.25)
    assert (computer.after(59.75).granted.allowance.memory, computer.after(0.25).granted.allowance.memory) == (
        kept,
        released,
    )
    assert computer.after(539.75).granted.allowance.network
    assert not computer.after(0.25).granted.allowance.network
    computer.facts = replace(computer.facts, pause=None)
    computer.after(1)
    assert computer.granted.allowance.network
    assert computer.granted.allowance.memory is kept


def test_how_long_a_pause_may_last_until_then_is_the_persons_choice():
    computer = Computer(**{"memory.free_gpu_seconds": 5, "memory.leave_swarm_minutes": 1.0})
    computer.facts = replace(computer.facts, pause=PauseState(None))
    computer.jump(0.25).after(4.75)
    assert computer.granted.allowance.memory is GpuMemory.KEEP
    assert computer.after(0.25).granted.allowance.memory is GpuMemory.RELEASE
    assert computer.after(54.75).granted.allowance.network
    assert not computer.after(0.25).granted.allowance.network
    # a longer time that is set during a pause returns memory and network
    computer.facts = replace(computer.facts, settings={"memory.free_gpu_seconds": 3600})
    allowed = computer.after(0.25).granted.allowance
    assert (allowed.memory, allowed.network) == (GpuMemory.KEEP, True)


def test_short_gpu_memory_is_given_back_and_said(computer: Computer):
    computer.see(gpu_memory=10)
    assert (computer.rule, computer.granted.allowance.memory) == ("gpu_memory", GpuMemory.SHRINK)
    computer.after(3)
    assert (computer.share, computer.granted.allowance.memory) == (0.0, GpuMemory.RELEASE)


def test_heat_takes_the_share_down_and_gives_it_back_by_small_steps(computer: Computer):
    computer.see(temperature=81.0)
    assert (computer.rule, computer.share) == ("heat", pytest.approx(0.85))
    computer.see(temperature=70.0).after(5)
    assert (computer.rule, computer.share) == ("heat", pytest.approx(0.9))
    assert computer.after(20).share == 1.0


# --- properties

CONDITIONS = st.one_of(
    st.tuples(st.just("input"), st.sampled_from([answered(0.0), answered(100.0), answered(5000.0), answered(-1.0), silent(NOTHING), missing(NOTHING)])),
    st.tuples(st.sampled_from(["locked", "full_screen", "inhibited", "battery", "metered"]), st.sampled_from([answered(True), answered(False), silent(NOTHING), missing(NOTHING)])),
    st.tuples(st.sampled_from(["gpu_use", "processor_use"]), st.sampled_from([answered(0.0), answered(0.9), answered(math.nan), silent(NOTHING)])),
    st.tuples(st.just("temperature"), st.sampled_from([answered(50.0), answered(80.0), answered(95.0), answered(1e9), answered(85.0, each={"cuda:0": 60.0, "cuda:1": 85.0})])),
    st.tuples(st.just("gpu_memory"), st.sampled_from([answered(0), answered(5 * 10**9), answered(-1)])),
)  # fmt: skip
FACTS = st.one_of(
    st.tuples(st.sampled_from(["heavy", "on_processor"]), st.booleans()),
    st.tuples(st.just("pause"), st.sampled_from([None, PauseState(), PauseState(NOW + 600.0)])),
    st.tuples(st.just("power_caps"), st.sampled_from([{}, {"cuda:0": PowerCap(150.0)}])),
    st.tuples(st.just("devices"), st.sampled_from([("",), ("cuda:0",), ("cuda:0", "cuda:1")])),
    st.tuples(st.just("in_step"), st.booleans()),
)
SETTINGS = st.one_of(
    st.tuples(st.just("when.schedule"), st.sampled_from(["full", "off daily", "gentle daily", "off daily 9-17"])),
    st.tuples(st.just("when.gentle_away"), st.sampled_from([0.1, 1.0])),
    st.tuples(st.just("when.gentle_using"), st.sampled_from([0.05, 0.5])),
    st.tuples(st.just("compute.device_limits"), st.sampled_from(["", "cuda:0 50%; cuda:1 60C", "cuda:1 30%"])),
    st.tuples(st.just("heat.cap_celsius"), st.sampled_from([60.0, 80.0])),
    st.tuples(st.just("compute.share_away"), st.sampled_from([0.05, 0.5, 1.0])),
    st.tuples(st.just("compute.share_using"), st.sampled_from([0.0, 0.2, 1.0])),
    st.tuples(st.just("compute.ramp_seconds"), st.sampled_from([0.0, 10.0])),
    st.tuples(st.just("when.battery_pause"), st.booleans()),
    st.tuples(st.just("when.calm_seconds"), st.sampled_from([1.0, 15.0])),
)
TIMES = st.sampled_from([0.0, 0.25, 1.0, 6.0, -3600.0, 3600.0])
EVENTS = st.lists(st.one_of(CONDITIONS, SETTINGS, FACTS, TIMES), max_size=40)


@settings(max_examples=60, deadline=None)
@given(EVENTS)
def test_no_share_is_above_an_active_limit_and_rises_are_rare(events: list[Any]):
    computer = Computer()
    rises, last, passed = 0, computer.share, 0.0
    rising = False
    for event in events:
        if isinstance(event, float):
            computer.jump(event)
            passed += min(2.0, max(0.0, event))
        elif event[0] in {condition.value for condition in Condition}:
            computer.see(**{event[0]: event[1]})
        elif hasattr(computer.facts, event[0]):
            computer.facts = replace(computer.facts, **{event[0]: event[1]})
            computer.jump(0.0)
        else:
            computer.facts = replace(computer.facts, settings=computer.facts.settings | {event[0]: event[1]})
            computer.jump(0.0)
        now_rising = computer.share > last
        if now_rising and not rising:
            rises += 1
        rising = now_rising or (rising and computer.share == last)
        last = computer.share
        _is_within_every_limit(computer)
        assert computer.share <= _plain_limit(computer.facts) + 1e-9
    assert rises <= 1 + passed / g.CALM_BETWEEN_RISES


def _plain_limit(facts: Facts) -> float:
    """The limit that follows from the settings, computed without the rules; rules with a delay are left out."""
    settings, seen = facts.settings, facts.conditions
    limits = [settings.get("compute.share_away", 1.0)]
    if settings.get("when.schedule") == "gentle daily":
        # while the computer is in use, the gentle share for that applies, or else the usual one
        in_use = settings.get("when.gentle_using", 0.0) or settings.get("compute.share_using", 0.2)
        limits.append(max(settings.get("when.gentle_away", 1.0), in_use))
    if settings.get("when.schedule") == "off daily" or (facts.pause and facts.now < (facts.pause.until or math.inf)):
        limits.append(0.0)
    if any(seen[each].value for each in (Condition.FULL_SCREEN, Condition.INHIBITED, Condition.METERED)):
        limits.append(0.0)
    if seen[Condition.BATTERY].value and settings.get("when.battery_pause", True):
        limits.append(0.0)
    return float(min(limits))


def _is_within_every_limit(computer: Computer) -> None:
    state = computer.granted.state
    facts = g.regulated(computer.facts, state)
    for rule in RULES:
        proposal = rule.propose(facts)
        lasted = state.steady - state.holds_since.get(rule.name, state.steady) >= rule.onset
        if proposal is not None and lasted:
            assert computer.share <= proposal.share + 1e-9, rule.name
            assert computer.granted.allowance.network <= proposal.network
    assert computer.granted.holding[0].allowance.share == computer.share
