"""The verbs for keys and invitations, called in this process, with a real keyring on a private bus."""

import contextlib
import json
from datetime import UTC, datetime, timedelta

import pytest

from invitations import Project, identity
from keyrings import PASSWORD, Session, lacking, look_again, need
from manifests import signed
from skep.adapters.storage import signing
from skep.adapters.storage.paths import Home
from skep.cli.application import main


@pytest.fixture(scope="module", autouse=True)  # otherwise a test would start it, and it would end with that test
def session(tmp_path_factory):
    if lacking():
        yield None
        return
    with contextlib.closing(Session(tmp_path_factory.mktemp("s"))) as made:
        made.start_keyring(PASSWORD)
        yield made


@pytest.fixture(autouse=True)
def in_session(session, monkeypatch, tmp_path):
    need()
    session.enter(monkeypatch)
    monkeypatch.chdir(tmp_path)
    yield
    look_again(monkeypatch)


@pytest.fixture
def computer(tmp_path, capsys):
    return lambda name: Computer(tmp_path / name, capsys)


class Computer:
    """A computer with its own home."""

    def __init__(self, root, capsys):
        self.home, self._capsys = Home(root), capsys

    def run(self, *arguments):
        code = main(["--home", str(self.home.root), *arguments], {"COLUMNS": "200"})
        return code, self._capsys.readouterr()

    def told(self, *arguments):
        """The verb's JSON output."""
        code, printed = self.run("--json", *arguments)
        assert code == 0, printed.err
        return json.loads(printed.out)

    def refused(self, *arguments, code=2):
        """The error message of a verb that fails."""
        ended, printed = self.run(*arguments)
        title, hint = printed.err.splitlines()
        assert (ended, printed.out) == (code, "")
        assert title.endswith(".")
        assert hint.endswith(".")
        return title

    def knows(self):
        return {str(path.relative_to(self.home.root)) for path in self.home.root.rglob("*")}


@pytest.fixture
def publisher(computer, tmp_path):
    """A computer with a key in the keyring and a project signed with it, at `manifest`."""
    made = computer("publisher")
    made.key = made.told("key", "new")
    made.manifest = str(signed(tmp_path, membership="invited"))
    body = json.loads((tmp_path / "manifest.json").read_text())
    body["publisher"]["key"] = made.key["key"]
    (tmp_path / "manifest.json").write_text(json.dumps(body))
    made.told("project", "sign", made.manifest)
    return made


def invite(publisher, peer, *more):
    path = publisher.told("project", "invite", publisher.manifest, "--peer", peer, "--days", "30", *more)["path"]
    return publisher.home.root.parent / path


def test_a_key_lies_in_the_keyring_and_only_its_public_part_on_the_disk(publisher):
    assert publisher.key["kept"] == "keyring"
    assert publisher.knows() == {"keys", "keys/publisher.pub"}
    assert publisher.told("key", "list")["keys"] == [publisher.key]
    assert publisher.told("key", "show") == publisher.key
    assert publisher.key["key"] in publisher.run("key", "show")[1].out
    assert "in the keyring" in publisher.run("key", "list")[1].out
    assert publisher.refused("key", "delete").startswith("Without the key publisher, nothing")
    publisher.told("key", "delete", "--yes")
    assert publisher.told("key", "list") == {"keys": []}


def test_a_project_is_signed_with_the_key_that_its_manifest_names(publisher, tmp_path):
    other = publisher.told("key", "new", "--name", "other")
    assert publisher.told("project", "verify", publisher.manifest)["fingerprint"] == publisher.key["fingerprint"]
    assert "another publisher's key than other" in publisher.refused(
        "project", "sign", publisher.manifest, "--key", "other"
    )
    text = (tmp_path / "manifest.json").read_text().replace(publisher.key["key"], other["key"])
    (tmp_path / "manifest.json").write_text(text)
    publisher.told("project", "sign", publisher.manifest)
    assert publisher.told("project", "verify", publisher.manifest)["fingerprint"] == other["fingerprint"]


def test_a_key_file_of_an_earlier_skep_goes_on_signing(computer, tmp_path):
    publisher = computer("publisher")
    manifest = signed(tmp_path, key=publisher.home.keys_folder / "publisher.key")
    signing.signature_path(manifest).unlink()
    publisher.told("project", "sign", str(manifest))
    publisher.told("project", "sign", str(manifest), "--key", str(publisher.home.keys_folder / "publisher.key"))
    assert publisher.told("project", "verify", str(manifest))["valid"]


def test_the_life_of_an_invitation(publisher, computer):
    volunteer = computer("volunteer")
    volunteer.told("project", "add", publisher.manifest)
    assert "invited computers only" in volunteer.run("project", "show", "tiny-code-lm")[1].out
    before = volunteer.knows()
    title = volunteer.refused("join", "tiny-code-lm")
    assert title == "Tiny code model is for invited computers only, and this one has no invitation to it."
    assert volunteer.knows() - before <= {"lock", "logs", "logs/skep.log"}  # no identity, no download, no worker

    peer = volunteer.told("identity")["peer_id"]
    given = str(invite(publisher, peer))
    assert "No invitations" in volunteer.run("project", "invitations")[1].out
    accepted = volunteer.told("project", "accept", given)
    assert (accepted["project"], accepted["peer"], accepted["role"]) == ("tiny-code-lm", peer, "trainer")
    assert volunteer.told("project", "invitations")["invitations"] == [accepted]
    assert "tiny-code-lm" in volunteer.run("project", "invitations")[1].out
    assert not volunteer.home.secrets_folder.exists()
    volunteer.told("project", "decline", "tiny-code-lm")
    assert volunteer.refused("project", "decline", "tiny-code-lm").startswith("There is no invitation")
    assert "no invitation" in volunteer.refused("join", "tiny-code-lm")


