"""The identity's file: two starts at the same time, permissions, full disks, foreign keys."""

import resource
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from english import in_english, raises
from skep.adapters.storage.identity import FileIdentity
from skep.core.errors import DamagedFile, StorageError
from skep.core.project.addresses import protobuf_key

RACERS = 6


@pytest.fixture
def file(tmp_path):
    return tmp_path / "identity"


@contextmanager
def tiny_disk():
    """Limits every file to a few bytes, as on a nearly full disk; pytest's output too, so use it briefly."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_starts_at_the_same_time_end_with_one_identity(file):
    barrier = threading.Barrier(RACERS)

    def first_start(_racer):
        barrier.wait(20)
        return FileIdentity(file).peer_id

    with ThreadPoolExecutor(RACERS) as pool:
        told = set(pool.map(first_start, range(RACERS)))
    assert told == {FileIdentity(file).peer_id}
    assert list(file.parent.iterdir()) == [file]


def test_a_start_that_was_too_slow_takes_the_others_key(file):
    other = FileIdentity(file).peer_id
    late = FileIdentity(file)
    late._make()  # as if the file was created after the check for it
    assert late.peer_id == other
    assert list(file.parent.iterdir()) == [file]


def test_nothing_is_made_before_it_is_asked_for(file):
    FileIdentity(file)
    assert not file.exists()


def test_a_key_that_others_could_read_is_closed_again(file):
    before = FileIdentity(file).peer_id
    file.chmod(0o644)
    assert FileIdentity(file).peer_id == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_key_its_owner_may_only_read_stays_so(file):
    FileIdentity(file).path.chmod(0o400)
    assert stat.S_IMODE(FileIdentity(file).path.stat().st_mode) == 0o400


def test_a_full_disk_is_told_and_leaves_nothing(file):
    with tiny_disk(), raises(StorageError, match="cannot be read or written") as caught:
        _ = FileIdentity(file).path
    assert "free disk space" in in_english(caught.value.hint)
    assert list(file.parent.iterdir()) == []


def test_a_damaged_key_is_told_before_its_path_is_handed_on(file):
    file.write_bytes(b"half a k")
    with raises(StorageError, match="is damaged") as caught:
        _ = FileIdentity(file).path
    assert "backup" in in_english(caught.value.hint)


def test_a_folder_in_its_place_is_told(file):
    file.mkdir()
    with raises(StorageError, match="cannot be read or written"):
        _ = FileIdentity(file).peer_id


def test_a_key_of_another_kind_is_damaged(file):
    der = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(protobuf_key(der))
    with raises(StorageError, match="is damaged"):
        _ = FileIdentity(file).peer_id


def test_a_key_that_is_lost_is_told_and_a_new_one_is_made_on_request_only(tmp_path, file):
    note = tmp_path / "note"
    identity = FileIdentity(file, note)
    before = identity.peer_id
    assert note.read_text() == before
    file.unlink()
    with raises(DamagedFile, match="identity is missing") as caught:
        _ = FileIdentity(file, note).path
    assert "skep identity --new" in in_english(caught.value.hint)
    assert not file.exists()
    assert identity.renew() is None
    assert FileIdentity(file, note).peer_id == note.read_text() != before


def test_a_damaged_key_is_kept_when_a_new_one_is_made(tmp_path, file):
    identity = FileIdentity(file, tmp_path / "note")
    before = identity.peer_id
    file.write_bytes(b"")
    with raises(DamagedFile, match="is damaged") as caught:
        _ = identity.path
    assert "skep identity --new" in in_english(caught.value.hint)
    aside = identity.renew()
    assert aside.read_bytes() == b""
    assert identity.peer_id != before


def test_a_key_is_used_although_its_peer_id_cannot_be_noted(tmp_path, file):
    before = FileIdentity(file).peer_id
    (tmp_path / "note").mkdir()
    assert FileIdentity(file, tmp_path / "note").peer_id == before


def test_a_key_from_a_backup_is_taken(tmp_path, file):
    other = FileIdentity(tmp_path / "other").peer_id
    note = tmp_path / "note"
    assert FileIdentity(file, note).peer_id != other
    (tmp_path / "other").replace(file)
    assert FileIdentity(file, note).peer_id == other == note.read_text()


def test_the_front_end_needs_no_hivemind_for_it():
    told = subprocess.run(
        [sys.executable, "-c", "import sys, skep.adapters.storage.identity; print('hivemind' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert told.stdout.strip() == "False"
