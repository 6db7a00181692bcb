"""`make test-faults PART=churn` for two minutes instead of twenty."""

from contextlib import closing

import pytest
from faults import churn


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_peer_killed_and_another_one_joined_cost_the_swarm_no_progress():
    with closing(churn.measure(range(1), seconds=40.0, every=15.0)) as measured:
        (row,) = measured
    assert (row["killed"], row["joined"]) == (1, 1)
    assert min(row["epochs"]) >= 2, row
    losses = [each for each in churn.judged([row]) if "loss" in each.name]  # four epochs are too few for a rate
    assert len(losses) == 2
    assert [each.name for each in losses if each.missed] == [], row