@pytest.mark.way_in
def test_what_is_wrong_with_an_invitation_is_one_sentence_and_nothing_is_kept(publisher, computer, tmp_path):
    volunteer = computer("volunteer")
    volunteer.told("project", "add", publisher.manifest)
    peer = volunteer.told("identity")["peer_id"]
    text = invite(publisher, peer).read_text()
    elsewhere = identity(tmp_path, "elsewhere").peer_id
    cases = {
        "changed after it was signed": text.replace("trainer", "seed"),
        "was changed": text.replace(peer, elsewhere),
        "roll is not a known field": text.replace('"role"', '"roll": 1, "role"'),
        "larger than 4 KiB": text + " " * 4096,
        "it is not JSON": "{",
        "for another computer": invite(publisher, elsewhere).read_text(),
        "not known here": Project(id="another").invite(peer),
        "signed with another key": Project().invite(peer),
    }
    for words, content in cases.items():
        (tmp_path / "given").write_text(content)
        assert words in volunteer.refused("project", "accept", str(tmp_path / "given"))
    assert "cannot be read" in volunteer.refused("project", "accept", str(tmp_path / "nowhere"))
    assert volunteer.told("project", "invitations") == {"invitations": []}


@pytest.mark.way_in
@pytest.mark.parametrize(("days", "words"), [(-5, "expired on"), (5, "not valid before")])
def test_an_invitation_out_of_its_time_is_refused_at_the_door_and_when_joining(
    publisher, computer, tmp_path, monkeypatch, days, words
):
    volunteer = computer("volunteer")
    volunteer.told("project", "add", publisher.manifest)
    peer = volunteer.told("identity")["peer_id"]
    now = datetime.now(UTC)

    class Elsewhen(datetime):
        @classmethod
        def now(cls, tz=None):
            return now + timedelta(days=days)

    with monkeypatch.context() as patch:
        patch.setattr("skep.cli.verbs.projects.datetime", Elsewhen)
        path = publisher.told("project", "invite", publisher.manifest, "--peer", peer, "--days", "4")["path"]
    assert words in volunteer.refused("project", "accept", str(tmp_path / path))
    with monkeypatch.context() as patch:
        patch.setattr("skep.adapters.storage.invitations.datetime", Elsewhen)
        volunteer.told("project", "accept", str(tmp_path / path))
    assert words in volunteer.refused("join", "tiny-code-lm")


def test_an_invitation_is_revoked_and_the_list_grows(publisher, computer, tmp_path):
    peers = [computer(name).told("identity")["peer_id"] for name in ("first", "second")]
    assert publisher.told("project", "revoked", publisher.manifest) == {"project": "tiny-code-lm", "revoked": []}
    assert "No invitation is revoked" in publisher.run("project", "revoked", publisher.manifest)[1].out
    for number, peer in enumerate(peers):
        made = publisher.told("project", "revoke", publisher.manifest, "--peer", peer)
        assert made["address"] == "https://example.org/tiny/tiny-code-lm.revoked.json"
        assert [each["peer"] for each in made["revoked"]] == peers[: number + 1]
        assert (tmp_path / made["path"]).exists()
    assert publisher.told("project", "revoked", publisher.manifest)["revoked"] == made["revoked"]
    assert peers[1] in publisher.run("project", "revoked", publisher.manifest)[1].out
    said = publisher.run("project", "revoke", publisher.manifest, "--peer", peers[0], "--list", "other.json")[1].out
    assert f"{peers[0]} is revoked" in said
    assert "Put other.json at https://example.org/tiny/tiny-code-lm.revoked.json." in said


def test_what_is_wrong_with_a_revocation_is_one_sentence_and_nothing_is_written(publisher, computer, tmp_path):
    peer = computer("volunteer").told("identity")["peer_id"]
    ask = ("project", "revoke", publisher.manifest, "--peer")
    assert "not a peer id" in publisher.refused(*ask, "me")
    stranger = computer("stranger")
    stranger.told("key", "new", "--name", "mine")
    assert "not the key of the project's publisher" in stranger.refused(*ask, peer, "--key", "mine")
    listed = tmp_path / "tiny-code-lm.revoked.json"
    assert not listed.exists()
    listed.write_text("{")
    assert "is not valid: it is not JSON" in publisher.refused(*ask, peer)
    assert "is not valid: it is not JSON" in publisher.refused("project", "revoked", publisher.manifest)
    assert listed.read_text() == "{"


def test_what_a_publisher_gets_wrong_is_one_sentence(publisher, computer):
    peer = computer("volunteer").told("identity")["peer_id"]
    ask = ("project", "invite", publisher.manifest, "--peer")
    assert "not a peer id" in publisher.refused(*ask, "me", "--days", "3")
    assert "for 1 to 3650 days" in publisher.refused(*ask, peer, "--days", "4000")
    assert "cannot be written" in publisher.refused(*ask, peer, "--days", "3", "--out", "/proc/no/file", code=1)
    stranger = computer("stranger")
    assert "no key called publisher" in stranger.refused(*ask, peer, "--days", "3")
    stranger.told("key", "new", "--name", "mine")
    assert "not the key of the project's publisher" in stranger.refused(*ask, peer, "--days", "3", "--key", "mine")
