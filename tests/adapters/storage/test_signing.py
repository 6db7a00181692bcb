import base64
import json
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from english import in_english, raises
from manifests import example, signed
from skep.adapters.storage import signing
from skep.core.errors import BadInput, ManifestError, StorageError
from skep.core.project.fields import key_text
from skep.core.project.manifest import fingerprint
from skep.recipes.registry import parse_manifest


@pytest.fixture
def manifest(tmp_path):
    return signed(tmp_path)


def test_a_signed_manifest_is_verified_and_read(manifest):
    raw, _, read = signing.load_verified(manifest)
    assert read == parse_manifest(raw)


def test_the_private_key_is_readable_by_its_owner_alone_and_never_replaced(tmp_path):
    path = tmp_path / "keys" / "mine.key"
    public = signing.make_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    said = path.with_name("mine.key.pub").read_text()
    assert said == f"{key_text(public)}\nfingerprint {fingerprint(public)}\n"
    with raises(BadInput, match="There is already a key at"):
        signing.make_key(path)
    assert signing.ensure_key(path) == public
    assert path.with_name("mine.key.pub").read_text() == said
    assert sorted(file.name for file in path.parent.iterdir()) == ["mine.key", "mine.key.pub"]


@pytest.fixture(scope="module")
def signed_once(tmp_path_factory):
    raw, signature_file, _ = signing.load_verified(signed(tmp_path_factory.mktemp("signed")))
    return raw, signature_file


@pytest.mark.way_in
@given(place=st.integers(min_value=0), byte=st.integers(0, 255))
def test_no_byte_of_a_manifest_can_change(signed_once, place, byte):
    raw, signature_file = signed_once
    at = place % len(raw)
    changed = raw[:at] + bytes([byte]) + raw[at + 1 :]
    if changed == raw:
        signing.check(changed, signature_file)
    else:
        with raises(ManifestError, match="does not match its signature"):
            signing.check(changed, signature_file)


@pytest.mark.way_in
@given(st.binary(max_size=300))
def test_any_bytes_as_a_signature_file_are_refused_in_a_sentence(signed_once, data):
    with pytest.raises(ManifestError) as refused:
        signing.check(signed_once[0], data)
    assert in_english(refused.value.title).endswith(".")


@pytest.mark.way_in
def test_a_changed_manifest_is_refused(manifest):
    manifest.write_bytes(manifest.read_bytes().replace(b"Tiny code", b"Evil code"))
    with raises(ManifestError, match="does not match its signature"):
        signing.load_verified(manifest)


@pytest.mark.way_in
def test_the_signature_is_verified_before_anything_is_parsed(manifest):
    manifest.write_bytes(b"not even JSON")
    with raises(ManifestError, match="does not match its signature"):
        signing.load_verified(manifest)


@pytest.mark.way_in
def test_a_signature_of_something_else_never_passes(tmp_path, manifest):
    private = signing.load_private(tmp_path / "publisher.key")
    unprefixed = base64.b64encode(private.sign(manifest.read_bytes())).decode()
    body = json.loads(signing.signature_path(manifest).read_text()) | {"signature": unprefixed}
    signing.signature_path(manifest).write_text(json.dumps(body))
    with raises(ManifestError, match="does not match its signature"):
        signing.load_verified(manifest)


@pytest.mark.way_in
def test_a_signature_by_another_key_than_the_publishers_is_refused(tmp_path, manifest):
    other = tmp_path / "other.key"
    public = signing.make_key(other)
    sign = signing.load_private(other).sign(signing.PREFIX + manifest.read_bytes())
    body = {"format": 1, "key": key_text(public), "signature": base64.b64encode(sign).decode()}
    signing.signature_path(manifest).write_text(json.dumps(body))
    with raises(ManifestError, match="signed with another key than its publisher's"):
        signing.load_verified(manifest)


@pytest.mark.way_in
def test_an_unsigned_manifest_is_refused(manifest):
    signing.signature_path(manifest).unlink()
    with raises(ManifestError, match=r"is not signed: there is no manifest\.json\.sig beside it"):
        signing.load_verified(manifest)


@pytest.mark.way_in
@pytest.mark.parametrize(
    ("body", "phrase"),
    [
        (b"", "it is not JSON"),
        (b"{}", "format is missing"),
        (b'{"format": 1, "key": "x", "signature": "y"}', "key must be"),
        (b" " * 5000, "larger than 4 KiB"),
    ],
)
def test_a_damaged_signature_file_is_refused(manifest, body, phrase):
    signing.signature_path(manifest).write_bytes(body)
    with raises(ManifestError, match=phrase):
        signing.load_verified(manifest)


def test_an_oversized_manifest_is_not_read_whole(manifest):
    manifest.write_bytes(b" " * (64 * 1024 + 1))
    with raises(ManifestError, match="larger than 64 KiB, so it is not a manifest"):
        signing.load_verified(manifest)


def test_a_missing_manifest_is_named(tmp_path):
    with raises(ManifestError, match=r"There is no manifest at .*nowhere\.json"):
        signing.load_verified(tmp_path / "nowhere.json")


def test_signing_checks_the_manifest_and_its_key(tmp_path):
    key = tmp_path / "publisher.key"
    signing.make_key(key)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(example()))
    with raises(ManifestError, match="names another publisher's key") as refused:
        signing.sign_manifest(path, key)
    assert "ed25519:" in in_english(refused.value.hint)
    path.write_text(json.dumps(example(revision=0)))
    with raises(ManifestError, match="revision must be"):
        signing.sign_manifest(path, key)


@pytest.mark.parametrize("content", [b"", b"!!", b"AAAA"])
def test_a_file_that_is_no_key_is_refused(tmp_path, manifest, content):
    bad = tmp_path / "bad.key"
    bad.write_bytes(content)
    with raises(BadInput, match="is not a key made by"):
        signing.sign_manifest(manifest, bad)


def test_a_missing_key_is_named(tmp_path, manifest):
    with raises(BadInput, match="There is no key at"):
        signing.sign_manifest(manifest, tmp_path / "nowhere.key")


def test_a_key_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with raises(StorageError, match="cannot be written"):
        signing.make_key(tmp_path / "file" / "mine.key")
