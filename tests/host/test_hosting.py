"""What `skep host` refuses before it starts anything, and what its parts serve. No peer runs here."""

import hashlib
import http.client
import socket
from contextlib import ExitStack, closing
from datetime import UTC, datetime

import pytest

from english import in_english, raises
from free_ports import free_port
from manifests import lora, raw, signed
from skep.adapters.process.single_instance import instance_lock
from skep.adapters.storage import invitations, signed_checkpoints, signing
from skep.cli.verbs.host import qr_code
from skep.core.errors import AlreadyRunning, BadInput, InvitationError, ManifestError, SkepError, StorageError
from skep.core.project import invitation, links, revocation, signed_checkpoint
from skep.core.project.signed_checkpoint import CheckpointFile
from skep.host.export import export, newest_checkpoint
from skep.host.server import hosting, seed
from skep.host.server.file_server import MOST_CONNECTIONS, MOST_OF_ONE, serving
from skep.host.server.folder import HostAddress, HostFolder, announced_addresses, check_named, seed_addresses
from skep.host.server.hosting import Hosting, check_invited
from skep.host.server.project_files import find_files, served_files
from skep.host.shards.dataset import build_shards
from skep.recipes.registry import parse_manifest
from terminals import skep

PEER_ID = "Qm" + "a" * 44


@pytest.fixture
def folder(tmp_path):
    made = HostFolder(tmp_path / "host")
    made.create()
    return made


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def free():
    return free_port()


@pytest.fixture
def data(tmp_path):
    text = tmp_path / "text"
    text.write_bytes(bytes(range(256)) * 40)
    _, sha256, index = build_shards(
        [text, text], tmp_path / "data", sequence_length=256, samples_per_shard=16, max_shards=1, held_out_samples=0
    )
    return tmp_path / "data", sha256, index


def refusal(folder, manifest, **changes):
    asked = Hosting(manifest, **({"address": HostAddress(31337, "127.0.0.1")} | changes))
    with pytest.raises(SkepError) as caught:
        hosting.run(asked, folder, lambda _: None, lambda: None)
    assert in_english(caught.value.title).endswith(".")
    assert in_english(caught.value.hint).endswith(".")
    return caught.value


def at(folder, port):
    return [f"/ip4/127.0.0.1/tcp/{port}/p2p/{folder.identity.peer_id}"]


@pytest.mark.way_in
def test_a_manifest_that_is_not_signed_or_has_expired_is_refused(folder, tmp_path):
    manifest = signed(tmp_path, expires="2026-01-01T00:00:00Z")
    assert "expired on 2026-01-01" in in_english(refusal(folder, manifest))
    manifest.with_name("manifest.json.sig").unlink()
    assert "is not signed" in in_english(refusal(folder, manifest))


def test_a_manifest_that_names_another_seed_is_told_what_to_put_into_it(folder, tmp_path):
    error = refusal(folder, signed(tmp_path))
    assert isinstance(error, ManifestError)
    assert f'Put "{at(folder, 31337)[0]}" into its peers' in in_english(error.hint)


def test_a_port_in_use_is_refused(folder, tmp_path, taken):
    manifest = signed(tmp_path, peers=at(folder, taken))
    assert "in use" in in_english(refusal(folder, manifest, address=HostAddress(taken)))


def test_a_second_host_in_one_home_is_refused(folder, tmp_path, free):
    manifest = signed(tmp_path, peers=at(folder, free))
    with instance_lock(folder.lock_file):
        assert isinstance(refusal(folder, manifest, address=HostAddress(free)), AlreadyRunning)


@pytest.mark.way_in
def test_data_that_is_not_the_manifests_is_refused(folder, tmp_path, free, data):
    shards, sha256, index = data
    address = {"address": HostAddress(free), "data": shards}
    other = signed(tmp_path, peers=at(folder, free))
    assert "is not the one that the manifest names" in in_english(refusal(folder, other, **address).title)
    ours = signed(tmp_path, peers=at(folder, free), data__sha256=sha256)
    assert "cannot be read" in in_english(refusal(folder, ours, address=HostAddress(free), data=tmp_path).title)
    next(shards.glob(f"{index.shards[0].sha256}*")).unlink()
    assert "is missing or does not have the size" in in_english(refusal(folder, ours, **address).title)


def test_a_web_port_in_use_is_refused(folder, tmp_path, free, taken, data):
    shards, sha256, _ = data
    manifest = signed(tmp_path, peers=at(folder, free), data__sha256=sha256)
    error = refusal(folder, manifest, address=HostAddress(free), data=shards, web=("127.0.0.1", taken))
    assert f"Port {taken} is in use" in in_english(error.title)


