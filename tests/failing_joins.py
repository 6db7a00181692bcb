"""Joins of a practice swarm that cannot work: dead and wrong peers, servers with damaged data, full disks."""

import hashlib
import json
import socket
from contextlib import contextmanager

from english import in_english
from manifests import PEER
from refusals import homes_with_past
from skep.adapters.storage.settings_file import SettingsFile
from skep.core.project.shards import shard_name
from web_of_faults import FaultyServer, silent, whole

WORKER = 30
"""Seconds until a worker on a busy computer requests data or peers, at most."""
ADDED = r"projects/practice/project\.json|identities/practice-[0-9a-f]{16}\.key"
"""What a join of the practice swarm adds to a home before it fails."""
CACHED = rf"{ADDED}|cache/[0-9a-f]{{64}}\.safetensors"
"""The same, if data was received."""

NOBODY = PEER.rpartition("/")[2]
DEAD = f"/ip4/127.0.0.1/tcp/1/p2p/{NOBODY}"


@contextmanager
def mute():
    """The address of a peer that neither accepts nor refuses a connection, as behind a firewall that drops packets."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        for guest in (first, second):
            guest.setblocking(False)
            guest.connect_ex(full.getsockname())
        yield f"/ip4/127.0.0.1/tcp/{full.getsockname()[1]}/p2p/{NOBODY}"


@contextmanager
def no_peer():
    """The address of a server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"/ip4/127.0.0.1/tcp/{server.getsockname()[1]}/p2p/{NOBODY}"


def another_identity(address):
    return f"{address.rpartition('/')[0]}/{NOBODY}"


def truncated(body):
    def act(handler):
        handler.head(200, Content_Length=len(body))
        handler.wfile.write(body[: len(body) // 2])
        handler.close_connection = True

    return act


@contextmanager
def spoilt_shards(practice, act_for):
    """The manifest's data entry of a server with the practice swarm's index; `act_for` makes the answer for a shard."""
    raw = (practice.served / "index.json").read_bytes()
    index = json.loads(raw)
    with FaultyServer() as server:
        server.scripts["index.json"] = [whole(raw)]
        for shard in (*index["shards"], *index["held_out"]):
            name = shard_name(shard["sha256"])
            server.scripts[name] = [act_for((practice.served / name).read_bytes())]
        yield {"index": f"{server.address}/index.json", "sha256": hashlib.sha256(raw).hexdigest()}


@contextmanager
def spoilt_index(raw, act):
    with FaultyServer() as server:
        server.scripts["index.json"] = [act]
        yield {"index": f"{server.address}/index.json", "sha256": hashlib.sha256(raw).hexdigest()}


HUGE = json.dumps(
    {
        "format": 1,
        "sequence_length": 128,
        "vocabulary": 256,
        "shards": [{"sha256": "0" * 64, "bytes": 4 * 128 * 262_144, "samples": 262_144}],
    }
).encode()


class Joins:
    """Joins that fail; each has its own homes."""

    def __init__(self, practice, past, folder):
        self._practice, self._past, self._folder = practice, past, folder

    def _refused(self, name, *said, within, may_keep=ADDED, settings=None, for_person=False, **changes):
        folder = self._folder / name
        homes = homes_with_past(self._past, folder)
        homes = homes if for_person else homes.for_program()
        for home in homes:
            SettingsFile(home.settings_file).save(settings or {})
        manifest = self._practice.publish(folder, **changes)
        told = homes.refused("join", manifest, code=1, within=within, may_keep=may_keep)
        assert all(words in in_english(told.title) for words in said), in_english(told.title)
        assert told.events[-1]["event"] == "left"
        assert told.events[-1]["totals"]["confirmed"] == {"contributions": 0, "samples": 0}

    def dead_peers(self):
        with mute() as address:
            silent = f"{address.split('/')[4]} did not answer within 5 s"
            said = ("127.0.0.1:1 refuses the connection", silent)
            dead = [DEAD, address]
            self._refused("dead_peers", *said, within=WORKER + 15, may_keep=CACHED, for_person=True, peers=dead)

    def other_peers(self):
        with no_peer() as address:
            peers = [address, another_identity(self._practice.seeds()[0])]
            said = ("is not the seed peer", address.split("/")[4])
            self._refused("other_peers", *said, within=WORKER + 15, may_keep=CACHED, peers=peers)

    def wrong_shards(self):
        with spoilt_shards(self._practice, lambda body: whole(bytes(len(body)))) as data:
            self._refused("wrong_shards", "does not match its hash", within=WORKER, data=data)

    def truncated_shards(self):
        keeps_parts = rf"{ADDED}|cache/[0-9a-f]{{64}}\.safetensors\.part"
        with spoilt_shards(self._practice, truncated) as data:
            self._refused("truncated_shards", "was interrupted", within=WORKER + 30, may_keep=keeps_parts, data=data)

    def silent_shards(self):
        with spoilt_shards(self._practice, lambda _: silent) as data:
            self._refused("silent_shards", "does not answer", within=WORKER + 30, data=data)

    def silent_index(self):
        with spoilt_index(b"", silent) as data:
            self._refused("silent_index", "does not answer", within=30, data=data)

    def wrong_index(self):
        with spoilt_index(b"{}", whole(b"[]")) as data:
            self._refused("wrong_index", "does not match its hash", within=30, data=data)

    def no_data_server(self):
        data = {"index": "http://127.0.0.1:1/index.json", "sha256": "0" * 64}
        self._refused("no_data_server", "127.0.0.1:1 cannot be reached", within=30, data=data)

    def full_disk(self):
        settings = {"disk.keep_free_gb": 10_000.0}
        self._refused("full_disk", "must stay free", within=WORKER, settings=settings)

    def small_cache(self):
        with spoilt_index(HUGE, whole(HUGE)) as data:
            settings = {"disk.cache_gb": 0.1}
            self._refused("small_cache", "more than the cache limit", within=WORKER, settings=settings, data=data)
