"""Secrets in a real GNOME Keyring on a private bus, in files, and in the fake; and keyrings that fail."""

import contextlib
import signal
import stat
import subprocess
import sys
import threading
import time

import keyring
import pytest

from contracts.secrets_contract import SecretsContract
from english import in_english, raises
from fakes import FakeSecrets
from keyrings import PASSWORD, Session, lacking, look_again, need
from skep.adapters.storage.secrets import FileSecrets, HomeSecrets, KeyringSecrets
from skep.core.errors import SecretsError, StorageError
from skep.core.text import NOTHING, verbatim

SECRET = "a very secret word"


@pytest.fixture(scope="module", autouse=True)  # otherwise a test would start it, and it would end with that test
def session(tmp_path_factory):
    if lacking():
        yield None
        return
    with contextlib.closing(Session(tmp_path_factory.mktemp("s"))) as made:
        made.daemon = made.start_keyring(PASSWORD)
        yield made


@pytest.fixture
def in_session(session, monkeypatch):
    need()
    session.enter(monkeypatch)
    yield session
    look_again(monkeypatch)


@pytest.fixture
def make_secrets(request, tmp_path):
    def make(kind):
        match kind:
            case "keyring":
                request.getfixturevalue("in_session")
                return KeyringSecrets(str(tmp_path))
            case "files":
                return FileSecrets(tmp_path / "secrets")
            case _:
                return FakeSecrets()

    return make


@pytest.fixture(params=["keyring", "files", "fake"])
def secrets(request, make_secrets):
    return make_secrets(request.param)


class TestSecrets(SecretsContract):
    pass


def test_two_homes_have_different_secrets_in_one_keyring(in_session, tmp_path):
    one, other = KeyringSecrets(str(tmp_path / "one")), KeyringSecrets(str(tmp_path / "other"))
    one.put("key", "first")
    other.put("key", "second")
    assert (one.get("key"), other.get("key")) == ("first", "second")


def test_a_keyring_that_hangs_is_given_up_in_time_and_in_words(in_session, tmp_path):
    secrets = KeyringSecrets(str(tmp_path), patience=1.0)
    KeyringSecrets(str(tmp_path)).get("warm")  # loads the library, so that the timeout measures the keyring only
    in_session.daemon.send_signal(signal.SIGSTOP)
    try:
        begun = time.monotonic()
        with raises(SecretsError, match=r"did not answer within 1 s\.") as raised:
            secrets.get("key")
        assert time.monotonic() - begun < 15
        assert "--unencrypted-file" in in_english(raised.value.hint)
    finally:
        in_session.daemon.send_signal(signal.SIGCONT)
        for thread in threading.enumerate():
            if thread.name == "keyring":
                thread.join(30)
    assert KeyringSecrets(str(tmp_path)).get("key") is None


def test_a_keyring_that_was_started_later_is_found(in_session, tmp_path, monkeypatch):
    secrets = KeyringSecrets(str(tmp_path))
    with monkeypatch.context() as before:
        before.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path / 'nothing'}")
        with raises(SecretsError, match="There is no keyring on this computer"):
            secrets.get("key")
    secrets.put("key", SECRET)
    assert secrets.get("key") == SECRET


def test_nothing_of_the_library_is_loaded_before_it_is_needed():
    ask = "import sys, skep.cli.application; sys.exit('keyring' in sys.modules or 'secretstorage' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", ask], check=False).returncode == 0


# --- backends that fail


class Locked:
    """Raises the keyring library's error for a locked keyring."""

    def get_password(self, service, account):
        raise keyring.errors.KeyringLocked("Failed to unlock the collection!")


class Broken:
    def get_password(self, service, account):
        raise OSError(f"no luck with {account}\nand more")


class Forgetful:
    def set_password(self, service, account, secret):
        pass

    def get_password(self, service, account):
        return None


@pytest.mark.parametrize(
    ("backend", "sentence"),
    [
        (Locked, "The keyring is locked."),
        (keyring.backends.fail.Keyring, "There is no keyring on this computer that skep can use."),
        (Broken, "The keyring refused the request: no luck with key in home."),
    ],
)
def test_a_keyring_that_fails_is_a_sentence_with_a_way_out(backend, sentence):
    with pytest.raises(SecretsError) as raised:
        KeyringSecrets("home", find=backend).get("key")
    assert in_english(raised.value.title) == sentence
    assert in_english(raised.value.hint).endswith("--unencrypted-file.")


def test_a_keyring_that_keeps_nothing_is_found_out():
    with raises(SecretsError, match="does not return it") as raised:
        KeyringSecrets("home", find=Forgetful).put("key", SECRET)
    assert SECRET not in in_english(raised.value.title) + in_english(raised.value.hint)


def test_the_null_keyring_is_not_taken_for_one(monkeypatch):
    look_again(monkeypatch)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    with raises(SecretsError, match="does not store secrets"):
        KeyringSecrets("home").put("key", SECRET)


# --- files


def test_a_secret_in_a_file_is_for_this_user_alone(tmp_path):
    FileSecrets(tmp_path / "secrets").put("key", SECRET)
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "secrets" / "key").stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["key"]


@pytest.mark.parametrize("call", [lambda s: s.get("key"), lambda s: s.put("key", SECRET), lambda s: s.delete("key")])
def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path, call):
    (tmp_path / "file").write_text("")
    with raises(StorageError, match=r"cannot be (read|written|removed)"):
        call(FileSecrets(tmp_path / "file"))


# --- a home's secrets


@pytest.fixture
def stores():
    return FakeSecrets(), FakeSecrets()


def test_nothing_goes_into_a_file_without_consent(stores):
    ring, files = stores
    ring.failing = SecretsError(verbatim("The keyring is locked."), NOTHING)
    with raises(SecretsError, match="locked"):
        HomeSecrets(ring, files).put("key", SECRET, in_file=False)
    assert files.kept == {}


def test_with_consent_it_goes_into_the_file_alone_and_is_found_without_the_keyring(stores):
    ring, files = stores
    home = HomeSecrets(ring, files)
    home.put("key", SECRET, in_file=True)
    assert (ring.kept, files.kept) == ({}, {"key": SECRET})
    assert home.is_in_file("key")
    ring.failing = SecretsError(verbatim("The keyring is locked."), NOTHING)
    assert home.get("key") == SECRET
    home.delete("key")
    assert files.kept == {}


def test_what_goes_into_the_keyring_leaves_no_file(stores):
    ring, files = stores
    home = HomeSecrets(ring, files)
    home.put("key", "earlier", in_file=True)
    home.put("key", SECRET, in_file=False)
    assert (ring.kept, files.kept) == ({"key": SECRET}, {})
    assert home.get("key") == SECRET
    home.delete("key")
    assert ring.kept == {}
