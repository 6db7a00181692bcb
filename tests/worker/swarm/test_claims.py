"""What several claims together say."""

import pytest

from skep.worker.swarm.claims import ended_together


@pytest.mark.parametrize(
    ("told", "ended"),
    [
        ([], 5),
        ([None], 5),  # a stock peer
        ([4], 5),
        ([5], 5),
        ([6], 6),
        ([10**9], 6),  # by one at most, whatever it says
        ([5, 6], 6),
        ([5, 5, 6], 5),
        ([5, 6, 7], 6),
    ],
)
def test_a_round_has_ended_the_next_epoch_if_half_of_the_others_were_in_it(told, ended):
    assert ended_together(5, told) == ended
