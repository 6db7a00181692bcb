"""Updates of the portable folder from a real TUF repository over HTTP, with faults of servers and power cuts."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
import release_repo

from english import in_english, raises
from skep.adapters.process.portable_folder import PortableFolder
from skep.adapters.process.programs import PROGRAM, VERSIONS
from skep.core.errors import StorageError, UpdateError
from skep.core.releases import archive_name
from skep.services import updating
from update_server import PASSPHRASE, lay_app, lay_version, pack, starts, update_server

KILLS = 20
NOBODY = 65534


@pytest.fixture
def server(tmp_path):
    with update_server(tmp_path) as serving:
        yield serving


@pytest.fixture
def app(tmp_path):
    return lay_app(tmp_path / "unpacked", "0.1.0")


@pytest.fixture
def published(server, tmp_path):
    """The server has 0.2.0."""
    notes = tmp_path / "notes.txt"
    notes.write_text("Joins faster.")
    done = server.publish(pack(tmp_path, "0.2.0"), "--notes", notes)
    assert done.returncode == 0, done.stderr
    return server


def install(updates):
    found = updates.look()
    assert updates.install(found.release, nobody, nobody)
    return found


def nobody(_came, _of):
    return True


def told(to):
    def hear(*figures):
        to.append(figures)
        return True

    return hear


def test_a_newer_version_is_found_fetched_checked_and_started_next(published, home, app):
    updates = published.updates(home, app, "0.1.0")
    found = updates.look_when_due()
    assert (found.release.version, found.release.notes, found.installs) == ("0.2.0", "Joins faster.", True)
    assert updates.look_when_due() is None, "a day has not passed"
    fetched, unpacked = [], []
    assert updates.install(found.release, told(fetched), told(unpacked))
    assert fetched[-1][0] == fetched[-1][1] > 0
    assert unpacked[-1] == (found.release.unpacked, found.release.unpacked)
    assert starts(app) == "skep 0.2.0"
    assert (updates.version, updates.previous) == ("0.2.0", "0.1.0")
    # the running program still has its files
    assert (app / VERSIONS / "0.1.0" / PROGRAM).exists()
    assert updates.look() is None
    assert not list(home.updates_folder.glob("*.xz"))
    assert home.updates_folder.stat().st_mode & 0o077 == 0


def look_another_day(updates, home):
    memory = home.updates_folder / "memory.json"
    body = json.loads(memory.read_text())
    memory.write_text(json.dumps(body | {"checked": "2026-01-01T00:00:00+00:00"}))
    return updates.look_when_due()


@pytest.mark.parametrize("damage", [b"{", b'{"checked": "\xff"}', b'{"x":' + b"[" * 100_000])
def test_if_the_last_look_cannot_be_read_there_is_one_more(published, home, app, damage):
    home.updates_folder.mkdir(parents=True, exist_ok=True)
    (home.updates_folder / "memory.json").write_bytes(damage)
    assert published.updates(home, app, "0.1.0").look_when_due().release.version == "0.2.0"


def test_one_can_go_back_and_is_not_asked_for_that_version_again(published, home, app, tmp_path):
    updates = published.updates(home, app, "0.1.0")
    install(updates)
    after = published.updates(home, app, "0.2.0")
    assert after.go_back() == "0.1.0"
    assert starts(app) == "skep 0.1.0"
    back = published.updates(home, app, "0.1.0")
    assert look_another_day(back, home) is None
    assert back.look().release.version == "0.2.0", "it is there for whoever asks"
    published.publish(pack(tmp_path, "0.3.0"))
    assert look_another_day(back, home).release.version == "0.3.0"
    install(back)
    assert starts(app) == "skep 0.3.0"


@pytest.mark.way_in
def test_nothing_older_is_installed(published, home, app):
    found = published.updates(home, app, "0.1.0").look()
    newer = lay_app(app.parent.with_name("newer"), "0.9.0")
    updates = published.updates(home, newer, "0.9.0")
    assert updates.look() is None
    with raises(UpdateError, match=r"0\.2\.0 is not newer than 0\.9\.0"):
        updates.install(found.release, nobody, nobody)
    with raises(UpdateError, match="no earlier version"):
        updates.go_back()


@pytest.mark.way_in
def test_a_server_that_shows_an_older_list_is_not_believed(published, home, app, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(published.folder, old)
    published.publish(pack(tmp_path, "0.3.0"))
    updates = published.updates(home, app, "0.1.0")
    assert updates.look().release.version == "0.3.0"
    shutil.rmtree(published.folder / "metadata")
    shutil.copytree(old / "metadata", published.folder / "metadata")
    with raises(UpdateError, match="not signed correctly"):
        updates.look()


@pytest.mark.way_in
def test_nothing_that_was_changed_on_the_way_is_used(published, home, app):
    updates = published.updates(home, app, "0.1.0")
    found = updates.look()
    archive = next((published.folder / "targets").glob("*.xz"))
    raw = bytearray(archive.read_bytes())
    raw[len(raw) // 2] ^= 1
    archive.write_bytes(raw)
    with raises(UpdateError, match="not signed correctly"):
        updates.install(found.release, nobody, nobody)
    archive.write_bytes(bytes(raw) + b"more")
    with pytest.raises(UpdateError):
        updates.install(found.release, nobody, nobody)
    archive.unlink()
    with raises(UpdateError, match="cannot be reached, or a file is missing"):
        updates.install(found.release, nobody, nobody)
    assert starts(app) == "skep 0.1.0"
    notice = next((published.folder / "targets").glob("*.json"))
    notice.write_text(notice.read_text().replace("0.2.0", "0.9.0"))
    with raises(UpdateError, match="not signed"):
        updates.look()


@pytest.mark.way_in
@pytest.mark.parametrize("name", ["timestamp.json", "*.snapshot.json", "*.targets.json"])
def test_a_list_without_signatures_is_not_believed(published, home, app, name):
    (file,) = (published.folder / "metadata").glob(name)
    body = json.loads(file.read_text())
    body["signatures"] = []
    file.write_text(json.dumps(body))
    with raises(UpdateError, match="not signed correctly"):
        published.updates(home, app, "0.1.0").look()


@pytest.mark.way_in
def test_another_root_vouches_for_nothing(published, home, app, tmp_path):
    (tmp_path / "other").mkdir()
    with update_server(tmp_path / "other") as other:
        other.publish(pack(tmp_path / "other", "0.2.0"))
        other.folder, published.folder = published.folder, other.folder
        with raises(UpdateError, match="not signed correctly"):
            published.updates(home, app, "0.1.0").look()


@pytest.mark.way_in
def test_a_list_that_nobody_renewed_is_not_used_and_renewing_mends_it(published, home, app, monkeypatch):
    keys = release_repo.Keys(published.keys, PASSPHRASE)
    monkeypatch.setitem(release_repo.VALID, "timestamp", timedelta(seconds=-1))
    release_repo.Repository(published.folder, keys).sign()
    updates = published.updates(home, app, "0.1.0")
    with raises(UpdateError, match="out of date"):
        updates.look()
    assert published.publish("--renew").returncode == 0
    assert updates.look().release.version == "0.2.0"


def test_a_new_root_is_followed_by_whoever_has_the_first(published, home, app, monkeypatch):
    keys = release_repo.Keys(published.keys, PASSPHRASE)
    monkeypatch.setattr(release_repo, "RENEW_ROOT", timedelta(days=4 * 365))
    release_repo.Repository(published.folder, keys).sign()
    assert (published.folder / "metadata" / "2.root.json").exists()
    assert published.updates(home, app, "0.1.0").look().release.version == "0.2.0"


def test_where_no_server_answers_one_sentence_says_so(home, app, tmp_path):
    with update_server(tmp_path) as server:
        server.publish(pack(tmp_path, "0.2.0"))
    updates = server.updates(home, app, "0.1.0")
    with raises(UpdateError, match="cannot be reached") as refused:
        updates.look()
    assert "continues with this version" in in_english(refused.value.hint)
    assert not (home.updates_folder / "memory.json").exists(), "it is looked again soon"


def test_a_computer_of_another_kind_finds_nothing(published, home, app, monkeypatch):
    monkeypatch.setattr(updating, "this_kind", lambda: ("linux", "riscv64"))
    assert published.updates(home, app, "0.1.0").look() is None


def test_the_app_alone_and_the_whole_each_find_their_own_archive(published, home, app, tmp_path, monkeypatch):
    system, machine = updating.this_kind()
    archive = pack(tmp_path, "0.3.0").rename(tmp_path / archive_name("0.3.0", f"app-{system}", machine))
    assert published.publish(archive).returncode == 0
    assert published.updates(home, app, "0.1.0").look().release.version == "0.2.0"
    monkeypatch.setattr(updating, "has_own_stack", lambda: False)
    found = published.updates(home, app, "0.1.0").look()
    assert (found.release.version, found.release.archive) == ("0.3.0", archive.name)
    assert published.updates(home, app, "0.1.0").install(found.release, nobody, nobody)
    assert starts(app) == "skep 0.3.0"


def test_what_the_system_installed_is_only_told_of(published, home):
    updates = published.updates(home, None, "0.1.0")
    found = updates.look()
    assert not found.installs
    with raises(UpdateError, match="does not install its own updates"):
        updates.install(found.release, nobody, nobody)


def test_a_skep_without_a_place_for_updates_looks_nowhere(home):
    updates = updating.updates(home)
    assert updates.lacking
    assert updates.look_when_due() is None
    with raises(UpdateError, match="the way it was installed"):
        updates.look()


def test_a_version_that_does_not_start_here_is_not_installed(server, home, app, tmp_path):
    server.publish(pack(tmp_path, "0.2.0", said="0.1.9"))
    with raises(UpdateError, match="does not start on this computer"):
        install(server.updates(home, app, "0.1.0"))
    assert starts(app) == "skep 0.1.0"
    assert sorted(each.name for each in (app / VERSIONS).iterdir() if not each.name.startswith(".")) == ["0.1.0"]


def test_a_full_disk_is_said_before_anything_is_unpacked(published, home, app):
    updates = published.updates(home, app, "0.1.0")
    updates.keep_free = lambda: 1e9
    with raises(StorageError, match="not enough space"):
        install(updates)
    assert starts(app) == "skep 0.1.0"


@pytest.mark.parametrize("stage", [0, 1])
def test_it_is_cancelled_at_once_and_nothing_is_changed(published, home, app, stage):
    updates = published.updates(home, app, "0.1.0")
    found = updates.look()
    hears = [nobody, nobody]
    hears[stage] = lambda _came, _of: False
    assert not updates.install(found.release, *hears)
    assert starts(app) == "skep 0.1.0"
    # it can be started again
    install(updates)
    updates.stop()
    assert updates.look() is None


def test_only_one_updates_at_a_time(published, home, app):
    updates = published.updates(home, app, "0.1.0")
    found = updates.look()

    def meanwhile(_came, _of):
        with raises(UpdateError, match="being updated already"):
            PortableFolder(app, "0.1.0").go_back()
        return True

    updates.install(found.release, nobody, meanwhile)
    assert starts(app) == "skep 0.2.0"


@pytest.mark.way_in
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *product(["../../evil", "usr/../../../evil"], ["REGTYPE", "SYMTYPE", "LNKTYPE"]),
        *product(["/evil"], ["SYMTYPE", "LNKTYPE"]),  # of a file the slash is removed
    ],
)
def test_an_archive_that_reaches_outside_is_refused_even_when_it_is_signed(app, tmp_path, name, kind):
    staging = lay_app(tmp_path / "staging", "0.2.0")
    archive = tmp_path / "made.tar.xz"
    code = f"""
        import tarfile, io
        with tarfile.open({str(archive)!r}, "w:xz") as made:
            made.add({str(staging)!r}, "skep.AppDir")
            if {kind!r} == "REGTYPE":
                member = tarfile.TarInfo("skep.AppDir/versions/0.2.0/" + {name!r})
                member.size = 4
                made.addfile(member, io.BytesIO(b"evil"))
            else:
                link = tarfile.TarInfo("skep.AppDir/versions/0.2.0/link")
                link.type, link.linkname = tarfile.{kind}, {name!r}
                made.addfile(link)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    with raises(UpdateError, match="never contain"):
        PortableFolder(app, "0.1.0").install(archive, "0.2.0", 10**6, 0)
    assert starts(app) == "skep 0.1.0"
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.way_in
def test_an_archive_larger_than_its_publisher_stated_is_not_unpacked_further(app, tmp_path):
    staging = lay_app(tmp_path / "staging", "0.2.0")
    (staging / "versions" / "0.2.0" / "zeros").write_bytes(bytes(5_000_000))  # some hundred bytes in the archive
    archive = tmp_path / "made.tar.xz"
    subprocess.run(
        ["tar", "-C", staging.parent, "-cJf", archive, "--transform", f"s/^{staging.name}/skep.AppDir/", staging.name],
        check=True,
    )
    largest = []
    with raises(UpdateError, match="larger than its publisher stated"):
        PortableFolder(app, "0.1.0").install(archive, "0.2.0", 1_000_000, 0, lambda came, _: largest.append(came))
    assert max(largest, default=0) <= 1_000_000
    assert starts(app) == "skep 0.1.0"
    PortableFolder(app, "0.1.0").install(archive, "0.2.0", 10_000_000, 0)
    assert starts(app) == "skep 0.2.0"


