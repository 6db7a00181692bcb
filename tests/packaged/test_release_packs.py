"""Compute packs in a repository of updates: published beside the archives, and vouched for by the same root."""

import hashlib

import pytest
from tuf.api.metadata import Metadata
from tuf.ngclient import Updater, UpdaterConfig

from skep.core.packs import Pack, PackKind, PackList, Wheel, read_packs, wheel_target, write_packs
from update_server import pack as archive_of
from update_server import update_server

LIST = "packs-linux-x86_64-cp311.json"


@pytest.fixture
def server(tmp_path):
    with update_server(tmp_path) as serving:
        yield serving


def built(folder, **wheels):
    """A folder as `make packs` writes it, with one pack of wheels by name."""
    (folder / "wheels").mkdir(parents=True, exist_ok=True)
    described = []
    for name, content in wheels.items():
        file = f"{name}-1.0-py3-none-any.whl"
        wheel = Wheel(name, "1.0", file, hashlib.sha256(content).hexdigest(), len(content), 1)
        (folder / wheel_target(wheel)).write_bytes(content)
        described.append(wheel)
    (folder / LIST).write_bytes(write_packs(PackList((Pack("cpu", PackKind.CPU, "2.13.0", tuple(described)),))))
    return folder


def targets(server):
    newest = max((server.folder / "metadata").glob("*.targets.json"), key=lambda file: int(file.name.split(".")[0]))
    return Metadata.from_file(str(newest)).signed.targets


def test_a_client_with_the_root_of_updates_gets_the_list_and_each_wheel(server, tmp_path):
    packs = built(tmp_path / "packs", torch=b"a torch", numpy=b"numbers")
    done = server.publish(archive_of(tmp_path, "0.2.0"), "--packs", packs)
    assert done.returncode == 0, done.stderr
    (tmp_path / "client").mkdir()
    client = Updater(
        metadata_dir=str(tmp_path / "client"),
        metadata_base_url=f"{server.address}/metadata/",
        target_dir=str(tmp_path / "client"),
        target_base_url=f"{server.address}/targets/",
        config=UpdaterConfig(prefix_targets_with_hash=False),
        bootstrap=server.root,
    )
    client.refresh()
    got = tmp_path / "got"
    client.download_target(client.get_targetinfo(LIST), str(got))
    [pack] = read_packs(got.read_bytes()).packs
    for wheel in pack.wheels:
        client.download_target(client.get_targetinfo(wheel_target(wheel)), str(got))
        assert hashlib.sha256(got.read_bytes()).hexdigest() == wheel.sha256
    assert any(name.startswith("skep-0.2.0") for name in targets(server))


def test_a_new_list_replaces_the_old_one_and_copies_only_what_is_new(server, tmp_path):
    assert server.publish("--packs", built(tmp_path / "one", torch=b"a torch", numpy=b"numbers")).returncode == 0
    kept = {path.name: path.stat().st_mtime_ns for path in (server.folder / "targets" / "wheels").iterdir()}
    assert server.publish("--packs", built(tmp_path / "two", torch=b"a torch", numpy=b"newer")).returncode == 0
    torch, old, new = (f"wheels/{hashlib.sha256(each).hexdigest()}.whl" for each in (b"a torch", b"numbers", b"newer"))
    assert set(targets(server)) == {LIST, torch, new}
    again = {path.name: path.stat().st_mtime_ns for path in (server.folder / "targets" / "wheels").iterdir()}
    # a computer that fetches by the old list meanwhile still gets the bytes
    assert again.keys() - kept.keys() == {new.removeprefix("wheels/")}
    assert old.removeprefix("wheels/") in again
    assert again[torch.removeprefix("wheels/")] == kept[torch.removeprefix("wheels/")]


@pytest.mark.parametrize("damage", [b"a t0rch", b"a torch and more"])
def test_a_wheel_that_is_not_the_one_of_its_list_is_not_published(server, tmp_path, damage):
    packs = built(tmp_path / "packs", torch=b"a torch")
    [wheel] = (packs / "wheels").iterdir()
    wheel.write_bytes(damage)
    done = server.publish("--packs", packs)
    assert done.returncode == 2
    assert done.stderr == f"Nothing was published: {wheel} is not the torch-1.0-py3-none-any.whl of its list\n"
    assert not list((server.folder / "targets").rglob("*.whl"))


def test_a_folder_without_a_list_is_refused(server, tmp_path):
    done = server.publish("--packs", tmp_path)
    assert (done.returncode, "has no list of packs" in done.stderr) == (2, True)


def test_a_list_that_skep_would_refuse_is_not_published(server, tmp_path):
    packs = built(tmp_path / "packs", torch=b"a torch")
    (packs / LIST).write_bytes(b"{}")
    done = server.publish("--packs", packs)
    assert done.returncode == 2
    assert not list((server.folder / "targets").glob("packs-*"))


def test_packs_and_renewal_are_not_asked_for_at_once(server, tmp_path):
    assert "name an archive, --packs, or --renew" in server.publish("--renew", "--packs", tmp_path).stderr
    assert "name an archive, --packs, or --renew" in server.publish().stderr
