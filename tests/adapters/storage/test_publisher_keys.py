import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from english import in_english, raises
from fakes import FakeSecrets
from skep.adapters.storage.publisher_keys import PublisherKeys
from skep.adapters.storage.secrets import HomeSecrets
from skep.core.errors import BadInput, SecretsError, StorageError
from skep.core.text import NOTHING, verbatim


@pytest.fixture
def ring():
    return FakeSecrets()


@pytest.fixture
def keys(tmp_path, ring):
    return PublisherKeys(tmp_path / "keys", HomeSecrets(ring, FakeSecrets()))


def test_a_new_key_is_found_listed_and_signs(keys, tmp_path):
    made = keys.new("mine", in_file=False)
    assert keys.find("mine") == made
    assert keys.all() == [made]
    assert keys.private(made).public_key().public_bytes_raw() == made.public
    assert not keys.is_in_file(made)
    assert [path.name for path in (tmp_path / "keys").iterdir()] == ["mine.pub"]


def test_a_key_can_be_kept_in_a_file(keys):
    assert keys.is_in_file(keys.new("mine", in_file=True))


def test_a_key_is_never_overwritten_even_when_its_public_part_is_lost(keys, tmp_path):
    keys.new("mine", in_file=False)
    for _ in range(2):
        with raises(BadInput, match="There is already a key called mine"):
            keys.new("mine", in_file=False)
        (tmp_path / "keys" / "mine.pub").unlink(missing_ok=True)


def test_a_name_that_is_none_is_refused(keys):
    with raises(BadInput, match="A key's name must be 1 to 40"):
        keys.new("../mine", in_file=False)


def test_an_unknown_key_is_named_with_the_known_ones(keys):
    with pytest.raises(BadInput) as raised:
        keys.find("mine")
    assert "skep key new" in in_english(raised.value.hint)
    keys.new("other", in_file=False)
    with pytest.raises(BadInput) as raised:
        keys.find("mine")
    assert in_english(raised.value.hint) == "The known ones are: other."


def test_when_the_keyring_does_not_take_it_nothing_is_kept(keys, ring, tmp_path):
    ring.failing = SecretsError(verbatim("The keyring is locked."), NOTHING)
    with pytest.raises(SecretsError):
        keys.new("mine", in_file=False)
    assert not (tmp_path / "keys").exists()


def test_when_the_public_part_cannot_be_written_nothing_is_kept(ring, tmp_path):
    (tmp_path / "file").write_text("")
    with raises(StorageError, match="public key cannot be written"):
        PublisherKeys(tmp_path / "file", HomeSecrets(ring, FakeSecrets())).new("mine", in_file=False)
    assert ring.kept == {}


@pytest.mark.parametrize(
    "secret",
    [
        None,
        "rubbish!",
        pytest.param(base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()), id="another key"),
    ],
)
def test_a_private_part_that_is_gone_or_another_keys_is_said(keys, ring, secret):
    made = keys.new("mine", in_file=False)
    (name,) = ring.kept
    ring.kept = {} if secret is None else {name: secret if isinstance(secret, str) else secret.decode()}
    with raises(SecretsError, match="is no longer in the keyring"):
        keys.private(made)


def test_a_deleted_key_is_gone(keys, ring):
    keys.new("mine", in_file=False)
    keys.delete("mine")
    assert (keys.all(), ring.kept) == ([], {})
    with pytest.raises(BadInput):
        keys.delete("mine")


def test_a_damaged_public_part_is_said_and_key_files_are_left_alone(keys, tmp_path):
    keys.new("mine", in_file=False)
    (tmp_path / "keys" / "publisher.key.pub").write_text("of a key file\n")
    assert [key.name for key in keys.all()] == ["mine"]
    (tmp_path / "keys" / "mine.pub").write_text("rubbish")
    with raises(StorageError, match=r"mine\.pub in the keys' folder is damaged"):
        keys.all()
