"""What real p2pd says of relays: none has taken a peer on loopback, whether it listens or is a client."""

import hivemind

from skep.worker.connection.relays import becomes_relayed, is_relayed, through


def test_peers_without_a_relay_know_it(make_dhts):
    (seed,) = make_dhts(1)
    assert not is_relayed(seed)
    seeds = [str(address) for address in seed.get_visible_maddrs()]
    for options in ({"client_mode": True, "no_listen": True}, through(seeds)):
        dht = hivemind.DHT(initial_peers=seeds, start=True, startup_timeout=60, **options)
        try:
            assert not becomes_relayed(dht)
        finally:
            dht.shutdown()