def test_a_folder_that_is_not_ours_to_change_is_said(app):
    (app / VERSIONS).chmod(0o555)
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        refused = in_english(PortableFolder(app, "0.1.0").refused)
    finally:
        os.seteuid(before)
        (app / VERSIONS).chmod(0o755)
    assert str(app) in refused


def test_tidying_leaves_what_starts_what_can_be_gone_back_to_and_what_runs(published, home, app):
    updates = published.updates(home, app, "0.1.0")
    install(updates)
    for name in ("0.0.7", ".incoming", ".dying-0.0.6"):
        lay_version(app / VERSIONS, name)
    lay_version(app / VERSIONS, "0.0.9")
    (app / ".link-current").symlink_to("nowhere")
    running = PortableFolder(app, "0.0.9")
    running.tidy()
    running.tidy()
    names = {each.name for each in (app / VERSIONS).iterdir()}
    assert names == {"0.1.0", "0.2.0", "0.0.9", ".lock"}
    assert not (app / ".link-current").is_symlink()


INSTALL = """
import sys
from pathlib import Path
from skep.adapters.process.portable_folder import PortableFolder
PortableFolder(Path(sys.argv[1]), "0.1.0").install(Path(sys.argv[2]), sys.argv[3], 10**8, 0)
"""


def interrupted(app, archive, version, rounds, chance):
    """Kill an installation at a random moment, `rounds` times; returns how often each version started afterwards."""
    seen = {}
    longest = None  # of the fastest that was not killed: a busy moment would make all later kills come too late
    while sum(seen.values()) < rounds:
        began = time.monotonic()
        child = subprocess.Popen([sys.executable, "-c", INSTALL, app, archive, version])
        try:
            child.wait(None if longest is None else chance.uniform(0.3 * longest, 1.05 * longest))
            took = time.monotonic() - began
            longest = min(longest or took, took)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
        said = starts(app)
        seen[said] = seen.get(said, 0) + 1
        # as a user would: run the version that starts, and try again
        folder = PortableFolder(app, "0.1.0")
        folder.tidy()
        assert starts(app) == said
        if folder.current == version:
            folder.go_back()
    return seen


