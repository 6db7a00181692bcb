"""What peers average for others: equal parts, as in stock hivemind, but nothing where it would have to be relayed."""

import pytest
from hivemind.averaging.load_balancing import load_balance_peers

from skep.worker.connection.relays import UNDIALLED

CLIENT = 0.0


@pytest.mark.parametrize("clients", [0, 2])
@pytest.mark.parametrize("reducers", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [4, 1001, 10_000_000])
def test_one_number_for_all_peers_divides_a_round_as_none_does(size, reducers, clients):
    told, untold = ([value] * reducers + [CLIENT] * clients for value in (1.0, None))
    assert load_balance_peers(size, told) == load_balance_peers(size, untold)


def test_stock_peers_which_announce_no_number_get_the_same_part():
    assert load_balance_peers(1000, [1.0, None, 1.0, None]) == (250,) * 4


@pytest.mark.parametrize(
    ("bandwidths", "parts"),
    [
        ([1.0, 1.0, UNDIALLED], (500, 500, 0)),
        ([1.0, UNDIALLED, UNDIALLED, CLIENT], (1000, 0, 0, 0)),
        ([UNDIALLED] * 4, (250,) * 4),
    ],
)
def test_peers_behind_a_relay_get_a_part_only_where_there_are_no_others(bandwidths, parts):
    assert load_balance_peers(1000, bandwidths) == parts
