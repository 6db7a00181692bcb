"""Lists of packs from a TUF repository: what is tampered, older, mixed or truncated is refused in words."""

import shutil
import subprocess
import tarfile
import zipfile
from datetime import timedelta

import msgspec
import pytest
from securesystemslib.signer import CryptoSigner
from tuf.api.metadata import Timestamp
from urllib3.util import Retry

from english import raises
from pack_repository import PackRepository, pack_server
from skep.adapters.net.repository_copy import ADDRESS, repository_copy
from skep.adapters.net.update_repository import UpdateRepository
from skep.adapters.net.web import Patience, Stop, Web
from skep.adapters.packs.wheelhouse import Wheelhouse
from skep.core.errors import UpdateError
from skep.core.packs import LIST_LIMIT, PackList, wheel_target, write_packs
from skep.core.project.addresses import Reach
from small_packs import make_pack, make_wheel

LIST = "packs-linux-x86_64-cp311.json"
PATIENCE = Patience(connect_seconds=5, read_seconds=5, retry=Retry(1, backoff_factor=0.01))
NOT_SIGNED = "What the update server offers is not signed correctly, so it is not used."
UNREACHABLE = "The update server cannot be reached, or a file is missing there."
NOT_FETCHED = r"^torch-1.0-py3-none-any.whl of the compute pack could not be fetched: "


@pytest.fixture
def server(tmp_path):
    with pack_server(tmp_path / "served") as server:
        yield server


@pytest.fixture
def wheels(tmp_path):
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


@pytest.fixture
def pack(wheels):
    return make_pack("cpu", make_wheel(wheels, "torch", {"torch.py": b"t" * 5000}))


@pytest.fixture
def newer(wheels):
    return make_pack("cpu", make_wheel(wheels, "torch", {"torch.py": b"newer"}, version="2.0"))


@pytest.fixture
def repository(server, tmp_path):
    """Another reader of the same home at each call."""
    return lambda: UpdateRepository(tmp_path / "updates", server.address, server.root, Web(PATIENCE, Stop(), Reach.ANY))


def test_the_list_is_read(server, wheels, pack, repository):
    server.publish(wheels, LIST, pack)
    assert repository().packs(LIST) == PackList((pack,))
    assert repository().packs("packs-linux-aarch64-cp311.json") is None
    assert [name for name, _ in server.asked if name.endswith(".whl")] == []


def test_a_new_list_is_read(server, wheels, pack, newer, repository):
    server.publish(wheels, LIST, pack)
    repository().packs(LIST)
    server.publish(wheels, LIST, newer)
    assert repository().packs(LIST) == PackList((newer,))


def target(server, name):
    return server.folder / "targets" / name


def flip(path, at=-20):
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def lists_tampered(server, place):
    flip(target(server, LIST))


def list_truncated(server, place):
    cut(target(server, LIST))


def list_longer(server, place):
    target(server, LIST).write_bytes(target(server, LIST).read_bytes() + b" ")


def list_older(server, place):
    server.restore(place, f"targets/{LIST}")


def list_missing(server, place):
    target(server, LIST).unlink()


def everything_older(server, place):
    shutil.copyfile(place / "metadata/timestamp.json", server.folder / "metadata/timestamp.json")


def targets_older(server, place):
    """The signed list of targets of the old state under the new one's name."""
    shutil.copyfile(place / "metadata/1.targets.json", server.folder / "metadata/2.targets.json")


def snapshot_older(server, place):
    shutil.copyfile(place / "metadata/1.snapshot.json", server.folder / "metadata/2.snapshot.json")


def signed_by_others(server, place):
    server.keys["targets"] = CryptoSigner.generate_ed25519()
    server.sign()


def timestamp_by_others(server, place):
    server.keys[Timestamp.type] = CryptoSigner.generate_ed25519()
    server.sign()


def metadata_tampered(server, place):
    flip(server.folder / "metadata/2.targets.json", at=200)


def metadata_truncated(server, place):
    cut(server.folder / "metadata/2.snapshot.json")


