import pytest
from hivemind.utils.multiaddr import Multiaddr

from manifests import PEER, raw
from skep.core.project.addresses import TRANSPORTS
from skep.recipes.registry import parse_manifest

ID = PEER.split("/")[-1]
HOSTS = ["ip4/203.0.113.7", "ip6/2001:db8::1", "ip6/::ffff:203.0.113.7", "dns/a.example", "dns4/a-b.c", "dns6/a"]
IDS = [ID, "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("peer_id", IDS)
@pytest.mark.parametrize("between", ["", *(f"/{name}" for name in sorted(TRANSPORTS)), "/tls/ws"])
def test_every_address_a_manifest_may_carry_can_be_read_by_hivemind(host, peer_id, between):
    for port in ("tcp/31337", "udp/65535"):
        address = f"/{host}/{port}{between}/p2p/{peer_id}"
        assert parse_manifest(raw(peers=[address])).peers == (address,)
        assert str(Multiaddr(address)) == address
