"""A peer on a computer of its own, which prints whether it reaches a seed: `lonely_peer.py skep|stock ADDRESS [SEED]`.

Without a seed it is one. The first line of JSON has its `addresses`, each later one whether a new request `reached` the
seed, and how many connections p2pd takes for `open`. `skep` joins as the worker does; `stock` leaves reconnecting to p2pd.
"""

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import hivemind
from hivemind.p2p import PeerID

from skep.adapters.storage.identity import FileIdentity
from skep.core.project.data import ShardIndex, TextLayout
from skep.core.session.messages import WorkerOptions
from skep.worker.connection import network
from skep.worker.process import processes

START_SECONDS = 60.0
ANSWER_SECONDS = 3.0


async def _look(_dht, node, peer):
    reached = bool(peer) and await node.protocol.call_ping(PeerID.from_base58(peer)) is not None
    return {"reached": reached, "open": len(await node.p2p.list_peers())}


def main(kind, address, *seeds):
    with tempfile.TemporaryDirectory(prefix="s-") as folder:
        dht = network.reach(place_of(folder, address), seeds) if kind == "skep" else stock(folder, address, seeds)
        tell(addresses=[str(each) for each in dht.get_visible_maddrs()])
        peer = seeds[0].rpartition("/")[2] if seeds else ""
        while True:
            tell(**dht.run_coroutine(partial(_look, peer=peer), return_future=True).result(START_SECONDS))
            time.sleep(1.0)


def place_of(folder, address):
    """Where the worker would listen, without a look whether others can dial it."""
    identity = FileIdentity(Path(folder, "id"))
    identity.peer_id  # noqa: B018 - creates the key
    return WorkerOptions(
        manifest="",
        index=ShardIndex(TextLayout(8, 256), ()),
        identity_path=str(identity.path),
        run_folder=folder,
        listen_host=address,
        client_mode="off",
    )


def stock(folder, address, seeds):
    network.put_sockets_in(Path(folder))
    return hivemind.DHT(
        start=True,
        host_maddrs=[f"/ip4/{address}/tcp/0"],
        initial_peers=list(seeds),
        startup_timeout=START_SECONDS,
        wait_timeout=ANSWER_SECONDS,
    )


def tell(**facts):
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    processes.use_fork()
    main(*sys.argv[1:])
