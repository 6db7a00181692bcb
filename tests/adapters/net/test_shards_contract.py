import hashlib

import pytest

import manifests
from contracts.shards_contract import ShardsContract
from downloads import LENGTH, QUICK, ROOMY, make_index, make_shard
from fakes import FakeShards, make_project
from fakes import make_index as make_fake_index
from skep.adapters.net.shards_http import HttpShards
from skep.core.project.shards import shard_name
from web_of_faults import missing, ranged, whole


class TestHttpShards(ShardsContract):
    @pytest.fixture
    def known(self, server):
        raw, shard = make_shard(1)
        server.scripts[shard_name(shard.sha256)] = [ranged(raw)]
        return shard

    @pytest.fixture
    def unknown(self, server):
        shard = make_shard(2)[1]
        server.scripts[shard_name(shard.sha256)] = [missing]
        return shard

    @pytest.fixture
    def project(self, server, known):
        raw = make_index(known)
        server.scripts["index.json"] = [whole(raw)]
        text = manifests.raw(
            data__index=f"{server.address}/index.json",
            data__sha256=hashlib.sha256(raw).hexdigest(),
            recipe__sequence_length=LENGTH,
        )
        return make_project(manifest=text)

    @pytest.fixture
    def shards(self, cache):
        made = HttpShards(cache, cache.parent / "notes", **ROOMY, patience=QUICK)
        yield made
        made.close()


class TestFakeShards(ShardsContract):
    @pytest.fixture
    def known(self):
        return make_fake_index().shards[0]

    @pytest.fixture
    def unknown(self):
        return make_fake_index().shards[1]

    @pytest.fixture
    def project(self):
        return make_project()

    @pytest.fixture
    def shards(self, unknown):
        return FakeShards(missing=frozenset({unknown.sha256}))
