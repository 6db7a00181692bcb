"""What the composition root passes to the adapters."""

from __future__ import annotations

import time

import pytest

from skep import bootstrap, senses
from skep.adapters.net import shards_http
from skep.core.session import messages as m

PEER = "p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"


def test_the_limits_of_the_disk_may_change_while_skep_runs(home, monkeypatch):
    given = {}
    made = shards_http.HttpShards
    monkeypatch.setattr(shards_http, "HttpShards", lambda folder, **more: given.update(more) or made(folder, **more))
    monkeypatch.setattr(senses, "for_engine", lambda *_: [])
    with bootstrap.hold(home), bootstrap.build(home) as engine:
        engine.start()
        try:
            assert (given["limit_bytes"](), given["keep_free_bytes"]()) == (10 * bootstrap.GB, 5 * bootstrap.GB)
            engine.post(m.ChangeSettings({"disk.cache_gb": 0.5, "disk.keep_free_gb": 2.0}))
            deadline = time.monotonic() + 10
            while engine.snapshot.settings["disk.cache_gb"] != 0.5 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert (given["limit_bytes"](), given["keep_free_bytes"]()) == (bootstrap.GB // 2, 2 * bootstrap.GB)
        finally:
            engine.post(m.Quit())
            assert engine.join(10)


@pytest.mark.parametrize(
    ("peers", "listen"),
    [
        ((f"/ip4/127.0.0.1/tcp/1/{PEER}", f"/ip6/::1/tcp/1/{PEER}", f"/dns4/localhost/tcp/1/{PEER}"), "127.0.0.1"),
        ((f"/ip6/0:0:0:0:0:0:0:1/tcp/1/{PEER}",), "127.0.0.1"),
        ((f"/ip4/127.0.0.1/tcp/1/{PEER}", f"/ip4/203.0.113.7/tcp/1/{PEER}"), "0.0.0.0"),
        ((f"/dns4/localhost.example/tcp/1/{PEER}",), "0.0.0.0"),
        ((), "0.0.0.0"),
    ],
)
def test_it_listens_on_loopback_only_for_a_swarm_on_this_computer(peers, listen):
    assert bootstrap.listen_host(peers) == listen