@pytest.mark.way_in
def test_only_what_is_listed_is_handed_out(tmp_path, data):
    shards, sha256, index = data
    (shards / "diary.txt").write_text("secret")
    path = signed(tmp_path, data__sha256=sha256)
    files = served_files(
        parse_manifest(path.read_bytes()), shards, path.name, path, path.with_name("manifest.json.sig")
    )
    names = {"manifest.json", "manifest.json.sig", "index.json", *(f"{s.sha256}.safetensors" for s in index.shards)}
    assert set(files) == names
    with serving(files) as server:
        answers = {name: ask(server, name) for name in (*names, "diary.txt", "..", "")}
    assert {name for name, (status, _) in answers.items() if status == 200} == names
    assert answers["manifest.json"][1] == path.read_bytes()


def test_a_file_of_the_recipe_is_served_if_the_manifest_names_it_beside_the_index(data, tmp_path):
    shards, sha256, _ = data
    content = b"weights"
    (shards / "base.safetensors").write_bytes(content)
    for place, served in (("https://example.org/tiny", True), ("https://example.org/other", False)):
        base = {
            "url": f"{place}/base.safetensors",
            "sha256": hashlib.sha256(content).hexdigest(),
            "bytes": len(content),
        }
        body = lora() | {"sequence_length": 256}
        body["base"] |= base
        manifest = parse_manifest(raw(recipe=body, data__sha256=sha256))
        files = served_files(manifest, shards, "m.json", tmp_path / "m.json", tmp_path / "m.json.sig")
        assert (files.get("base.safetensors") == shards / "base.safetensors") is served


