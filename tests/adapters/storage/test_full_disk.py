"""A disk that is full or read-only at each kind of write but the ledger's: one sentence, and nothing half written."""

import re

import pytest

from downloads import make_shard
from english import in_english
from manifests import signed
from skep.adapters.net.catalogue import FileCatalogue
from skep.adapters.net.control_socket import ControlServer
from skep.adapters.process.single_instance import instance_lock
from skep.adapters.storage.identity import FileIdentity
from skep.adapters.storage.logs import open_log
from skep.adapters.storage.paths import Home
from skep.adapters.storage.publisher_keys import PublisherKeys
from skep.adapters.storage.secrets import FileSecrets, HomeSecrets
from skep.adapters.storage.settings_file import PauseFile, SettingsFile
from skep.adapters.storage.shard_cache import PartFile, ShardCache
from skep.core.errors import StorageError
from skep.services import diagnosis
from small_disks import filled, read_only, small_disk

RAW, SHARD = make_shard(size=100_000)


@pytest.fixture
def home(tmp_path):
    with small_disk(tmp_path / "disk", 2048) as disk:
        yield Home(disk)


@pytest.fixture
def manifest(tmp_path):
    return signed(tmp_path)


def cached(home):
    return ShardCache(
        home.cache_folder, limit_bytes=lambda: 10**9, keep_free_bytes=lambda: 0, free_space=lambda _: 10**9
    )


def download(home):
    cache = cached(home)
    with cache.room(SHARD):
        with PartFile(cache.part(SHARD), SHARD.bytes) as part:
            part.restart()
            part.write(RAW)
        return cache.keep(SHARD)


def listen(home):
    with ControlServer(home.control_file, dict):
        pass


def lock(home):
    with instance_lock(home.lock_file):
        pass


def new_key(home):
    PublisherKeys(home.keys_folder, HomeSecrets(None, FileSecrets(home.secrets_folder))).new("mine", in_file=True)


WRITES = {
    "settings": lambda home, _: SettingsFile(home.settings_file).save({"compute.threads": 2}),
    "pause": lambda home, _: PauseFile(home.pause_file).save(paused=True, until=2e9),
    "identity": lambda home, _: FileIdentity(home.identity_file, home.peer_id_file).path,
    "invitation": lambda home, _: FileSecrets(home.secrets_folder).put("invitation to tiny", "{}"),
    "publisher's key": lambda home, _: new_key(home),
    "catalogue": lambda home, manifest: FileCatalogue(home.projects_folder).add(str(manifest)),
    "shard": lambda home, _: download(home),
    "export": lambda home, _: diagnosis.keep(home.root / "stats.csv", "a,b\n"),
    "control": lambda home, _: listen(home),
    "lock": lambda home, _: lock(home),
}
UNHINDERED = {("lock", filled)}
"""What needs no room."""
HINDRANCES = {"full": (filled, "No space left|disk is full"), "read-only": (read_only, "Read-only file system")}


def files(home):
    return {
        str(path.relative_to(home.root)): path.read_bytes()
        for path in home.root.rglob("*")
        if path.is_file() and path.name not in ("ballast", "lock")
    }


@pytest.mark.parametrize(("hindrance", "reason"), HINDRANCES.values(), ids=HINDRANCES)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_is_refused_in_one_sentence_and_done_when_it_can_be(home, manifest, write, hindrance, reason):
    (home.root / "stats.csv").write_text("older\n")
    home.settings_file.write_text("[compute]\nthreads = 1\n")
    before = files(home)
    with hindrance(home.root):
        if (write, hindrance) in UNHINDERED:
            WRITES[write](home, manifest)
        else:
            with pytest.raises(StorageError) as caught:
                WRITES[write](home, manifest)
            assert re.search(reason, in_english(caught.value.title))
            assert in_english(caught.value.hint)
        assert {name: raw for name, raw in files(home).items() if raw or name in before} == before
    WRITES[write](home, manifest)
    assert not [path for path in home.root.rglob(".*") if path.is_file()]  # no temporary file


@pytest.mark.parametrize("hindrance", [filled, read_only])
def test_an_identity_that_cannot_be_renewed_stays(home, hindrance):
    before = FileIdentity(home.identity_file, home.peer_id_file).peer_id
    with hindrance(home.root):
        with pytest.raises(StorageError):
            FileIdentity(home.identity_file, home.peer_id_file).renew()
        assert FileIdentity(home.identity_file, home.peer_id_file).peer_id == before
    aside = FileIdentity(home.identity_file, home.peer_id_file).renew()
    assert FileIdentity(aside).peer_id == before != FileIdentity(home.identity_file, home.peer_id_file).peer_id


@pytest.mark.parametrize("hindrance", [filled, read_only])
def test_what_cannot_be_logged_stops_nothing(home, hindrance, capfd):
    log = open_log(home.logs_folder, "skep")
    log.info("before")
    with hindrance(home.root):
        log.info("meanwhile")
    log.info("after")
    text = (home.logs_folder / "skep.log").read_text()
    assert "before" in text
    assert "after" in text
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("hindrance", [filled, read_only])
def test_what_is_here_already_can_be_used(home, manifest, hindrance):
    catalogue = FileCatalogue(home.projects_folder)
    known = catalogue.add(str(manifest))
    path = download(home)
    with hindrance(home.root):
        assert catalogue.add(str(manifest)) == known
        assert cached(home).find(SHARD) == path
