"""One peer asks another to dial it back: real p2pd on loopback, with and without a peer that supports it."""

from skep.worker.connection import reachability
from skep.worker.connection.reachability import answer_others, find_out


def test_a_peer_that_listens_is_told_so_by_one_that_dials_it_back(make_dhts):
    first, second = make_dhts(2)
    assert find_out(second) is None  # a stock peer does not support dialling back
    answer_others(first)
    assert find_out(second) is True


async def _ask_about_nothing(dht, node):
    return await reachability._ask(node.p2p, next(iter(node.protocol.routing_table.uid_to_peer_id.values())), [1])


def test_a_port_where_nothing_answers_is_not_reachable(make_dhts):
    first, second = make_dhts(2)
    answer_others(first)
    assert second.run_coroutine(_ask_about_nothing) == 0
