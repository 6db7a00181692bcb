"""A manual pause in its file."""

import pytest

from english import raises
from skep.adapters.storage.settings_file import PauseFile
from skep.core.errors import StorageError


@pytest.fixture
def pauses(home):
    return PauseFile(home.pause_file)


def test_another_life_finds_the_pause(home, pauses):
    pauses.save(paused=True, until=1234.5)
    assert PauseFile(home.pause_file).load() == (True, 1234.5)


def test_the_file_is_for_this_user_only(home, pauses):
    pauses.save(paused=True, until=None)
    assert home.pause_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"until": "soon"}', b'{"until": NaN}', b'{"until": true}', b"\xff", b"[" * 100_000]
)
def test_a_damaged_file_is_a_pause_without_an_end(home, pauses, content):
    home.pause_file.write_bytes(content)
    assert pauses.load() == (True, None)


def test_what_cannot_be_written_is_said(home, pauses):
    home.root.rename(home.root.with_name("elsewhere"))
    with raises(StorageError, match=r"The pause cannot be stored in .*/pause\.json: No such file"):
        pauses.save(paused=True, until=None)


def test_what_cannot_be_read_is_said(home, pauses):
    home.pause_file.mkdir()
    with raises(StorageError, match="cannot be read"):
        pauses.load()
