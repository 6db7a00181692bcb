"""Settings in a TOML file that users may edit."""

import os
import stat
from functools import partial

import pytest
import tomlkit
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from english import in_english, raises
from skep.adapters.storage.paths import Home
from skep.adapters.storage.settings_file import Mending, PauseFile, SettingsFile
from skep.core.errors import SettingsError, StorageError
from skep.core.settings.settings import DEFAULTS
from skep.core.text import verbatim
from small_disks import filled, small_disk


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
    after = path.stat()
    # not the time of access: reading it changes that
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


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


DAMAGED = pytest.mark.parametrize(
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


@DAMAGED
def test_a_damaged_file_is_said_with_a_hint_and_left_alone(path, settings, content, sentence):
    path.write_bytes(content)
    for action in (settings.load, lambda: settings.save({"compute.threads": 1})):
        with pytest.raises(SettingsError) as caught:
            action()
        assert in_english(caught.value.title) == f"The settings file {path} {sentence}"
        assert "move it away" in in_english(caught.value.hint)
    assert path.read_bytes() == content


LIMITS = "# mine\n[compute]\nshare_away = 30\nthreads = 12\n"
CUT = pytest.mark.parametrize("content", [b"", *(LIMITS[:-end].encode() for end in (2, 13, 20))])
"""Some can be read, and say something else."""


@pytest.fixture
def told():
    return []


@pytest.fixture
def holder(home, told):
    """As the holder of the home's lock reads and writes them."""
    return held(home, told)


def held(home, told):
    guard = partial(PauseFile(home.pause_file).save, paused=True, until=None)
    return SettingsFile(home.settings_file, home.settings_copy_file, mending=Mending(told.append, guard))


def asides(home):
    return [each.read_bytes() for each in home.root.glob("settings.toml.damaged-*")]


def assert_last_are_used(home, holder, told, content):
    assert holder.load() == DEFAULTS | {"compute.share_away": 0.3, "compute.threads": 12}
    assert home.settings_file.read_text() == home.settings_copy_file.read_text() == LIMITS
    assert asides(home) == [content]
    (problem,) = told
    assert in_english(problem.title) == "The settings file was damaged; skep uses the settings that it used last."
    assert ".damaged-" in in_english(problem.hint)
    assert not home.pause_file.exists()


@DAMAGED
def test_a_damaged_file_is_replaced_by_the_settings_used_last(home, holder, told, content, sentence):
    home.settings_file.write_text(LIMITS)
    holder.load()
    home.settings_file.write_bytes(content)
    assert_last_are_used(home, holder, told, content)


@CUT
def test_a_file_that_was_cut_off_is_damaged_too(home, holder, told, content):
    home.settings_file.write_text(LIMITS)
    holder.load()
    home.settings_file.write_bytes(content)
    with raises(SettingsError, match=r"settings\.toml is cut off\."):
        SettingsFile(home.settings_file, home.settings_copy_file).load()
    assert_last_are_used(home, holder, told, content)


def test_what_is_saved_while_the_file_is_damaged_loses_nothing(home, holder, told):
    home.settings_file.write_text(LIMITS)
    holder.load()
    home.settings_file.write_bytes(b"\xff")
    holder.save({"compute.threads": 3})
    assert holder.load() == DEFAULTS | {"compute.share_away": 0.3, "compute.threads": 3}
    assert home.settings_copy_file.read_text() == home.settings_file.read_text()
    assert (asides(home), len(told)) == ([b"\xff"], 1)


@DAMAGED
def test_without_the_settings_used_last_skep_pauses_before_the_defaults_apply(home, holder, told, content, sentence):
    home.settings_file.write_bytes(content)
    assert holder.load() == DEFAULTS
    assert PauseFile(home.pause_file).load() == (True, None)
    assert (asides(home), home.settings_file.exists()) == ([content], False)
    assert [in_english(each.title) for each in told] == [
        "The settings file was damaged; skep starts with the defaults, and is paused."
    ]


def test_without_a_pause_the_defaults_do_not_apply(home, told):
    def refuse():
        raise StorageError(verbatim("The disk is full."))

    home.settings_file.write_bytes(b"\xff")
    with raises(StorageError, match="full"):
        SettingsFile(home.settings_file, home.settings_copy_file, mending=Mending(told.append, refuse)).load()
    assert (home.settings_file.read_bytes(), asides(home), told) == (b"\xff", [], [])


def test_on_a_full_disk_the_settings_used_last_apply_though_the_file_cannot_be_replaced(tmp_path, told):
    with small_disk(tmp_path / "disk", 1024) as disk:
        home = Home(disk)
        home.settings_file.write_text(LIMITS)
        held(home, told).load()
        home.settings_file.write_bytes(b"\xff")
        with filled(disk):
            assert held(home, told).load()["compute.threads"] == 12
        assert (home.settings_file.read_bytes(), asides(home)) == (b"\xff", [])
        assert "No space left" in in_english(told[0].hint)
        told.clear()
        assert_last_are_used(home, held(home, told), told, b"\xff")


def test_a_wrong_value_is_no_damage_and_not_what_was_used_last(home, holder, told):
    home.settings_file.write_text(LIMITS)
    holder.load()
    home.settings_file.write_text(LIMITS.replace("30", "400"))
    with raises(SettingsError, match="line 3"):
        holder.load()
    assert (home.settings_copy_file.read_text(), told) == (LIMITS, [])


def test_a_file_that_was_removed_leaves_no_settings_used_last(home, holder, told):
    home.settings_file.write_text(LIMITS)
    holder.load()
    home.settings_file.unlink()
    assert holder.load() == DEFAULTS
    assert (home.settings_copy_file.exists(), told) == (False, [])


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
