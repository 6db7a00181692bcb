import contextlib
import hashlib

import pytest

from downloads import LENGTH, QUICK, ROOMY, make_index, make_shard
from skep.adapters.net.shards_http import HttpShards
from skep.core.project.addresses import Reach
from skep.core.project.data import TextLayout
from tls import behind_tls
from web_of_faults import FaultyServer, whole


@pytest.fixture
def server():
    with FaultyServer() as made:
        yield made


@pytest.fixture
def https_server(server, tmp_path):
    """The same server with TLS: its address, and the path of its certificate."""
    return behind_tls(server, tmp_path)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "home" / "cache"


@pytest.fixture
def make_shards(server, cache):
    """Creates HttpShards that have the address of the index."""
    with contextlib.ExitStack() as stack:

        def make(**options):
            shards = HttpShards(cache, cache.parent / "notes", **(ROOMY | {"patience": QUICK} | options))
            stack.callback(shards.close)
            raw = make_index(make_shard()[1])
            server.scripts["index.json"] = [whole(raw)]
            downloads, digest = shards._downloads, hashlib.sha256(raw).hexdigest()
            web = downloads._webs[Reach.ANY]
            downloads._fetch_index(web, f"{server.address}/index.json", digest, TextLayout(LENGTH, 256))
            server.asked.clear()
            return shards

        yield make
