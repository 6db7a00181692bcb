"""What the composition root passes to the adapters."""

from __future__ import annotations

import stat
import sys
import time

import pytest

from english import in_english, raises
from manifests import raw
from skep import bootstrap, senses
from skep.adapters.net import shards_http
from skep.adapters.packs.laying import RECORD
from skep.adapters.process import programs, worker
from skep.adapters.storage.paths import Home
from skep.core.errors import DamagedFile, StorageError, UpdateError
from skep.core.record.contributions import Contribution, ContributionState
from skep.core.session import messages as m
from skep.recipes.registry import parse_manifest
from small_disks import filled, small_disk

OTHER_KEY = f"ed25519:{'B' * 42}A="
PEER = "p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"


def test_the_limits_of_the_disk_may_change_while_skep_runs(home, monkeypatch):
    given = {}
    made = shards_http.HttpShards
    monkeypatch.setattr(
        shards_http, "HttpShards", lambda *folders, **more: given.update(more) or made(*folders, **more)
    )
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


def test_each_open_project_knows_this_computer_by_another_identity_and_those_by_invitation_by_one(home):
    def known(**changes):
        return bootstrap.identity_in(home, parse_manifest(raw(**changes))).peer_id

    alone, another = known(id="one"), known(id="another")
    invited = {known(id=name, membership=kind) for name in ("one", "third") for kind in ("invited", "moderated")}
    assert invited == {bootstrap.identity(home).peer_id}
    assert len({alone, another, *invited}) == 3
    assert (alone, another) == (known(id="one"), known(id="another"))
    assert stat.S_IMODE(home.identities_folder.stat().st_mode) == 0o700
    (file,) = home.identities_folder.glob("one-*.key")
    file.unlink()
    assert known(id="one") != alone
    (file,) = home.identities_folder.glob("another-*.key")
    file.write_bytes(b"no key")
    with raises(DamagedFile, match=f"{file.name} with this computer's identity is damaged"):
        known(id="another")
    assert known(id="another", publisher__key=OTHER_KEY) != another
    assert known(id="one", membership="invited") in invited


def test_a_folder_of_identities_that_cannot_be_made_is_said(home):
    home.identities_folder.write_bytes(b"")
    with raises(StorageError, match="identities cannot be used"):
        bootstrap.identity_in(home, parse_manifest(raw()))


def test_on_a_full_disk_it_starts_says_what_is_not_kept_and_keeps_it_when_there_is_room(tmp_path, monkeypatch):
    monkeypatch.setattr(senses, "for_engine", lambda *_: [])
    with small_disk(tmp_path / "disk", 2048) as disk:
        home, said = Home(disk), []
        assert bootstrap.identity(home).peer_id
        with bootstrap.ledger(home) as ledger:
            ledger.record("p", Contribution("a", 1, 64, ContributionState.PENDING))
        with filled(disk), bootstrap.hold(home) as mended, bootstrap.build(home, mended=mended) as engine:
            engine.observe(lambda message, _: said.append(message) if isinstance(message, m.ProblemArose) else None)
            engine.start()
            deadline = time.monotonic() + 30
            while len(said) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert {in_english(each.problem.title).partition(":")[0] for each in said} == {
                "Other terminals cannot connect",
                "The disk is full",
            }
            (disk / "ballast").write_bytes(b"")
            while time.monotonic() < deadline:
                with bootstrap.ledger(home) as ledger:
                    if not ledger.pending("p"):
                        break
                time.sleep(0.1)
            engine.post(m.Quit())
            assert engine.join(10)
        with bootstrap.ledger(home) as ledger:
            assert [each.state for each in ledger.contributions()] == [ContributionState.LOST]


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


def lay_pack(home, name):
    folder = home.packs_folder / "laid" / name
    folder.mkdir(parents=True)
    (folder / RECORD).write_text("{}")
    return folder


def test_the_current_pack_is_given_to_what_computes(home, monkeypatch):
    assert bootstrap.pack(home) is None, "this interpreter has a training stack"
    # only a frozen program has none
    monkeypatch.setattr(programs, "has_own_stack", lambda: False)
    with raises(UpdateError, match="No compute pack is installed"):
        bootstrap.pack(home)
    one, other = lay_pack(home, "cpu-1"), lay_pack(home, "cpu-2")
    (home.packs_folder / "current").symlink_to("laid/cpu-1")
    assert bootstrap.pack(home) == one
    monkeypatch.setattr(sys, "path", [str(other), *sys.path])
    assert bootstrap.pack(home) == other, "what was started with a pack starts others with it"


def test_a_worker_is_started_with_the_pack_of_that_moment(home, monkeypatch):
    given = {}
    made = worker.WorkerProcess
    monkeypatch.setattr(worker, "WorkerProcess", lambda post, **more: given.update(more) or made(post, **more))
    monkeypatch.setattr(programs, "has_own_stack", lambda: False)
    monkeypatch.setattr(senses, "for_engine", lambda *_: [])
    lay_pack(home, "cpu-1")
    for packed, found in ((None, home.packs_folder / "laid/cpu-1"), (lambda: home.root, home.root)):
        with bootstrap.hold(home), bootstrap.build(home, packed=packed) as engine:
            engine.start()
            try:
                (home.packs_folder / "current").unlink(missing_ok=True)
                (home.packs_folder / "current").symlink_to("laid/cpu-1")
                assert given["pack"]() == found
            finally:
                engine.post(m.Quit())
                assert engine.join(10)