def test_an_update_killed_at_any_instant_leaves_a_skep_that_starts(app, tmp_path):
    chance = random.Random(7)
    archive = pack(tmp_path, "0.2.0", ballast=400)
    seen = interrupted(app, archive, "0.2.0", KILLS, chance)
    assert set(seen) == {"skep 0.1.0", "skep 0.2.0"}
    PortableFolder(app, "0.1.0").install(archive, "0.2.0", 10**8, 0)
    assert starts(app) == "skep 0.2.0"


def test_the_publisher_is_told_in_a_sentence_what_is_wrong(server, tmp_path):
    wrong = tmp_path / "skep.zip"
    wrong.write_bytes(b"")
    for arguments, options, words in (
        ((wrong,), {}, "is not named as `make package` names"),
        ((tmp_path / "skep-0.2.0-linux-x86_64.tar.xz",), {}, "No such file"),
        (("--renew",), {"passphrase": ""}, "set SKEP_RELEASE_PASSPHRASE"),
    ):
        done = server.publish(*arguments, **options)
        assert done.returncode == 2
        assert words in done.stderr
        assert "Traceback" not in done.stderr
    assert server.publish("--renew").returncode == 0
    done = server.publish("--renew", passphrase="another")
    assert "cannot be opened with the passphrase" in done.stderr


def test_private_keys_are_encrypted_and_private(published):
    for file in published.keys.iterdir():
        assert file.stat().st_mode & 0o077 == 0
        assert b"ENCRYPTED" in file.read_bytes()


def test_signatures_end_after_the_next_renewal_is_due(published):
    for file in (published.folder / "metadata").glob("*.json"):
        expires = datetime.fromisoformat(json.loads(file.read_text())["signed"]["expires"])
        assert expires > datetime.now(UTC) + timedelta(days=30)