def ask(server, name):
    with closing(http.client.HTTPConnection(server.removeprefix("http://"), timeout=10)) as connection:
        connection.request("GET", f"/{name}")
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_more_connections_than_there_may_be_are_closed_at_once(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    with ExitStack() as opened:
        server = opened.enter_context(serving(tmp_path))
        for number in range(MOST_CONNECTIONS):
            place = server.removeprefix("http://")
            own = f"127.0.1.{number // MOST_OF_ONE}", 0  # as few as may share an address
            kept = opened.enter_context(closing(http.client.HTTPConnection(place, timeout=10, source_address=own)))
            kept.request("GET", "/file")
            assert kept.getresponse().read() == b"x"
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(server, "file")


def test_the_address_is_kept_until_another_is_given(folder):
    assert folder.address(None, None) == HostAddress(31337, "")
    assert folder.address(4001, "seed.example.org") == HostAddress(4001, "seed.example.org")
    assert folder.address(None, None) == HostAddress(4001, "seed.example.org")
    assert folder.address(None, "") == HostAddress(4001, "")
    (folder.root / "address.json").write_text("{}")
    with raises(StorageError, match="is damaged"):
        folder.address(None, None)


@pytest.mark.parametrize(
    ("given", "multiaddress"),
    [
        ("203.0.113.7", "/ip4/203.0.113.7/tcp/4001"),
        ("203.0.113.7:31", "/ip4/203.0.113.7/tcp/31"),
        ("seed.example.org:443", "/dns/seed.example.org/tcp/443"),
        ("2001:db8::1", "/ip6/2001:db8::1/tcp/4001"),
        ("[2001:db8::1]:9", "/ip6/2001:db8::1/tcp/9"),
    ],
)
def test_an_announced_address_is_a_name_or_an_ip_with_or_without_a_port(given, multiaddress):
    assert announced_addresses(HostAddress(4001, given)) == [multiaddress]


@pytest.mark.parametrize("given", ["a b", "/ip4/1.2.3.4", "host:99999", "host:0", "ü.example", "1.2.3.4:x"])
def test_anything_else_is_refused(given):
    with raises(BadInput, match="is not an address"):
        announced_addresses(HostAddress(4001, given))


def test_without_an_announced_address_identity_and_port_count():
    named = f"/dns4/seed.example.org/tcp/4001/p2p/{PEER_ID}"
    check_named([named], HostAddress(4001), PEER_ID)
    for address in (HostAddress(4002), HostAddress(4001, "other.example.org")):
        with pytest.raises(ManifestError):
            check_named([named], address, PEER_ID)
    assert all(a.endswith(f"/tcp/4001/p2p/{PEER_ID}") for a in seed_addresses(HostAddress(4001), PEER_ID))


def test_the_address_is_printed_before_there_is_a_manifest_and_stays(tmp_path):
    first = skep(tmp_path / "home", "host", "--address", "--announce", "seed.example.org:443")
    assert first[0] == 0
    assert first[1]["addresses"] == [f"/dns/seed.example.org/tcp/443/p2p/{first[1]['peer_id']}"]
    assert skep(tmp_path / "home", "host", "--address") == first


@pytest.mark.parametrize(
    "arguments", [(), ("--port", "0"), ("x.json", "--web", "here"), ("x.json", "--url", "ftp://x")]
)
def test_usage_is_refused_in_one_sentence(tmp_path, arguments):
    code, said = skep(tmp_path / "home", "host", *arguments)
    assert code == 2
    assert said["event"] == "problem"


def test_the_link_is_where_the_data_is_or_where_it_is_told_to_be(tmp_path, data):
    path = signed(tmp_path)
    manifest = parse_manifest(path.read_bytes())
    address = HostAddress(31337)
    assert hosting.join_link(Hosting(path, address), manifest) == ""
    beside = links.parse(hosting.join_link(Hosting(path, address, data=data[0]), manifest))
    assert beside.manifest == "https://example.org/tiny/manifest.json"
    told = links.parse(hosting.join_link(Hosting(path, address, url="https://example.org/m.json"), manifest))
    assert told.manifest == "https://example.org/m.json"
    assert told.names(manifest.publisher.key)


def test_a_qr_code_is_drawn_in_half_blocks():
    drawn = qr_code("skep://join?manifest=https://example.org/x.json&publisher=4f2a90c1d3e5b768")
    assert "▀" in drawn or "▄" in drawn
    assert len(drawn.splitlines()) > 15


def test_an_export_without_a_checkpoint_or_into_a_full_folder_is_refused(folder, tmp_path):
    manifest = parse_manifest(signed(tmp_path).read_bytes())
    with raises(BadInput, match="There is no checkpoint"):
        newest_checkpoint(folder, manifest)
    with raises(BadInput, match="not empty"):
        export(tmp_path / "x.safetensors", tmp_path)
    kept = folder.checkpoints(manifest.run_id)
    kept.mkdir(parents=True)
    for epoch in (9, 10):
        (kept / f"epoch-{epoch:08d}.safetensors").write_bytes(b"")
    assert newest_checkpoint(folder, manifest).name == "epoch-00000010.safetensors"


@pytest.mark.way_in
def test_the_seed_of_a_project_for_the_invited_must_be_invited_itself(folder, tmp_path):
    open_to_all = signed(tmp_path, peers=at(folder, 31337))
    assert "needs no invitation" in in_english(refusal(folder, open_to_all, invitation=tmp_path / "none").title)
    path = signed(tmp_path, peers=at(folder, 31337), membership="invited")
    missing = refusal(folder, path)
    assert "its seed peer needs an invitation too" in in_english(missing.title)
    assert folder.identity.peer_id in in_english(missing.hint)
    manifest, private = parse_manifest(path.read_bytes()), signing.load_private(tmp_path / "publisher.key")
    for peer, said in ((PEER_ID, "for another computer"), (folder.identity.peer_id, "")):
        made = invitations.sign(invitation.draft(manifest, peer, invitation.SEED, datetime.now(UTC), 30), private)
        file = tmp_path / "invitation.json"
        invitations.write(made, file)
        if said:
            assert said in in_english(refusal(folder, path, invitation=file).title)
        else:
            check_invited(manifest, file, peer)


@pytest.mark.way_in
def test_the_seed_of_a_moderated_project_must_be_one_from_which_the_state_is_taken_and_not_revoked(folder, tmp_path):
    path, peer = signed(tmp_path, peers=at(folder, 31337), membership="moderated"), folder.identity.peer_id
    manifest, private = parse_manifest(path.read_bytes()), signing.load_private(tmp_path / "publisher.key")
    file, listed = tmp_path / "invitation.json", tmp_path / "revoked.json"
    for role in ("seed", "donor", "host"):
        invitations.write(
            invitations.sign(invitation.draft(manifest, peer, role, datetime.now(UTC), 30), private), file
        )
        if role == "seed":
            told = refusal(folder, path, invitation=file)
            assert "this invitation is for a seed" in in_english(told.title)
            assert peer in in_english(told.hint)
        else:
            check_invited(manifest, file, peer, listed)
    invitations.write(invitations.sign(revocation.draft(manifest, None, peer, datetime.now(UTC)), private), listed)
    with raises(InvitationError, match="has revoked this computer"):
        check_invited(manifest, file, peer, listed)
    listed.write_text("{")
    with raises(InvitationError, match="The list of revoked invitations is not valid"):
        check_invited(manifest, file, peer, listed)


def test_the_seed_obeys_the_list_of_its_host_as_it_is_at_each_request(folder, tmp_path):
    path, peer = signed(tmp_path, peers=at(folder, 31337), membership="invited"), folder.identity.peer_id
    manifest, private = parse_manifest(path.read_bytes()), signing.load_private(tmp_path / "publisher.key")
    file, listed = tmp_path / "invitation.json", tmp_path / "list.json"
    own = invitations.sign(invitation.draft(manifest, peer, "seed", datetime.now(UTC), 30), private)
    invitations.write(own, file)
    command = hosting._peer(Hosting(path, HostAddress(31337), invitation=file), folder, manifest, path, listed)._command
    arguments = seed._arguments([*command[command.index("--host") :], "--run-folder", str(tmp_path)])
    membership = seed.membership_of(arguments)
    assert not membership.is_void(own)
    invitations.write(invitations.sign(revocation.draft(manifest, None, peer, datetime.now(UTC)), private), listed)
    assert membership.is_void(own)


def test_the_list_of_revoked_invitations_is_served_as_it_is_at_each_request(data, tmp_path):
    found, sha256, _ = data
    path = signed(tmp_path, data__sha256=sha256, membership="invited")
    manifest = parse_manifest(path.read_bytes())
    files = served_files(manifest, found, "m.json", path, signing.signature_path(path))
    name = "tiny-code-lm.revoked.json"

    def status(port):
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as line:
            line.request("GET", f"/{name}")
            answer = line.getresponse()
            return answer.status, answer.read()

    with serving(files) as address:
        port = int(address.rpartition(":")[2])
        assert status(port) == (404, b"")
        (found / name).write_bytes(b"new")
        assert status(port) == (200, b"new")
    open_to_all = parse_manifest(signed(tmp_path, data__sha256=sha256).read_bytes())
    assert name not in served_files(open_to_all, found, "m.json", path, path)


@pytest.mark.way_in
def test_the_note_and_the_checkpoints_that_it_has_named_are_served_as_they_are_put_there_and_no_other_file(
    data, tmp_path
):
    served, sha256, _ = data
    path = signed(tmp_path, data__sha256=sha256, initial_state="signed")
    manifest, private = parse_manifest(path.read_bytes()), signing.load_private(tmp_path / "publisher.key")
    checkpoints = []

    def publish(epoch):
        content = b"a checkpoint of epoch %d" % epoch
        file = CheckpointFile(manifest.run_id, epoch, hashlib.sha256(content).hexdigest(), len(content))
        (tmp_path / "checkpoint").write_bytes(content)
        made = signed_checkpoints.sign(signed_checkpoint.draft(manifest, None, file, datetime.now(UTC)), private)
        note, copied = signed_checkpoints.publish(made, tmp_path / "checkpoint", served)
        checkpoints.append((copied.name, content))
        return note

    other = served / f"{'c' * 64}.safetensors"
    other.write_text("of another project")
    files = served_files(manifest, served, "m.json", path, signing.signature_path(path))
    with serving(files) as server:
        assert ask(server, "tiny-code-lm.checkpoint.json")[0] == 404
        note = publish(40)
        assert ask(server, note.name) == (200, note.read_bytes())
        assert ask(server, checkpoints[0][0]) == (200, checkpoints[0][1])
        note = publish(50)
        for name, content in checkpoints:  # a download of the earlier one may be under way
            assert ask(server, name) == (200, content)
        assert ask(server, other.name)[0] == 404
        note.write_text(note.read_text().replace(checkpoints[1][0][:64], "c" * 64))
        assert ask(server, other.name)[0] == 404
    assert set(files) >= {note.name, *(name for name, _ in checkpoints)}
    assert len(files) == len(set(files))
    plain = parse_manifest(signed(tmp_path, data__sha256=sha256).read_bytes())
    assert note.name not in served_files(plain, served, "m.json", path, path)


def test_the_files_of_a_recipe_are_found_by_name_and_hash(tmp_path):
    content = b"weights"
    body = lora()
    body["base"] |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    recipe = parse_manifest(raw(recipe=body)).recipe
    with raises(BadInput, match="base weights are needed to build its model"):
        find_files(recipe, None)
    with raises(BadInput, match=r"base weights cannot be read from .*base\.safetensors"):
        find_files(recipe, tmp_path)
    path = tmp_path / "base.safetensors"
    path.write_bytes(b"others")
    with raises(BadInput, match="is not the file that the manifest names"):
        find_files(recipe, tmp_path)
    path.write_bytes(content)
    assert find_files(recipe, tmp_path) == {"base weights": path}
    assert find_files(parse_manifest(raw()).recipe, None) == {}
