"""Homes and run folders on the real file system."""

import os
import stat
from pathlib import Path

import pytest

from english import in_english, raises
from skep.adapters.storage.files import atomic_write
from skep.adapters.storage.paths import Home, default_home, expanded, make_run_folder
from skep.core.errors import BadInput, StorageError


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_home_is_made_for_this_user_only(tmp_path):
    home = Home(tmp_path / "a" / "home")
    home.create()
    assert mode(home.root) == 0o700


def test_a_home_that_others_could_read_is_closed(tmp_path):
    tmp_path.chmod(0o755)
    Home(tmp_path).create()
    assert mode(tmp_path) == 0o700


def test_a_home_that_is_a_file_is_refused_in_words(tmp_path):
    (tmp_path / "home").write_text("")
    with raises(StorageError, match="cannot be used: File exists") as caught:
        Home(tmp_path / "home").create()
    assert "SKEP_HOME" in in_english(caught.value.hint)


def test_everything_of_a_home_lies_in_it(tmp_path):
    home = Home(tmp_path)
    names = [name for name in dir(Home) if name.endswith(("_file", "_folder"))]
    places = {getattr(home, name) for name in names}
    assert len(places) == len(names) == 24
    assert {place.parent for place in places} == {tmp_path}


def test_skep_home_chooses_the_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_home({"SKEP_HOME": "/x/y"}) == Path("/x/y")
    assert default_home({"SKEP_HOME": "near"}) == tmp_path / "near"
    assert default_home({"SKEP_HOME": "~/z"}) == Path.home() / "z"


def test_without_skep_home_it_is_the_users_data_folder():
    for environ in ({}, {"SKEP_HOME": ""}):
        assert default_home(environ).is_absolute()
        assert default_home(environ).name == "skep"


def test_skep_home_of_an_unknown_user_is_bad_input():
    with raises(BadInput, match="no such user"):
        default_home({"SKEP_HOME": "~nobody-of-this-name/x"})


def test_a_path_is_made_absolute_and_one_of_an_unknown_user_is_bad_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert expanded("near") == tmp_path / "near"
    assert expanded("~/z") == Path.home() / "z"
    with raises(BadInput, match="~nobody-of-this-name/x cannot be used, because there is no such user"):
        expanded("~nobody-of-this-name/x")


def test_a_run_folder_is_private_short_and_new():
    folders = [make_run_folder(), make_run_folder()]
    try:
        assert folders[0] != folders[1]
        for folder in folders:
            assert folder.name.startswith("skep-")
            assert mode(folder) == 0o700
            assert len(os.fsencode(folder / "h-p2pclient-12345678901.sock")) < 104
    finally:
        for folder in folders:
            folder.rmdir()


def test_a_run_folder_lies_in_the_runtime_folder_where_there_is_one(tmp_path_factory, monkeypatch):
    short = Path(os.environ["TMPDIR"]) / "r"
    short.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    folder = make_run_folder()
    assert folder.parent == short
    folder.rmdir()


@pytest.mark.parametrize("runtime", ["long" * 20, "relative", "", "/does/not/exist"])
def test_a_runtime_folder_that_is_too_long_relative_or_missing_is_passed_over(runtime, tmp_path, monkeypatch):
    if runtime.startswith("long"):
        (tmp_path / runtime).mkdir()
        runtime = str(tmp_path / runtime)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relative").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    folder = make_run_folder()
    assert folder.parent == Path(os.environ["TMPDIR"])
    folder.rmdir()


def test_writing_replaces_the_whole_file_and_sets_its_mode(tmp_path):
    path = tmp_path / "file"
    path.write_text("before, and longer")
    path.chmod(0o644)
    atomic_write(path, b"after", mode=0o600)
    assert path.read_bytes() == b"after"
    assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        atomic_write(path, b"after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_follows_no_link(tmp_path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    atomic_write(tmp_path / "link", b"new")
    assert (tmp_path / "precious").read_text() == "kept"
