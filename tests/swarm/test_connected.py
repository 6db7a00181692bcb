"""How many peers are connected, as asked of a real DHT node whose only neighbour is killed."""

import forked_peers
from skep.worker.connection.lookout import connected
from swarm_peers import wait_until


def test_a_peer_that_is_gone_is_connected_no_longer(make_dhts):
    ours, other = make_dhts(2)
    count = connected(ours)
    wait_until(lambda: count() == 1)
    forked_peers.kill(forked_peers.family(other))
    wait_until(lambda: count() == 0)
