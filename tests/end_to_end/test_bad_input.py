"""Every kind of invalid input to skep, each through the command line, with text output and with --json."""

import base64
import json
import shutil
import socket
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from english import in_english
from failing_joins import DEAD, WORKER, spoilt_index
from manifests import changed, signed
from refusals import Homes, homes_with_past, make_past
from skep.adapters.storage import signing
from skep.adapters.storage.settings_file import SettingsFile
from skep.core.project.fields import key_text
from skep.host.server.file_server import serving
from web_of_faults import FaultyServer, whole

EXAMPLE_ADDED = r"projects/tiny-code-lm/project\.json"
EXAMPLE_STARTED = rf"{EXAMPLE_ADDED}|identities/tiny-code-lm-[0-9a-f]{{16}}\.key"


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    return make_past(tmp_path_factory.mktemp("past"))


@pytest.fixture
def homes(tmp_path, past):
    return homes_with_past(past, tmp_path)


# --- manifests


def unsigned(manifest):
    signing.signature_path(manifest).unlink()


def tampered(manifest):
    manifest.write_text(manifest.read_text().replace("Tiny code model", "Tiny evil model"))


def oversized(manifest):
    manifest.write_text(manifest.read_text() + " " * 70_000)


def sign_anything(manifest, key):
    """Sign without a check of the contents, as another program might."""
    private = Ed25519PrivateKey.from_private_bytes(base64.b64decode(key.read_text()))
    signature = base64.b64encode(private.sign(signing.PREFIX + manifest.read_bytes())).decode()
    body = {"format": 1, "key": key_text(private.public_key().public_bytes_raw()), "signature": signature}
    signing.signature_path(manifest).write_text(json.dumps(body))


def rewritten(**changes):
    def spoil(manifest):
        body = json.loads(manifest.read_text())
        manifest.write_text(json.dumps(changed(body, **changes)))
        sign_anything(manifest, manifest.with_name("publisher.key"))

    return spoil


def signed_by_another(manifest):
    signing.make_key(manifest.with_name("other.key"))
    sign_anything(manifest, manifest.with_name("other.key"))


def no_manifest(manifest):
    manifest.write_text("[]")
    sign_anything(manifest, manifest.with_name("publisher.key"))


YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
SPOILT = {
    "missing": (lambda manifest: manifest.unlink(), "no manifest"),
    "unsigned": (unsigned, "not signed"),
    "tampered": (tampered, "does not match its signature"),
    "signed by another": (signed_by_another, "another key"),
    "expired": (rewritten(expires=YESTERDAY), "expired"),
    "oversized": (oversized, "larger than 64 KiB"),
    "flags that mistrain": (rewritten(sync__delay_state_averaging=False), "delay_state_averaging"),
    "flags of a later version": (rewritten(sync__mode="local"), "sync.mode"),
    "signed, but none": (no_manifest, "not a JSON object"),
}


WAYS_IN = {"unsigned", "tampered", "signed by another", "expired"}


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.way_in] if name in WAYS_IN else [])
        for name, case in SPOILT.items()
    ],
)
def test_a_manifest_that_is_no_good_is_refused_and_not_kept(homes, tmp_path, spoil, word):
    manifest = signed(tmp_path)
    spoil(manifest)
    assert word in homes.refused("join", str(manifest), code=2).title


