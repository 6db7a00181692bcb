"""The granted allowance and its reason: each rule, its sentence, and which rule has precedence."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from english import in_english, spoken
from skep.core.device import PowerCap
from skep.core.policy import decision, rules
from skep.core.policy.allowance import Allowance, GpuMemory, PauseState
from skep.core.policy.conditions import Condition, Conditions, answered, missing, silent
from skep.core.policy.rules import RULES, Facts
from skep.core.settings.settings import DEFAULTS, SETTINGS
from skep.core.text import NOTHING, verbatim

NOW = datetime(2026, 3, 2, 10, 30, tzinfo=UTC).timestamp()
"""A Monday."""
GPU_IN_NEED = Facts(gpu_memory=GpuMemory.RELEASE)
NOTE = "The source is gone."


def seen(**readings: Any) -> Conditions:
    return Conditions(graphical=True).with_seen(
        {Condition.INPUT: answered(9999.0)} | {Condition(name): answered(value) for name, value in readings.items()}
    )


def granted_at(conditions: Conditions, settings: dict[str, Any], now: float, **more: Any) -> Allowance:
    return decision.combined(decision.holding(Facts(conditions, settings, now, **more)))


def decide(conditions: Conditions | None = None, pause: PauseState | None = None, **settings: Any) -> Allowance:
    values = {key.replace("__", "."): value for key, value in settings.items()}
    return granted_at(conditions or Conditions(), values, NOW, pause=pause)


def test_grants_the_share_for_an_absent_user_when_nothing_else_holds():
    assert spoken(decide()) == spoken(Allowance(1.0, verbatim("Training at full share.")))
    assert spoken(decide(compute__share_away=0.35)) == spoken(Allowance(0.35, verbatim("Training at 35 % share.")))


@pytest.mark.parametrize(
    ("setting", "share"), [(1.5, 1.0), (-0.5, 0.0), (float("nan"), 0.0), ("much", 1.0), (True, 1.0)]
)
def test_never_grants_a_share_outside_its_bounds(setting: Any, share: float):
    assert decide(compute__share_away=setting).share == share


@pytest.mark.parametrize(
    ("heavy", "on_processor", "share"), [(True, True, 0.0), (True, False, 0.2), (False, True, 0.2)]
)
def test_what_cannot_stop_at_once_pauses_while_somebody_uses_the_processor(
    heavy: bool,
    on_processor: bool,
    share: float,
):
    facts = Facts(seen(input=1.0), on_processor=on_processor, heavy=heavy)
    assert decision.holding(facts)[0].allowance.share == share
    away = replace(facts, conditions=seen())
    assert decision.holding(away)[0].allowance.share == 1.0


def test_a_pause_grants_nothing_and_says_until_when():
    assert spoken(decide(pause=PauseState(None))) == spoken(
        Allowance(0.0, verbatim("Paused until you resume."), rule="paused")
    )
    until = NOW + 5 * 3600
    assert spoken(decide(pause=PauseState(until))) == spoken(
        Allowance(0.0, verbatim("Paused until 15:30."), until=until, rule="paused")
    )
    assert decide(pause=PauseState(NOW)).share == 1.0


CASES = [
    (seen(battery=True), {}, 0.0, "battery", "On battery."),
    (seen(metered=True), {}, 0.0, "metered", "On a metered connection."),
    (seen(full_screen=True), {}, 0.0, "full_screen", "A full-screen program is open."),
    (seen(inhibited=True), {}, 0.0, "call", "A call or film is running."),
    (seen(gpu_use=0.16), {}, 0.0, "busy_gpu", "Another program is using the GPU."),
    (seen(input=0.0), {}, 0.2, "input", "20 % while you use this computer."),
    (seen(input=0.0), {"compute.share_using": 0.0}, 0.0, "input", "Paused while you use this computer."),
    (seen(), {"when.schedule": "off daily 9-22"}, 0.0, "schedule", "Outside your hours until 22:00."),
    (seen(), {"when.schedule": "off daily"}, 0.0, "schedule", "Outside your hours."),
    (seen(), {"when.schedule": "gentle daily 9-22"}, 0.2, "schedule", "Your gentle hours: 20 % until 22:00."),
    (seen(), {"when.schedule": "gentle daily", "compute.share_using": 0.0}, 0.0, "schedule", "Your gentle hours: paused."),
    (seen(), {"when.schedule": "gentle daily", "when.gentle_away": 0.5}, 0.5, "schedule", "Your gentle hours: 50 %."),
]  # fmt: skip


@pytest.mark.parametrize(("conditions", "settings", "share", "rule", "sentence"), CASES)
def test_each_rule_proposes_its_ceiling_and_says_its_sentence(conditions, settings, share, rule, sentence):
    granted = granted_at(conditions, settings, NOW)
    assert (granted.share, granted.rule, in_english(granted.reason)) == (share, rule, sentence)


@pytest.mark.parametrize(
    "conditions",
    [
        seen(battery=False, metered=False, full_screen=False, inhibited=False, gpu_use=0.15, processor_use=1.0),
        seen(input=180.0),
        seen(input=0.0, locked=True),
        Conditions(),
    ],
)
def test_no_rule_holds_while_nothing_of_it_is_seen(conditions: Conditions):
    assert spoken(granted_at(conditions, {}, NOW)) == spoken(Allowance(1.0, verbatim("Training at full share.")))


@pytest.mark.parametrize(
    ("key", "conditions"),
    [
        ("when.battery_pause", seen(battery=True)),
        ("network.metered_pause", seen(metered=True)),
        ("when.full_screen_pause", seen(full_screen=True)),
        ("when.call_pause", seen(inhibited=True)),
        ("when.busy_gpu_pause", seen(gpu_use=1.0)),
    ],
)
def test_a_rule_can_be_switched_off_and_then_its_silence_says_nothing_either(key: str, conditions: Conditions):
    assert granted_at(conditions, {key: False}, NOW).share == 1.0
    condition = next(rule.condition for rule in RULES if rule.setting == key)
    assert condition is not None
    assert granted_at(seen().with_seen({condition: silent(NOTE)}), {key: False}, NOW).share == 1.0


def test_metered_leaves_no_network_even_when_another_rule_wins():
    assert not decide(seen(metered=True), pause=PauseState(None)).network
    assert decide(seen(battery=True)).network


def test_whoever_is_there_is_told_whichever_rule_wins():
    assert decide(seen(input=0.0, battery=True)).present
    assert not decide(seen(battery=True)).present


def test_gentle_hours_have_limits_of_their_own_for_using_and_away():
    settings = {"when__schedule": "gentle daily", "when__gentle_away": 0.5, "when__gentle_using": 0.1}
    assert decide(seen(), **settings).share == 0.5
    assert decide(seen(input=0.0), **settings).share == 0.1


def test_the_minutes_until_away_are_a_setting():
    assert decide(seen(input=50.0), compute__idle_minutes=0.5).share == 1.0
    assert decide(seen(input=29.0), compute__idle_minutes=0.5).share == 0.2


def test_the_share_while_using_is_bound_by_the_share_while_away():
    assert decide(seen(input=0.0), compute__share_using=0.6, compute__share_away=0.3).share == 0.3


def test_the_processor_is_watched_only_while_it_trains_and_the_gpu_only_while_that_does():
    both = seen(gpu_use=1.0, processor_use=0.61, gpu_memory=0)
    on_processor = granted_at(both, {}, NOW, on_processor=True)
    assert (on_processor.share, on_processor.rule) == (0.2, "busy_processor")
    assert in_english(on_processor.reason) == "Other programs need the processor."
    assert on_processor.present  # it yields to other programs as to a user
    assert granted_at(both, {}, NOW).rule == "busy_gpu"
    held = decision.holding(Facts(both, on_processor=True, gpu_memory=GpuMemory.RELEASE))
    assert [each.rule for each in held] == ["busy_processor", "away"]


def test_where_the_shares_are_equal_other_programs_take_nothing_and_are_not_said_to():
    equal = {"compute.share_using": 0.5, "compute.share_away": 0.5}
    held = decision.holding(Facts(seen(processor_use=1.0), equal, NOW, on_processor=True))
    assert [(each.rule, each.allowance.share) for each in held] == [("away", 0.5)]


def test_short_gpu_memory_shrinks_first_and_then_releases():
    facts = Facts(seen(gpu_memory=0))
    assert decision.combined(decision.holding(facts)).memory is GpuMemory.KEEP
    shrunk = decision.combined(decision.holding(replace(facts, gpu_memory=GpuMemory.SHRINK)))
    assert (shrunk.share, shrunk.memory, in_english(shrunk.reason)) == (
        1.0,
        GpuMemory.SHRINK,
        "Your programs need GPU memory.",
    )
    released = decision.combined(decision.holding(replace(facts, gpu_memory=GpuMemory.RELEASE)))
    assert (released.share, released.memory, released.rule) == (0.0, GpuMemory.RELEASE, "gpu_memory")


@pytest.mark.parametrize(("on_processor", "device"), [(False, "GPU"), (True, "processor")])
def test_heat_allows_what_its_loop_found(on_processor: bool, device: str):
    facts = Facts(seen(temperature=81.0), heat=0.4, on_processor=on_processor)
    held = decision.holding(facts)
    assert (held[0].rule, held[0].allowance.share) == ("heat", 0.4)
    assert in_english(held[0].allowance.reason) == f"Keeping the {device} below 80 °C."


# --- sources


WATCHED = [rule for rule in RULES if rule.condition is not None]


@pytest.mark.parametrize("rule", WATCHED, ids=lambda rule: rule.name)
@pytest.mark.parametrize("using", [0.2, 0.0])
def test_a_source_that_stops_answering_caps_at_the_using_share_and_says_so(rule: rules.Rule, using: float):
    assert rule.condition is not None
    conditions = seen().with_seen({rule.condition: silent(NOTE)})
    facts = Facts(conditions, {"compute.share_using": using}, NOW, on_processor=rule.name == "busy_processor")
    winner = decision.holding(facts)[0]
    said = "20 %" if using else "Paused"
    assert (winner.rule, winner.allowance.share) == (rule.name, using)
    assert in_english(winner.allowance.reason) == f"{NOTE} {said} until it answers again."


@pytest.mark.parametrize("rule", WATCHED, ids=lambda rule: rule.name)
def test_a_source_that_does_not_exist_switches_its_rule_off(rule: rules.Rule):
    assert rule.condition is not None
    conditions = Conditions().with_seen({rule.condition: missing(NOTE)})
    held = decision.holding(Facts(conditions, on_processor=rule.name == "busy_processor"))
    assert [each.rule for each in held] == ["away"]


def test_a_screen_whose_last_use_cannot_be_told_counts_as_in_use():
    unknown = decide(
        Conditions(graphical=True).with_seen(
            {Condition.INPUT: missing(verbatim("This desktop does not say when it was last used."))}
        )
    )
    assert (unknown.share, unknown.rule, unknown.present) == (0.2, "input", True)
    assert in_english(unknown.reason) == "This desktop does not say when it was last used. 20 % to be safe."
    nothing = decide(Conditions(graphical=True), compute__share_using=0.0)
    assert in_english(nothing.reason) == "This computer does not report when it was last used. Paused to be safe."
    assert decide(Conditions(graphical=False)).share == 1.0
    assert in_english(decide(Conditions().with_seen({Condition.INPUT: silent(NOTHING)})).reason) == (
        "A sensor does not answer. 20 % until it answers again."
    )


def test_a_power_cap_that_the_card_keeps_is_said_and_one_that_is_refused_is_not():
    cap = PowerCap(watts=150.0, lowest=100.0, highest=350.0)
    facts = Facts(seen(), {"compute.share_away": 0.8}, power_caps={"cuda:0": cap})
    winner = decision.holding(facts)[0]
    assert (winner.rule, winner.allowance.share, in_english(winner.allowance.reason)) == (
        "power_cap",
        0.8,
        "Limited to 150 W.",
    )
    in_use = decision.holding(replace(facts, conditions=seen(input=0.0)))
    assert [each.rule for each in in_use] == ["input", "power_cap", "away"]
    for none in ({}, {"cuda:0": replace(cap, refused="The system does not permit it.")}, {"cuda:0": PowerCap()}):
        assert [each.rule for each in decision.holding(replace(facts, power_caps=none))] == ["away"]


def test_the_power_caps_of_several_cards_are_said_as_one():
    caps = {"cuda:0": PowerCap(watts=150.0), "cuda:1": PowerCap(watts=200.0), "cuda:2": PowerCap(250.0, refused=NOTE)}
    winner = decision.holding(Facts(seen(), power_caps=caps))[0]
    assert in_english(winner.allowance.reason) == "Limited to 350 W together."


@pytest.mark.parametrize(
    ("limits", "devices", "in_step", "share"),
    [
        ("cuda:0 50%", ("cuda:0",), False, 0.5),
        ("cuda:0 50%", ("cuda:0", "cuda:1"), False, None),
        ("cuda:0 50%; cuda:1 70%", ("cuda:0", "cuda:1"), False, 0.7),
        ("cuda:0 50%; cuda:1 70%", ("cuda:0", "cuda:1"), True, 0.5),
        ("cuda:0 50%", ("cuda:0", "cuda:1"), True, 0.5),
        ("cuda:1 50%", ("cuda:0",), True, None),
        ("cuda:0 75C", ("cuda:0",), False, None),
    ],
)
def test_limits_of_single_cards_hold_for_all_together_as_far_as_they_must(
    limits: str, devices: tuple[str, ...], in_step: bool, share: float | None
):
    facts = Facts(seen(), {"compute.device_limits": limits}, devices=devices, in_step=in_step)
    first = decision.holding(facts)[0]
    if share is None:
        assert first.rule == "away"
    else:
        assert (first.rule, first.allowance.share) == ("device_limits", share)
        assert in_english(first.allowance.reason) == f"{share * 100:.0f} %, your limit for the card."


# --- precedence


def test_lists_every_rule_that_holds_with_the_winner_first():
    facts = Facts(seen(input=0.0, battery=True, full_screen=True), {}, NOW, pause=PauseState(None))
    held = [each.rule for each in decision.holding(facts)]
    assert held == ["paused", "battery", "full_screen", "input", "away"]
    assert all(each.allowance.rule == each.rule for each in decision.holding(facts))


READINGS = st.sampled_from(
    [
        answered(True),
        answered(False),
        answered(0.0),
        answered(0.5),
        answered(1.0),
        answered(500.0),
        missing(NOTE),
        silent(NOTE),
    ]
)


@given(st.dictionaries(st.sampled_from(list(Condition)), READINGS), st.booleans(), st.sampled_from([0.0, 0.3, 1.0]))
def test_nothing_that_is_granted_is_above_any_rule_that_holds(readings, graphical, using):
    facts = Facts(Conditions(graphical=graphical).with_seen(readings), {"compute.share_using": using}, NOW)
    granted = decision.combined(decision.holding(facts))
    for rule in RULES:
        proposal = rule.propose(facts)
        assert proposal is None or granted.share <= proposal.share


def test_every_rule_has_a_label_and_a_setting_that_exists():
    assert {rule.setting for rule in RULES if rule.setting} <= SETTINGS.keys()
    assert {rule.calm for rule in RULES if rule.calm} <= SETTINGS.keys()
    assert all(rule.label and bool(rule.calm) == bool(rule.over) for rule in RULES)
    assert rules.RAMP.propose(Facts()) is None


def test_a_setting_that_is_no_number_is_its_default():
    assert rules.number_of({"compute.idle_minutes": "long"}, "compute.idle_minutes") == DEFAULTS["compute.idle_minutes"]
