"""Which changes of readings are reported."""

from __future__ import annotations

import math
from typing import Any

import pytest

from english import in_english, spoken
from skep.core.policy.conditions import Condition, Reading, Told, answered, missing, news, sensible, silent
from skep.core.text import NOTHING, Text, verbatim

IDLE = Condition.INPUT


def is_told(condition: Condition, before: Reading[Any], after: Reading[Any], seconds: float = 0.1) -> bool:
    return bool(news({condition: Told(before, 10.0)}, {condition: after}, 10.0 + seconds))


def test_what_was_never_told_is_news():
    assert news({}, {IDLE: answered(3.0)}, 0.0) == {IDLE: answered(3.0)}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (answered(True), answered(False), True),
        (answered(True), answered(True), False),
        (answered(True), silent(verbatim("gone")), True),
        (silent(verbatim("gone")), silent(verbatim("gone")), False),
        (silent(verbatim("gone")), missing(verbatim("no battery")), True),
        (missing(verbatim("no battery")), answered(False), True),
    ],
)
def test_a_truth_is_news_when_it_changes(before: Reading[Any], after: Reading[Any], told: bool):
    assert is_told(Condition.BATTERY, before, after) == told


def test_an_idle_time_that_only_grows_is_no_news():
    assert not is_told(IDLE, answered(5.0), answered(5.1))
    assert not is_told(IDLE, answered(5.0), answered(3605.0), 3600.0)


def test_input_is_news_at_once_and_then_once_a_second():
    assert is_told(IDLE, answered(5.0), answered(0.01))
    assert not is_told(IDLE, answered(0.1), answered(0.0), 0.9)
    assert is_told(IDLE, answered(0.1), answered(0.0), 1.0)
    assert not is_told(IDLE, answered(0.1), answered(1.1), 1.0)


@pytest.mark.parametrize(
    ("condition", "before", "after", "told"),
    [
        (Condition.GPU_USE, 0.14, 0.16, True),
        (Condition.GPU_USE, 0.16, 0.2, False),
        (Condition.PROCESSOR_USE, 0.7, 0.85, True),
        (Condition.TEMPERATURE, 70.0, 70.9, False),
        (Condition.TEMPERATURE, 70.0, 71.0, True),
        (Condition.GPU_MEMORY, 10**9, 10**9 + 63_000_000, False),
        (Condition.GPU_MEMORY, 10**9, 10**9 + 65_000_000, True),
        (Condition.TEMPERATURE, 70.0, math.nan, True),
        (Condition.TEMPERATURE, 70.0, -3.0, True),
    ],
)
def test_a_number_is_news_by_steps_and_at_its_limit(condition: Condition, before: float, after: float, told: bool):
    assert is_told(condition, answered(before), answered(after)) == told


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"cuda:0": 60.0, "cuda:1": 70.0}, {"cuda:0": 60.9, "cuda:1": 70.0}, False),
        ({"cuda:0": 60.0, "cuda:1": 70.0}, {"cuda:0": 61.0, "cuda:1": 70.0}, True),
        ({"cuda:0": 60.0, "cuda:1": 70.0}, {"cuda:1": 70.0}, True),
        ({"cuda:0": 60.0, "cuda:1": 70.0}, {"cuda:0": math.nan, "cuda:1": 70.0}, True),
    ],
)
def test_a_device_that_is_not_the_warmest_is_news_as_well(
    before: dict[str, float], after: dict[str, float], told: bool
):
    assert is_told(Condition.TEMPERATURE, answered(70.0, each=before), answered(70.0, each=after)) == told


def test_nonsense_of_one_device_is_left_out():
    reading = answered(70.0, each={"cuda:0": 70.0, "cuda:1": 1e9})
    assert sensible({Condition.TEMPERATURE: reading})[Condition.TEMPERATURE].each == {"cuda:0": 70.0}


@pytest.mark.parametrize("condition", list(Condition))
def test_what_cannot_be_is_silence_with_a_sentence(condition: Condition):
    (reading,) = sensible({condition: answered("nonsense")}).values()
    assert reading == silent(Text("condition.computer_does_not_say", what=condition.spec.names.phrase))
    assert in_english(sensible({condition: silent(NOTHING)})[condition].note).endswith(".")
    assert spoken(sensible({condition: missing(verbatim("x"))})[condition]) == spoken(missing(verbatim("x")))
