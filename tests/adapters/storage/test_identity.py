import stat

import pytest

from english import raises
from skep.adapters.storage.identity import FileIdentity, key_of
from skep.core.errors import StorageError
from skep.core.project.addresses import protobuf_key


def test_the_identity_is_made_once_and_kept_private(tmp_path):
    path = tmp_path / "identity"
    first = FileIdentity(path).peer_id
    assert first.startswith("Qm")
    assert len(first) == 46
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert FileIdentity(path).peer_id == first
    assert FileIdentity(path).path == path


def test_two_homes_have_two_identities(tmp_path):
    assert FileIdentity(tmp_path / "a").peer_id != FileIdentity(tmp_path / "b").peer_id


@pytest.mark.parametrize(
    "content", [b"", b"rubbish", b"\x08\x00\x12\x05abc", b"\x08\x00\x12\x03abc", b"\x08\x00\x12\xff"]
)
def test_a_damaged_identity_is_said_and_never_replaced(tmp_path, content):
    path = tmp_path / "identity"
    path.write_bytes(content)
    with raises(StorageError, match="is damaged"):
        FileIdentity(path).peer_id  # noqa: B018 - reading it is the test
    assert path.read_bytes() == content


def test_an_identity_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with raises(StorageError, match="cannot be read or written"):
        FileIdentity(tmp_path / "file" / "identity").peer_id  # noqa: B018 - as above


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 20_000])
def test_the_key_message_is_read_back(size):
    assert key_of(protobuf_key(b"k" * size)) == b"k" * size