ATTACKS = [
    lists_tampered, list_truncated, list_longer, list_older, everything_older, targets_older, snapshot_older,
    signed_by_others, timestamp_by_others, metadata_tampered, metadata_truncated,
]  # fmt: skip


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        *(pytest.param(attack, NOT_SIGNED, marks=pytest.mark.way_in) for attack in ATTACKS),
        (list_missing, UNREACHABLE),
    ],
)
def test_a_repository_that_is_not_as_it_was_signed_is_refused(
    server, wheels, pack, newer, repository, tmp_path, attack, words
):
    server.publish(wheels, LIST, pack)
    place = server.saved(tmp_path / "older")
    server.publish(wheels, LIST, newer)
    reader = repository()
    if attack is everything_older:
        reader.packs(LIST)  # who has seen the newer state is not led back
    attack(server, place)
    with raises(UpdateError, match=words):
        repository().packs(LIST)


@pytest.mark.way_in
def test_an_expired_list_is_refused(server, wheels, pack, repository):
    server.valid = timedelta(days=-1)
    server.publish(wheels, LIST, pack)
    with raises(UpdateError, match="What the update server offers is out of date, so it is not used."):
        repository().packs(LIST)


@pytest.mark.way_in
def test_a_signed_list_that_names_an_unsigned_wheel_is_refused(server, wheels, pack, repository):
    server.publish(wheels, LIST, pack)
    del server.files[wheel_target(pack.wheels[0])]
    server.sign()
    with raises(UpdateError, match="names torch-1.0-py3-none-any.whl, which is not signed"):
        repository().packs(LIST)


@pytest.mark.way_in
@pytest.mark.parametrize("change", [{"size": 5}, {"sha256": "0" * 64}])
def test_a_signed_list_that_contradicts_the_repository_is_refused(server, wheels, pack, repository, change):
    server.publish(wheels, LIST, pack)
    wrong = msgspec.structs.replace(pack.wheels[0], **change)
    target(server, LIST).write_bytes(write_packs(PackList((msgspec.structs.replace(pack, wheels=(wrong,)),))))
    server.add(LIST)
    if "sha256" in change:  # the repository has another file under that name
        target(server, wheel_target(wrong)).write_bytes(bytes(wrong.size))
        server.add(wheel_target(wrong))
    server.sign()
    with raises(UpdateError, match="which is not signed"):
        repository().packs(LIST)


@pytest.mark.parametrize(
    ("raw", "words"), [(b"{}", "cannot be used"), (b"\xff", "cannot be used"), (b" " * (LIST_LIMIT + 1), "too long")]
)
def test_a_signed_list_that_is_none_is_refused(server, wheels, pack, repository, raw, words):
    server.publish(wheels, LIST, pack)
    target(server, LIST).write_bytes(raw)
    server.add(LIST)
    server.sign()
    with raises(UpdateError, match=f"The update server's list of compute packs (is )?{words}"):
        repository().packs(LIST)
    assert (f"targets/{LIST}" in [name for name, _ in server.asked]) == (words != "too long")


WHEELS = {
    "tampered": lambda raw, _: raw[:100] + bytes([raw[100] ^ 1]) + raw[101:],
    "truncated": lambda raw, _: raw[:-1],
    "longer": lambda raw, _: raw + b"x",
    "of an older list": lambda _, older: older,
    "empty": lambda *_: b"",
}


@pytest.mark.way_in
@pytest.mark.parametrize("kind", WHEELS)
def test_a_wheel_that_is_not_the_one_of_the_list_is_refused(server, wheels, pack, newer, repository, tmp_path, kind):
    server.publish(wheels, LIST, pack)
    (wheel,) = repository().packs(LIST).packs[0].wheels
    older = (wheels / newer.wheels[0].file).read_bytes()
    place = target(server, wheel_target(wheel))
    place.write_bytes(WHEELS[kind](place.read_bytes(), older))
    house = Wheelhouse(tmp_path / "fetched")
    with raises(UpdateError, match=NOT_FETCHED):
        house.fetch(wheel, repository().wheel_address(wheel), Web(PATIENCE, Stop(), Reach.ANY))
    assert not house.has(wheel)


