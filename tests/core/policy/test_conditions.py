"""Readings: new readings replace the old ones of the same conditions only."""

from __future__ import annotations

import pytest

from english import spoken
from skep.core.policy.conditions import Condition, Conditions, Reading, Source, answered, missing, sensible, silent
from skep.core.text import NOTHING, verbatim


def test_newer_readings_replace_the_old_ones_and_leave_the_others() -> None:
    known = Conditions(graphical=True).with_seen(
        {Condition.INPUT: answered(4.0), Condition.BATTERY: answered(value=True)}
    )

    after = known.with_seen({Condition.INPUT: silent(verbatim("The screen does not answer."))})

    assert spoken(after[Condition.INPUT]) == spoken(
        Reading(None, Source.SILENT, verbatim("The screen does not answer."))
    )
    assert after[Condition.BATTERY].value is True
    assert after.graphical


def test_nothing_is_known_before_it_was_seen() -> None:
    assert Conditions()[Condition.INPUT] == missing(NOTHING)


def test_no_word_is_imagined_as_two_readings() -> None:
    words = [word for condition in Condition for word in condition.spec.imagined]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("condition", Condition)
def test_a_source_that_tells_by_itself_is_not_asked_more_often(condition: Condition) -> None:
    assert 0 < condition.spec.periods.asked <= condition.spec.periods.told


@pytest.mark.parametrize("condition", Condition)
def test_what_is_imagined_may_be(condition: Condition) -> None:
    for value in condition.spec.imagined.values():
        assert sensible({condition: answered(value)}) == {condition: answered(value)}