def test_a_manifest_on_the_web_is_refused_like_one_in_a_file(homes, tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    oversized(signed(folder, name="big.json"))
    unsigned(signed(folder, name="unsigned.json"))
    with serving(folder) as server:
        for name, word in (("none", "does not have the manifest"), ("big", "larger than"), ("unsigned", "signature")):
            assert word in in_english(homes.refused("join", f"{server}/{name}.json", code=2).title)
    assert "cannot be reached" in in_english(homes.refused("join", f"{server}/none.json", code=2).title)


def test_a_model_that_is_too_big_is_refused_before_anything_is_downloaded(homes, tmp_path):
    with FaultyServer() as server:
        manifest = signed(
            tmp_path,
            data__index=f"{server.address}/index.json",
            recipe__model__layers=128,
            recipe__model__heads=64,
            recipe__model__width=16384,
        )
        refusal = homes.refused("join", str(manifest), code=1, may_keep=EXAMPLE_ADDED)
        assert in_english(refusal.title).startswith("Too big: needs")
        assert not server.asked


@pytest.mark.parametrize("verb", [("join",), ("project", "show"), ("project", "verify")], ids=" ".join)
def test_an_unknown_project_is_named_with_the_known_ones(homes, verb):
    refusal = homes.refused(*verb, "nobody-knows-it", code=2)
    assert "nobody-knows-it" in in_english(refusal.title)
    assert "other" in in_english(refusal.hint)


# --- the home


@pytest.mark.parametrize("verb", [("status",), ("pause",), ("resume",), ("share", "50"), ("leave",)], ids=" ".join)
def test_without_a_running_skep_there_is_nobody_to_ask(homes, verb):
    assert "No skep is running" in in_english(homes.refused(*verb, code=1).title)


def write(name, content):
    def damage(home):
        (home.root / name).write_text(content)

    return damage


def folder_for_file(name):
    def damage(home):
        (home.root / name).unlink(missing_ok=True)
        (home.root / name).mkdir()

    return damage


def file_for_folder(name):
    def damage(home):
        shutil.rmtree(home.root / name, ignore_errors=True)
        (home.root / name).write_text("")

    return damage


ONE_SHARD = {
    "format": 1,
    "sequence_length": 256,
    "vocabulary": 256,
    "shards": [{"sha256": "0" * 64, "bytes": 2 * 256 * 64 + 96, "samples": 64}],
}
DAMAGED = {
    "settings": (write("settings.toml", "[compute\nthreads = 1"), "settings.toml is damaged in line 1", 2),
    "a setting": (write("settings.toml", "[compute]\nshare_away = 400"), "settings.toml, line 2", 2),
    "settings a folder": (folder_for_file("settings.toml"), "settings.toml cannot be read", 1),
    "ledger a folder": (folder_for_file("ledger.sqlite"), "ledger.sqlite cannot be opened", 1),
    "identities a file": (file_for_folder("identities"), "identities cannot be used", 1),
    "projects a file": (file_for_folder("projects"), "projects", 1),
    "lock a folder": (folder_for_file("lock"), "lock cannot be opened", 1),
    "cache a file": (file_for_folder("cache"), "cannot be stored in", 1),
}


START_MENDS = ("settings",)


@pytest.mark.parametrize(
    ("damage", "word", "code"),
    [case for name, case in DAMAGED.items() if name not in START_MENDS],
    ids=[name for name in DAMAGED if name not in START_MENDS],
)
def test_a_damaged_home_is_named_and_left_as_it_is(homes, tmp_path, damage, word, code):
    for home in homes:
        damage(home)
    index = json.dumps(ONE_SHARD).encode()
    with spoilt_index(index, whole(index)) as data:
        manifest = signed(tmp_path, data__index=data["index"], data__sha256=data["sha256"], peers=[DEAD])
        refusal = homes.refused("join", str(manifest), code=code, within=2 * WORKER, may_keep=EXAMPLE_STARTED)
    assert word in in_english(refusal.title)


@pytest.mark.parametrize(
    ("arguments", "damage", "word", "code"),
    [
        (("settings", "set", "compute.threads", "2"), *DAMAGED["settings"]),
        (("stats",), write("ledger.sqlite", "no ledger"), "ledger.sqlite is damaged", 2),
        (("identity",), write("identity.key", "no key"), "identity.key with this computer's identity is damaged", 2),
        (("projects",), *DAMAGED["projects a file"]),
    ],
    ids=["settings", "stats", "identity", "projects"],
)
def test_the_verb_that_needs_what_is_damaged_says_so(homes, arguments, damage, word, code):
    for home in homes:
        damage(home)
    assert word in in_english(homes.refused(*arguments, code=code).title)


def test_a_home_that_cannot_be_a_folder_is_bad_input(homes, tmp_path):
    person, program = homes.person.settings_file, homes.program.settings_file
    in_the_way = (Homes(person, program), Homes(person / "below", program / "below"))
    for verb in (("join", "x"), ("status",), ("settings",), ("practice",)):
        for home in in_the_way:
            assert "a file with that name" in in_english(home.told(*verb, code=2).title)
    too_long = tmp_path / ("long" * 99)
    assert "too long" in in_english(Homes(too_long, too_long).told("status", code=2).title)


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


def test_a_practice_port_in_use_is_named(homes, taken):
    assert f"Port {taken}" in in_english(homes.refused("practice", "--port", taken, code=2).title)


def test_a_port_in_use_is_named_before_anything_is_downloaded(homes, tmp_path, taken):
    for home in homes:
        SettingsFile(home.settings_file).save({"network.port": int(taken)})
    with FaultyServer() as server:
        manifest = signed(tmp_path, data__index=f"{server.address}/index.json", peers=[DEAD])
        assert f"Port {taken}" in homes.refused("join", str(manifest), code=2, may_keep=EXAMPLE_ADDED).title
        assert not server.asked