# --- copies for computers without a connection


def as_folder(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "stick/copy")


def as_tar(folder, tmp_path):
    subprocess.run(["tar", "-cf", tmp_path / "copy.tar", "-C", folder, "."], check=True)
    return tmp_path / "copy.tar"


def as_packed_tar(folder, tmp_path):
    subprocess.run(["tar", "-czf", tmp_path / "c.tgz", "-C", folder.parent, folder.name], check=True)
    return tmp_path / "c.tgz"


def as_zip(folder, tmp_path):
    shutil.make_archive(str(tmp_path / "copy"), "zip", folder.parent, folder.name)
    return tmp_path / "copy.zip"


COPIES = [as_folder, as_tar, as_packed_tar, as_zip]


@pytest.fixture
def from_copy(server, tmp_path):
    return lambda copy: UpdateRepository(tmp_path / "updates", ADDRESS, server.root, copy)


@pytest.mark.parametrize("made", COPIES)
def test_a_copy_is_read_without_a_server(server, wheels, pack, from_copy, tmp_path, made):
    server.publish(wheels, LIST, pack)
    with repository_copy(made(server.folder, tmp_path)) as copy:
        assert from_copy(copy).packs(LIST) == PackList((pack,))
        house = Wheelhouse(tmp_path / "fetched")
        with copy.target(wheel_target(pack.wheels[0])) as file:
            house.add(pack.wheels[0], file)
        assert house.has(pack.wheels[0])
        with pytest.raises(FileNotFoundError), copy.target("other"):
            pass
    assert server.asked == []


@pytest.mark.way_in
@pytest.mark.parametrize("made", COPIES)
def test_a_copy_that_was_changed_is_refused(server, wheels, pack, from_copy, tmp_path, made):
    server.publish(wheels, LIST, pack)
    flip(target(server, LIST))
    with repository_copy(made(server.folder, tmp_path)) as copy, raises(UpdateError, match=NOT_SIGNED):
        from_copy(copy).packs(LIST)


@pytest.mark.way_in
def test_a_copy_of_another_publisher_is_refused(server, wheels, pack, from_copy, tmp_path):
    other = PackRepository(tmp_path / "other")
    other.publish(wheels, LIST, pack)
    with repository_copy(other.folder) as copy, raises(UpdateError, match=NOT_SIGNED):
        from_copy(copy).packs(LIST)


@pytest.mark.way_in
def test_a_copy_older_than_what_the_server_had_is_refused(server, wheels, pack, newer, repository, from_copy, tmp_path):
    server.publish(wheels, LIST, pack)
    older = server.saved(tmp_path / "older")
    server.publish(wheels, LIST, newer)
    repository().packs(LIST)
    with repository_copy(older) as copy, raises(UpdateError, match=NOT_SIGNED):
        from_copy(copy).packs(LIST)


def test_what_is_no_copy_is_refused_in_words(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no archive")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", b"a")
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.add(tmp_path / "text", "metadata/timestamp")
    for name, words in {
        "empty": "holds no copy", "other.zip": "holds no copy", "other.tar": "holds no copy",
        "text": "cannot be read as a copy of an update repository", "absent": "No such file",
    }.items():  # fmt: skip
        with raises(UpdateError, match=words), repository_copy(tmp_path / name):
            pass


@pytest.mark.parametrize("made", [as_tar, as_packed_tar, as_zip])
def test_an_archive_that_is_cut_off_is_refused_in_words(server, wheels, pack, from_copy, tmp_path, made):
    server.publish(wheels, LIST, pack)
    path = made(server.folder, tmp_path)
    raw = path.read_bytes()
    for length in (0, 10, len(raw) // 3):
        path.write_bytes(raw[:length])
        with raises(UpdateError), repository_copy(path) as copy:
            from_copy(copy).packs(LIST)
            with copy.target(wheel_target(pack.wheels[0])) as file:
                Wheelhouse(tmp_path / "fetched").add(pack.wheels[0], file)
