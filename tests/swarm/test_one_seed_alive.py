"""Joining needs one seed: of three, one is closed and at one another peer answers."""

import pytest

from manifests import PEER
from skep.core.project.data import ShardIndex, TextLayout
from skep.core.session.messages import WorkerOptions
from skep.worker.connection import network


@pytest.fixture
def options(private_sockets, tmp_path):
    return WorkerOptions(
        manifest="",
        index=ShardIndex(TextLayout(8, 256), ()),
        identity_path=str(tmp_path / "id"),
        run_folder=str(private_sockets),
    )


def test_one_of_three_seeds_is_enough(make_dhts, options):
    (seed,) = make_dhts(1)
    nobody = PEER.rpartition("/")[2]
    alive = next(str(each) for each in seed.get_visible_maddrs() if "/127.0.0.1/" in str(each))
    closed, other = f"/ip4/127.0.0.1/tcp/1/p2p/{nobody}", f"{alive.rpartition('/')[0]}/{nobody}"
    dht = network.reach(options, [closed, other, alive])
    try:
        assert str(seed.peer_id) in dht.run_coroutine(known_peers)
    finally:
        dht.shutdown()


async def known_peers(_dht, node):
    return [str(each) for each in node.protocol.routing_table.uid_to_peer_id.values()]
