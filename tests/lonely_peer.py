"""A peer on a computer of its own, which prints what it knows of its connections: `lonely_peer.py ADDRESS SEED…`.

Without a seed it is one. A line of JSON for each look: `open`, the number of connections that p2pd takes for open, and
`ended`, whether the worker would be started anew. Between two looks it asks its DHT, as a worker does.
"""

import json
import sys
import tempfile
import time

import hivemind
from hivemind.p2p import P2P

from skep.worker.connection.reconnecting import Connections, Reconnecting
from skep.worker.process import processes


def main(address, *seeds):
    with tempfile.TemporaryDirectory(prefix="s-") as folder:
        P2P._UNIX_SOCKET_PREFIX = f"/unix{folder}/h-"
        dht = hivemind.DHT(start=True, host_maddrs=[f"/ip4/{address}/tcp/0"], initial_peers=list(seeds))
        connections = Connections(dht)
        watched = Reconnecting(connections)
        tell(addresses=[str(each) for each in dht.get_visible_maddrs()])
        while not watched.ended:
            watched.look(60.0)
            tell(open=len(connections.open()), ended=watched.ended)
            dht.get("anything", latest=True, return_future=True)
            time.sleep(1.0)
        dht.shutdown()


def tell(**facts):
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    processes.use_fork()
    main(*sys.argv[1:])
