"""A day as segments: each has one rule, they are few enough to be visible, and all time of each rule is counted."""

import pytest

from english import spoken
from skep.core.policy.allowance import Change
from skep.core.record.timeline_segments import Segment, by_rule, legible, segments
from skep.core.text import verbatim


def change(at, rule, share=1.0, project="p"):
    return Change(at, project, share, rule, verbatim(rule.capitalize()))


def shown(found):
    return [(each.begin, each.end, each.rule) for each in found]


def test_a_day_is_cut_to_its_ends():
    found = segments([change(-50.0, "away"), change(100.0, "battery", 0.0), change(300.0, "away")], 0.0, 400.0)
    assert shown(found) == [(0.0, 100.0, "away"), (100.0, 300.0, "battery"), (300.0, 400.0, "away")]
    assert segments([], 0.0, 400.0) == []


def test_changes_within_a_rule_are_one_segment_with_the_mean_share():
    found = segments([change(0.0, "heat", 1.0), change(100.0, "heat", 0.5), change(400.0, "heat", 0.5)], 0.0, 500.0)
    assert spoken(found) == spoken([Segment(0.0, 500.0, "p", "heat", 0.6, verbatim("Heat"))])


def test_the_way_up_belongs_to_what_it_leads_to():
    found = segments([change(0.0, "input", 0.2), change(100.0, "ramp", 0.4), change(110.0, "away")], 0.0, 200.0)
    assert shown(found) == [(0.0, 100.0, "input"), (100.0, 200.0, "away")]
    assert shown(segments([change(0.0, "ramp", 0.4)], 0.0, 9.0)) == [(0.0, 9.0, "ramp")]
    left = segments([change(0.0, "ramp", 0.4), change(5.0, "", 0.0, project="")], 0.0, 9.0)
    assert shown(left) == [(0.0, 5.0, "ramp"), (5.0, 9.0, "")]


def test_what_lasted_no_time_is_left_out():
    assert shown(segments([change(5.0, "away"), change(5.0, "battery")], 0.0, 9.0)) == [(5.0, 9.0, "battery")]


def test_what_is_too_short_to_be_seen_goes_to_its_longer_neighbour():
    whole = segments(
        [change(0.0, "away"), change(600.0, "input"), change(610.0, "call"), change(650.0, "away")], 0.0, 5_000.0
    )
    assert shown(legible(whole)) == [(0.0, 5_000.0, "away")]
    assert shown(legible(whole, 40.0)) == [(0.0, 610.0, "away"), (610.0, 650.0, "call"), (650.0, 5_000.0, "away")]
    assert shown(legible(whole[1:2])) == [(600.0, 610.0, "input")]


def test_every_rule_is_counted_whole():
    whole = segments(
        [change(0.0, "away"), change(60.0, "input", 0.2), change(70.0, "away", 0.4), change(110.0, "", project="")],
        0.0,
        900.0,
    )
    found = by_rule(whole)
    assert [(each.rule, each.seconds) for each in found] == [("away", 100.0), ("input", 10.0)]
    assert found[0].share == pytest.approx(0.76)
