"""Why skep announces no bandwidth: a project's one number for all peers divides a round as no number does."""

import pytest
from hivemind.averaging.load_balancing import load_balance_peers

CLIENT = 0.0


@pytest.mark.parametrize("clients", [0, 2])
@pytest.mark.parametrize("reducers", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [4, 1001, 10_000_000])
def test_one_number_for_all_peers_divides_a_round_as_none_does(size, reducers, clients):
    told, untold = ([value] * reducers + [CLIENT] * clients for value in (5.0, None))
    assert load_balance_peers(size, told) == load_balance_peers(size, untold)


def test_peers_of_before_that_announce_the_number_get_the_same_part():
    assert load_balance_peers(1000, [5.0, None, 5.0, None]) == (250,) * 4
