"""`make test-faults PART=churn` for two minutes instead of twenty."""

from contextlib import closing

import pytest
from faults import churn

LEAST_RATE = 50.0
"""Percent of the calm run's: in 40 s there are four epochs at most, and one of them more or less is a quarter."""


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_while_a_peer_is_killed_and_another_one_joins_the_swarm_learns_on():
    with closing(churn.measure(range(1), seconds=40.0, every=15.0)) as measured:
        (row,) = measured
    assert (row["killed"], row["joined"]) == (1, 1)
    assert row["rate"] >= LEAST_RATE, row
    losses = [each for each in churn.judged([row]) if "loss" in each.name]
    assert len(losses) == 2
    assert [each.name for each in losses if each.missed] == [], row
