"""Readings: what was seen replaces what was known, and nothing else."""

from __future__ import annotations

import dataclasses

from skep.core.conditions import Condition, Conditions, Reading, Source, answered, missing, silent


def test_newer_readings_replace_the_old_ones_and_leave_the_others() -> None:
    known = Conditions(graphical=True).with_seen(
        {Condition.INPUT: answered(4.0), Condition.BATTERY: answered(value=True)}
    )

    after = known.with_seen({Condition.INPUT: silent("The screen does not answer.")})

    assert after.input == Reading(None, Source.SILENT, "The screen does not answer.")
    assert after.battery.value is True
    assert after.graphical


def test_nothing_is_known_before_it_was_seen() -> None:
    assert Conditions().input == missing("")


def test_each_condition_names_a_field() -> None:
    fields = {field.name for field in dataclasses.fields(Conditions)}
    assert {condition.value for condition in Condition} == fields - {"graphical"}
