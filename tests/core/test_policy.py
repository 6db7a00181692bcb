"""What is granted, and why."""

from __future__ import annotations

import pytest

from skep.core import policy
from skep.core.model import Allowance, PauseState

NOW = 1_000_000.0


def test_grants_the_share_for_an_absent_user_when_nothing_else_holds():
    assert policy.decide(None, {"compute.share_away": 1.0}, NOW) == Allowance(1.0, "Training at full share.")
    assert policy.decide(None, {"compute.share_away": 0.35}, NOW) == Allowance(0.35, "Training at 35% share.")


def test_grants_the_full_share_where_the_setting_is_missing():
    assert policy.decide(None, {}, NOW).share == 1.0


@pytest.mark.parametrize(("setting", "share"), [(1.5, 1.0), (-0.5, 0.0), (float("nan"), 0.0), ("much", 1.0)])
def test_never_grants_a_share_outside_its_bounds(setting: float | str, share: float):
    assert policy.decide(None, {"compute.share_away": setting}, NOW).share == share


def test_a_pause_grants_nothing_and_says_that_the_user_ends_it():
    assert policy.decide(PauseState(None), {}, NOW) == Allowance(0.0, "Paused until you resume.")


def test_a_pause_with_an_end_grants_nothing_before_it_and_says_when():
    pause = PauseState(NOW + 60)
    assert policy.decide(pause, {}, NOW) == Allowance(0.0, "Paused for a while.", until=NOW + 60)
    assert policy.decide(pause, {}, NOW + 59.9).share == 0.0
    assert policy.decide(pause, {}, NOW + 60).share == 1.0


def test_lists_every_rule_that_holds_with_the_winner_first():
    facts = policy.Facts(PauseState(None), {"compute.share_away": 0.5}, NOW)
    assert [each.rule for each in policy.holding(facts)] == ["paused", "away"]


def test_of_equal_ceilings_the_rule_of_higher_rank_wins():
    facts = policy.Facts(PauseState(None), {"compute.share_away": 0.0}, NOW)
    assert policy.holding(facts)[0].rule == "paused"
