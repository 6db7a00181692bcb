"""A project for invited computers, from the publisher's key to two volunteers that average, with a real keyring."""

import contextlib
import json
import os
import pty
import shutil
import stat
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from invitations import identity
from keyrings import PASSWORD, Session, lacking, need
from skep.adapters.storage.paths import Home
from skep.host.practice.swarm import SEQUENCE_LENGTH, practice_manifest
from skep.host.server.file_server import serving
from skep.host.server.peer_process import PeerProcess
from skep.host.shards.dataset import build_shards, library_sources
from terminals import JOIN_SECONDS, SKEP, Running, is_event

NOBODY = "/ip4/127.0.0.1/tcp/1/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N"
QUICK = 60
ROUND_SECONDS = 240


@pytest.fixture(scope="module", autouse=True)  # otherwise a test would start it, and it would end with that test
def session(tmp_path_factory):
    """A desktop session with an unlocked keyring."""
    if lacking():
        yield None
        return
    with contextlib.closing(Session(tmp_path_factory.mktemp("s"))) as made:
        made.start_keyring(PASSWORD)
        yield made


@pytest.fixture
def locked_session(tmp_path_factory):
    """A desktop session with a locked keyring."""
    need()
    with contextlib.closing(Session(tmp_path_factory.mktemp("l"))) as made:
        made.end(made.start_keyring(PASSWORD))
        made.start_keyring()
        yield made


class Computer:
    """A home in a desktop session."""

    def __init__(self, folder, session):
        need()
        self.folder, self.session = folder, session
        self.home = Home(folder / "home")
        self.home.create()

    def run(self, *arguments, **options):
        return subprocess.run(
            [*SKEP, "--home", str(self.home.root), *arguments],
            capture_output=True,
            text=True,
            timeout=QUICK,
            check=False,
            cwd=self.folder,
            env={**os.environ, **self.session.environ, "COLUMNS": "200"},
            **options,
        )

    def told(self, *arguments):
        """The verb's JSON output."""
        done = self.run("--json", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def refused(self, *arguments, code=2):
        """The error message of a verb that fails."""
        done = self.run(*arguments)
        assert done.returncode == code, done.stderr
        assert done.stdout == ""
        title, hint = done.stderr.splitlines()
        assert title.endswith(".")
        assert hint.endswith(".")
        assert "Traceback" not in done.stderr
        return title


@pytest.fixture
def computer(tmp_path, session):
    def make(name):
        (tmp_path / name).mkdir()
        return Computer(tmp_path / name, session)

    return make


def publish(publisher, key, *, peers=(NOBODY,), index="http://127.0.0.1:9/index.json", sha256="0" * 64, **changes):
    """A manifest signed with the publisher's stored key."""
    body = practice_manifest(
        revision=1, publisher_key=key, peers=peers, index_address=index, index_sha256=sha256, now=datetime.now(UTC)
    )
    body |= {"membership": "invited", "id": "invited", "title": "Invited only"}
    body["sync"] |= changes
    manifest = publisher.folder / "invited.json"
    manifest.write_text(json.dumps(body))
    assert publisher.run("project", "sign", str(manifest)).returncode == 0
    return str(manifest)


# --- a keyring that does not open


def test_with_a_locked_keyring_nothing_is_kept_without_consent_and_with_it_a_private_file(locked_session, tmp_path):
    computer = Computer(tmp_path, locked_session)
    assert computer.refused("key", "new", code=1) == "The keyring is locked."
    assert not computer.home.secrets_folder.exists()
    assert not computer.home.keys_folder.exists()
    assert computer.told("key", "new", "--unencrypted-file")["kept"] == "file"
    (path,) = computer.home.secrets_folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    manifest = publish(computer, computer.told("key", "show")["key"])
    computer.told("project", "add", manifest)
    assert computer.refused("join", "invited", code=1) == "The keyring is locked."
    peer = computer.told("identity")["peer_id"]
    given = computer.folder / computer.told("project", "invite", manifest, "--peer", peer, "--days", "1")["path"]
    assert computer.refused("project", "accept", str(given), code=1) == "The keyring is locked."
    computer.told("project", "accept", str(given), "--unencrypted-file")
    assert len(computer.told("project", "invitations")["invitations"]) == 1


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("", 1), ("y", 0)])
def test_a_person_at_a_terminal_is_asked_and_only_a_yes_is_consent(locked_session, tmp_path, answer, code):
    computer = Computer(tmp_path, locked_session)
    terminal, end = pty.openpty()
    try:
        os.write(terminal, f"{answer}\n".encode())
        done = computer.run("key", "new", stdin=end)
    finally:
        os.close(terminal)
        os.close(end)
    assert done.returncode == code, done.stderr
    assert "unencrypted file that only you can read instead? [y/N]" in done.stderr
    assert computer.home.secrets_folder.exists() is (code == 0)


