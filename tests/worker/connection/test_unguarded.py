"""What the guards change is found, whatever they change."""

from hivemind.dht import node
from hivemind.dht.protocol import DHTProtocol
from hivemind.p2p import P2P
from hivemind.utils import MSGPackSerializer

from skep.worker.connection import guards
from unguarded import code_of, owners, unguarded_again


def test_all_that_the_guards_change_is_as_before():
    with unguarded_again():
        before = {owner: code_of(owner) for owner in owners()}
        guards.install()
        changed = {
            (owner, name)
            for owner, code in before.items()
            for name in code.keys() | code_of(owner).keys()
            if code.get(name) is not code_of(owner).get(name)
        }
    assert changed >= {
        (P2P, "receive_raw_data"),
        (P2P, "add_binary_stream_handler"),
        (MSGPackSerializer, "loads"),
        (node, "_SearchState"),
        (DHTProtocol, "rpc_store"),
        (DHTProtocol, "update_routing_table"),
    }
    assert {owner: code_of(owner) for owner in before} == before
