"""Settings in a TOML file that users may edit."""

import os
import stat

import pytest
import tomlkit
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from english import in_english, raises
from skep.adapters.storage.settings_file import SettingsFile
from skep.core.errors import SettingsError, StorageError
from skep.core.settings.settings import DEFAULTS


@pytest.fixture
def path(home):
    return home.settings_file


@pytest.fixture
def settings(path):
    return SettingsFile(path)


EDITED = """\
# my settings
title = "mine" # not skep's

[later]
x = [1, 2]

[compute]
# quiet please
share_away = 40 # percent
invented = "stays"
"""


def test_loading_makes_no_file(path, settings):
    settings.load()
    assert not path.exists()


def test_the_file_is_for_this_user_only_and_holds_percent(path, settings):
    settings.save({"compute.share_away": 0.3, "disk.cache_gb": 2.5})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "[compute]\nshare_away = 30\n\n[disk]\ncache_gb = 2.5\n"


def test_comments_order_and_unknown_keys_are_kept(path, settings):
    path.write_text(EDITED)
    assert settings.load()["compute.share_away"] == 0.4
    settings.save({"compute.share_away": 0.5, "compute.threads": 2})
    expected = EDITED.replace("40 #", "50 #") + "threads = 2\n"
    assert path.read_text() == expected


def test_what_stands_there_already_is_not_written_again(path, settings):
    path.write_text(EDITED)
    before = path.stat()
    settings.save({"compute.share_away": 0.4})
    assert path.stat() == before


def test_a_default_that_was_chosen_is_written(path, settings):
    settings.save({"compute.share_away": 1.0})
    assert path.read_text() == "[compute]\nshare_away = 100\n"


def test_an_edit_made_in_between_is_not_overwritten(path, settings):
    settings.save({"compute.threads": 2})
    path.write_text(path.read_text() + "\n[disk]\ncache_gb = 7\n")
    settings.save({"compute.threads": 3})
    assert settings.load()["disk.cache_gb"] == 7
    assert settings.load()["compute.threads"] == 3


def test_a_setting_of_a_later_version_is_read_and_kept(path, settings):
    path.write_text("[heat]\ncap_celsius = 70\n")
    assert settings.load()["heat.cap_celsius"] == 70
    settings.save({"compute.threads": 1})
    assert "cap_celsius = 70" in path.read_text()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[compute]\nshare_away = 3\n", "line 2: compute.share_away must be a percentage from 5 % to 100 %."),
        (
            "a = 1\ncompute.threads = -2\n",
            "line 2: compute.threads must be a whole number from 1 to 512, or 0 for automatic.",
        ),
        ("[disk]\n\n cache_gb = '9'\n", "line 3: disk.cache_gb must be a number from 0.1 GB to 10000 GB."),
        ("[disk]\ncache_gb = nan\n", "line 2: disk.cache_gb must be a number from 0.1 GB to 10000 GB."),
        ("[when]\nbattery_pause = 1\n", "line 2: when.battery_pause must be yes or no."),
        ("compute = 3\n", "line 1: compute must be a group of settings, as in [compute]."),
        ("x = 1\n[[compute]]\n", "line 2: compute must be a group of settings, as in [compute]."),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_file_key_and_line(path, settings, text, sentence):
    path.write_text(text)
    for action in (settings.load, lambda: settings.save({"compute.device": "cpu"})):
        with pytest.raises(SettingsError) as caught:
            action()
        assert in_english(caught.value.title) == f"{path}, {sentence}"
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[compute\n", "is damaged in line 1."),
        (b"[compute]\nthreads = 1\nthreads = = 2\n", "is damaged in line 3."),
        (b"[compute]\nthreads = 1\nthreads = 2\n", "is damaged and cannot be read as TOML."),
        (b"[[compute.more]]\n[compute]\n[compute.more.x]\n", "is damaged and cannot be read as TOML."),
        (b"\x00\x01", "is damaged in line 1."),
        (b"# \xff\xfe", "is not UTF-8 text."),
        (b"x = " + b"[" * 50_000, "is damaged in line 1."),
        (b"#" * 300_000, "is over 256 KiB."),
    ],
)
def test_a_damaged_file_is_said_with_a_hint_and_left_alone(path, settings, content, sentence):
    path.write_bytes(content)
    for action in (settings.load, lambda: settings.save({"compute.threads": 1})):
        with pytest.raises(SettingsError) as caught:
            action()
        assert in_english(caught.value.title) == f"The settings file {path} {sentence}"
        assert "move it away" in in_english(caught.value.hint)
    assert path.read_bytes() == content


def test_a_value_that_does_not_fit_is_not_saved(path, settings):
    with raises(SettingsError, match=r"network\.port must be"):
        settings.save({"compute.threads": 2, "network.port": 3})
    assert not path.exists()


def test_a_failed_write_keeps_the_old_file(path, settings, monkeypatch):
    settings.save({"compute.threads": 2})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with raises(StorageError, match=r"cannot be written to .*: No space left on device"):
        settings.save({"compute.threads": 3})
    assert settings.load()["compute.threads"] == 2
    assert list(path.parent.iterdir()) == [path]


def test_a_link_to_the_file_stays_a_link(tmp_path, path, settings):
    elsewhere = tmp_path / "dotfiles.toml"
    elsewhere.write_text("# shared\n")
    path.symlink_to(elsewhere)
    settings.save({"compute.threads": 2})
    assert path.is_symlink()
    assert elsewhere.read_text() == "# shared\n\n[compute]\nthreads = 2\n"


def test_a_folder_in_its_place_is_said(path, settings):
    path.mkdir()
    with raises(StorageError, match="cannot be read: Is a directory"):
        settings.load()


PIECES = st.sampled_from(
    [
        "[compute]\n",
        "[disk]\n",
        "[other]\n",
        "[compute.more]\n",
        "[other.more]\n",
        "threads = 3\n",
        "cache_gb = 7.5 # big\n",
        "unknown = {a = 1}\n",
        "compute.threads = 2\n",
        "disk = {cache_gb = 1}\n",
        "# remark\n",
        "\n",
    ]
)
WANTED = {"compute.threads": 4, "compute.share_away": 0.25, "disk.cache_gb": 9.0, "network.port": 2000}


@hypothesis_settings(max_examples=300)
@given(st.lists(PIECES, max_size=10).map("".join))
def test_in_any_file_what_is_saved_is_loaded_and_nothing_else_changes(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(text)
    settings = SettingsFile(path)
    try:
        before = settings.load()
        settings.save(WANTED)
    except SettingsError:
        assert path.read_text() == text
        return
    assert settings.load() == before | WANTED
    assert _foreign(path.read_text()) == _foreign(text)
    assert path.read_text().count("# remark") == text.count("# remark")


def _foreign(text):
    """The entries of the file that are not skep's."""
    tables = tomlkit.parse(text).unwrap()
    ours = {key.split(".")[0] for key in DEFAULTS}
    kept = {name: value for name, value in tables.items() if name not in ours}
    for group in ours & tables.keys():
        kept |= {f"{group}.{name}": v for name, v in tables[group].items() if f"{group}.{name}" not in DEFAULTS}
    return kept
