"""`explain`: the same rules with assumed conditions; settings that contradict each other."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest

from english import in_english
from skep.core.device import PowerCap
from skep.core.errors import BadInput
from skep.core.policy.conditions import Condition, Conditions, answered, missing
from skep.core.policy.rules import contradictions
from skep.core.session import control, explain
from skep.core.session import messages as m
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import initial, step
from skep.core.text import verbatim

NOW = 1_000_000.0


@pytest.fixture
def snapshot() -> Snapshot:
    conditions = Conditions(graphical=True).with_seen(
        {Condition.INPUT: answered(9999.0), Condition.BATTERY: missing(verbatim("This computer has no battery."))}
    )
    return initial({"compute.share_using": 0.1}, None, NOW, conditions=conditions)


def ask(snapshot: Snapshot, *words: str) -> dict[str, Any]:
    return explain.explained(snapshot, list(words), NOW, UTC)


def test_without_words_it_tells_what_holds(snapshot: Snapshot):
    told = ask(snapshot)
    assert [each["rule"] for each in told["holding"]] == ["away"]
    assert in_english(told["allowance"]["reason"]) == "Training at full share."
    assert (in_english(told["holding"][0]["label"]), told["holding"][0]["setting"]) == ("Away", "compute.share_away")


def test_sources_that_are_missing_are_named(snapshot: Snapshot):
    told = {each["rule"]: in_english(each["note"]) for each in ask(snapshot)["missing"]}
    assert told["battery"] == "This computer has no battery."
    assert told["heat"] == "This computer does not report how warm the device is."
    assert "input" not in told


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        ("input", "input"),
        ("battery", "battery"),
        ("fullscreen", "full_screen"),
        ("full-screen", "full_screen"),
        ("call", "call"),
        ("FILM", "call"),
        ("busy", "busy_gpu"),
        ("metered", "metered"),
        ("memory", "gpu_memory"),
        ("hot", "heat"),
        ("locked", "away"),
        ("mains", "away"),
    ],
)
def test_each_word_is_imagined(snapshot: Snapshot, word: str, rule: str):
    assert ask(snapshot, word)["allowance"]["rule"] == rule


def test_words_add_up_and_all_rules_are_listed_with_the_winner_first(snapshot: Snapshot):
    told = ask(snapshot, "input", "battery")
    assert [each["rule"] for each in told["holding"]] == ["battery", "input", "away"]
    assert told["allowance"]["present"]
    assert ask(snapshot, "input", "locked")["allowance"]["rule"] == "away"


def test_busy_is_about_the_device_that_trains(snapshot: Snapshot):
    assert ask(replace(snapshot, device="CPU"), "busy")["allowance"]["rule"] == "busy_processor"


def test_a_power_cap_holds_beside_what_is_imagined_and_one_that_is_refused_is_remarked_on(snapshot: Snapshot):
    capped = replace(snapshot, power_caps={"cuda:0": PowerCap(watts=150.0)})
    assert [each["rule"] for each in ask(capped, "input")["holding"]] == ["input", "power_cap", "away"]
    cap = PowerCap(watts=250.0, refused=verbatim("The driver does not permit it."))
    refused = replace(snapshot, power_caps={"cuda:0": cap, "cuda:1": cap})
    assert in_english(ask(refused)["remarks"]) == ["The power cap has no effect here. The driver does not permit it."]


def test_what_is_imagined_changes_nothing(snapshot: Snapshot):
    before = snapshot.conditions
    ask(snapshot, "input", "hot", "memory")
    assert snapshot.conditions == before


@pytest.mark.parametrize("words", [["rain"], "input", 7])
def test_what_cannot_be_imagined_is_refused(snapshot: Snapshot, words: Any):
    with pytest.raises(BadInput):
        explain.explained(snapshot, words, NOW, UTC)


def test_the_running_skep_explains_with_what_it_sees_and_in_its_own_settings(snapshot: Snapshot):
    answer, commands = control.decide({"verb": "explain", "if": ["input"]}, snapshot, NOW, UTC)
    told = json.loads(json.dumps(answer, allow_nan=False))["explanation"]
    assert (told["if"], told["allowance"]["share"], commands) == (["input"], 0.1, ())
    assert control.decide({"verb": "explain"}, snapshot, NOW, UTC)[0]["explanation"]["if"] == []
    with pytest.raises(BadInput):
        control.decide({"verb": "explain", "if": ["rain"]}, snapshot, NOW, UTC)


def test_a_status_tells_conditions_rules_and_reactions(snapshot: Snapshot):
    seen, _ = step(snapshot, m.ConditionsSeen({Condition.INPUT: answered(2.0)}), NOW)
    body = json.loads(json.dumps(control.status(seen), allow_nan=False))
    assert [each["rule"] for each in body["holding"]] == ["input", "away"]
    assert body["conditions"]["input"]["value"] == 2.0
    assert list(body["conditions"]) == ["graphical", *Condition]
    again = control.snapshot_of(body)
    assert (again.holding, again.conditions) == (seen.holding, seen.conditions)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"compute.share_using": 0.6, "compute.share_away": 0.3}, "the lower one counts, 30 %"),
        ({"when.gentle_using": 0.5, "when.schedule": "gentle mon"}, "the lower one counts, 20 %"),
        ({"when.gentle_away": 0.8, "compute.share_away": 0.4, "when.schedule": "gentle mon"}, "lower one counts, 40 %"),
        ({"when.schedule": "off daily"}, "skep never computes"),
        (
            {"memory.free_gpu_seconds": 3600, "memory.leave_swarm_minutes": 10.0},
            "Leaving the swarm frees that memory too",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_told(settings: Any, sentence: str):
    (told,) = contradictions(settings)
    assert sentence in in_english(told)
    assert in_english(told).endswith(".")


def test_settings_that_go_together_are_not_remarked_on():
    assert contradictions({}) == ()
    assert contradictions({"when.gentle_using": 0.5}) == ()
    assert contradictions({"when.gentle_away": 0.8, "compute.share_away": 0.4}) == ()