# --- in a swarm


@pytest.mark.way_in
def test_a_revoked_computer_is_told_so_at_its_next_start_and_leaves_for_good(computer, tmp_path):
    publisher, volunteer = computer("publisher"), computer("volunteer")
    served = tmp_path / "served"
    _, sha256, _ = build_shards(
        library_sources(),
        served,
        sequence_length=SEQUENCE_LENGTH,
        samples_per_shard=64,
        max_shards=1,
        held_out_samples=8,
    )
    key = publisher.told("key", "new")["key"]
    with serving(served) as address:
        manifest = publish(publisher, key, index=f"{address}/index.json", sha256=sha256)
        volunteer.told("project", "add", manifest)
        peer = volunteer.told("identity")["peer_id"]
        made = publisher.told("project", "invite", manifest, "--peer", peer, "--days", "1")
        volunteer.told("project", "accept", str(publisher.folder / made["path"]))
        listed = served / "invited.revoked.json"
        revoked = publisher.told("project", "revoke", manifest, "--peer", peer, "--list", str(listed))
        assert revoked["address"] == f"{address}/invited.revoked.json"
        assert [each["peer"] for each in revoked["revoked"]] == [peer]
        said = "The publisher has revoked this computer's invitation to Invited only, so the swarm does not answer it."
        assert said in volunteer.run("join", "invited").stderr  # by the list that is fetched
        listed.unlink()
        assert said in volunteer.run("join", "invited").stderr  # by the list that was kept


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A file server with shards; the address and hash of their index."""
    folder = tmp_path_factory.mktemp("data")
    _, sha256, _ = build_shards(
        library_sources(),
        folder,
        sequence_length=SEQUENCE_LENGTH,
        samples_per_shard=1024,
        max_shards=4,
        held_out_samples=64,
    )
    with serving(folder) as address:
        yield {"index": f"{address}/index.json", "sha256": sha256}


@pytest.fixture
def seed(tmp_path):
    """Starts an invited seed peer; returns its addresses."""
    started = []

    def start(manifest, invitation, who):
        arguments = ["--identity", str(who.path), "--manifest", manifest, "--invitation", invitation]
        started.append(PeerProcess(arguments, tmp_path / "seed.log"))
        return started[-1].start()

    yield start
    for process in started:
        process.end()


@pytest.fixture
def private_sockets(monkeypatch):
    from hivemind.p2p import P2P  # noqa: PLC0415 - takes seconds; only for the test that needs it

    folder = Path(tempfile.mkdtemp(prefix="s-"))  # short: unix socket paths end at 108 characters
    monkeypatch.setattr(P2P, "_UNIX_SOCKET_PREFIX", f"/unix{folder}/h-")
    yield
    shutil.rmtree(folder)


@pytest.fixture
def join():
    started = []

    def start(computer):
        started.append(Running(computer.home.root, "join", "invited", **computer.session.environ))
        return started[-1]

    yield start
    for running in started:
        running.finish()


@pytest.mark.long
def test_two_invited_volunteers_average_through_an_invited_seed(computer, tmp_path, data, seed, join, private_sockets):
    from strangers import REFUSED, strange  # noqa: PLC0415 - as above

    publisher = computer("publisher")
    key = publisher.told("key", "new")["key"]
    plan = {"target_batch_size": 256, **data}
    draft = publish(publisher, key, **plan)
    who = identity(tmp_path, "seed")
    invitation = str(tmp_path / "seed.invitation")
    publisher.told(
        *("project", "invite", draft, "--peer", who.peer_id, "--days", "30", "--role", "seed", "--out", invitation)
    )
    manifest = publish(publisher, key, peers=seed(draft, invitation, who), **plan)
    volunteers = [computer("first"), computer("second")]
    for each in volunteers:
        each.told("project", "add", manifest)
        made = publisher.told(
            *("project", "invite", manifest, "--peer", each.told("identity")["peer_id"], "--days", "1")
        )
        each.told("project", "accept", str(publisher.folder / made["path"]))
    running = [join(each) for each in volunteers]
    for each in running:
        each.wait_for(is_event("joined"), JOIN_SECONDS)
    for each in running:
        each.wait_for(is_event("contribution", state="confirmed"), ROUND_SECONDS)
    (door,) = [event["addresses"] for event in running[0].named("joined")]
    run_id = volunteers[0].told("project", "show", "invited")["run_id"]
    assert strange(identity(tmp_path, "stranger"), door, run_id) == (REFUSED,) * 4 + (0,)
