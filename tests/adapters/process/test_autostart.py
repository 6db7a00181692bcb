"""Start at login: the file's contents, and that the setting follows the file even if another program wrote it."""

import configparser
import os
import plistlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from english import raises
from skep import bootstrap
from skep.adapters.process import autostart as module
from skep.adapters.process.autostart import (
    KEY,
    DesktopEntry,
    LaunchAgent,
    Refused,
    SettingsWithAutostart,
    autostart,
    command,
    quoted,
)
from skep.adapters.process.programs import app_command
from skep.adapters.storage.paths import Home
from skep.adapters.storage.settings_file import SettingsFile
from skep.core.errors import SettingsError, StorageError


@pytest.fixture
def program(tmp_path):
    made = tmp_path / "a 50% b" / "skep-gui"
    made.parent.mkdir()
    made.touch()
    return made


@pytest.fixture
def entry(tmp_path, program):
    return DesktopEntry(tmp_path / "config" / "autostart" / "skep.desktop", [str(program), "--hidden"])


@pytest.fixture
def agent(tmp_path, program):
    return LaunchAgent(tmp_path / "LaunchAgents" / "org.skep.skep.plist", [str(program), "--hidden"])


@pytest.fixture(params=["entry", "agent"])
def either(request):
    return request.getfixturevalue(request.param)


def test_at_first_it_is_off_and_no_file_is_made(either):
    assert not either.is_on()
    either.turn(on=False)
    assert not either.path.parent.exists()


def test_it_is_turned_on_and_off_and_the_file_goes(either):
    either.turn(on=True)
    assert either.is_on()
    assert os.access(either.path, os.R_OK)
    either.turn(on=False)
    assert not either.is_on()
    assert not either.path.exists()


def test_the_file_of_a_folder_that_was_moved_is_off_and_is_written_anew(either, program, tmp_path):
    either.turn(on=True)
    program.parent.rename(tmp_path / "elsewhere")
    assert not either.is_on()
    either.turn(on=False)
    assert not either.path.exists()
    program.parent.mkdir()
    program.touch()
    either.turn(on=True)
    program.unlink()
    moved = type(either)(either.path, [str(tmp_path / "elsewhere" / "skep-gui"), "--hidden"])
    moved.turn(on=True)
    assert either.is_on()
    assert b"elsewhere" in either.path.read_bytes()


def test_a_file_that_is_removed_outside_is_off(either):
    either.turn(on=True)
    either.path.unlink()
    assert not either.is_on()


def test_what_says_so_already_is_left_as_it_is(either):
    either.turn(on=True)
    edited = either.path.read_bytes().replace(b"--hidden", b"--hidden ")
    either.path.write_bytes(edited)
    either.turn(on=True)
    assert either.path.read_bytes() == edited


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"[Desktop Entry]\nName=x\n", b"Exec=x", b"<plist>"])
def test_a_damaged_file_starts_nothing_and_can_be_mended(either, content):
    either.path.parent.mkdir(parents=True)
    either.path.write_bytes(content)
    assert not either.is_on()
    either.turn(on=True)
    assert either.is_on()


@pytest.mark.parametrize("line", ["Hidden=true", "X-GNOME-Autostart-enabled=false"])
def test_what_a_desktop_switched_off_in_the_file_is_off(entry, line):
    entry.turn(on=True)
    key = line.partition("=")[0]
    kept = [each for each in entry.path.read_text().splitlines() if not each.startswith(key)]
    entry.path.write_text("\n".join([*kept, line, ""]))
    assert not entry.is_on()
    entry.turn(on=True)
    assert entry.is_on()


def test_an_agent_that_is_disabled_in_the_file_is_off(agent):
    agent.turn(on=True)
    agent.path.write_bytes(plistlib.dumps(plistlib.loads(agent.path.read_bytes()) | {"Disabled": True}))
    assert not agent.is_on()


def test_a_place_that_cannot_be_written_is_said_in_words(tmp_path):
    (tmp_path / "autostart").write_text("")
    entry = DesktopEntry(tmp_path / "autostart" / "skep.desktop", ["x"])
    assert not entry.is_on()
    with raises(StorageError, match="cannot be written"):
        entry.turn(on=True)


def test_a_file_that_cannot_be_read_is_said_in_words(tmp_path):
    (tmp_path / "skep.desktop").mkdir()
    with raises(StorageError, match="cannot be read"):
        DesktopEntry(tmp_path / "skep.desktop", ["x"]).is_on()


# --- the file's contents


@pytest.mark.parametrize("word", ["plain", "with space", 'quo"te', "back\\slash", "per%cent", "$HOME", "`x`", "ä🐝"])
def test_exec_comes_back_as_it_was(word):
    """Unquoted as in the specification: the string's escapes first, then the shell's within double quotes."""
    string = quoted(word).replace("\\\\", "\\").replace("%%", "%")
    assert re.sub(r"\\(.)", r"\1", string.removeprefix('"').removesuffix('"')) == word
    assert subprocess.check_output(["sh", "-c", f"printf %s {string}"], text=True) == word


def test_the_entry_starts_skep_in_the_tray(entry, program):
    entry.turn(on=True)
    parser = configparser.RawConfigParser()
    parser.read(entry.path)
    assert parser["Desktop Entry"]["exec"] == f'"{program}" "--hidden"'.replace("%", "%%")
    assert parser["Desktop Entry"]["type"] == "Application"


@pytest.mark.skipif(shutil.which("desktop-file-validate") is None, reason="desktop-file-utils is not installed")
def test_the_entry_is_valid(entry):
    entry.turn(on=True)
    told = subprocess.run(["desktop-file-validate", entry.path], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout) == (0, "")


def test_the_agent_is_a_property_list_that_launchd_reads(agent, program):
    agent.turn(on=True)
    assert plistlib.loads(agent.path.read_bytes()) == {
        "Label": "org.skep.skep",
        "ProgramArguments": [str(program), "--hidden"],
        "RunAtLoad": True,
        "LimitLoadToSessionType": "Aqua",
        "ProcessType": "Interactive",
    }


def test_the_command_is_the_app_hidden_in_its_home():
    assert command(None) == [*app_command(), "--hidden"]
    assert command(Path("/other home")) == [*app_command(), "--hidden", "--home", "/other home"]


# --- which file, on which system


def test_each_home_has_its_own_file(tmp_path):
    usual, other = tmp_path / "usual", tmp_path / "other"
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    one, two = (autostart(home, usual, environ, "linux") for home in (usual, other))
    one.turn(on=True)
    assert (tmp_path / "config" / "autostart" / "skep.desktop").exists()
    assert not two.is_on()
    two.turn(on=True)
    assert f'"--home" "{other}"' in two.path.read_text()
    assert "--home" not in one.path.read_text()


def test_without_a_configured_place_it_is_the_usual_one(tmp_path):
    made = autostart(tmp_path, tmp_path, {"HOME": str(tmp_path)}, "linux")
    assert made.path == tmp_path / ".config" / "autostart" / "skep.desktop"


def test_on_a_mac_it_is_a_launch_agent(tmp_path):
    made = autostart(tmp_path, tmp_path, {"HOME": str(tmp_path)}, "darwin")
    assert isinstance(made, LaunchAgent)
    assert made.path == tmp_path / "Library" / "LaunchAgents" / "org.skep.skep.plist"


def test_on_windows_it_is_refused_with_the_reason(tmp_path):
    made = autostart(tmp_path, tmp_path, {}, "win32")
    assert isinstance(made, Refused)
    assert made.refused == module.ON_WINDOWS
    assert not made.is_on()
    made.turn(on=False)
    with raises(SettingsError, match="Startup folder"):
        made.turn(on=True)


# --- as a setting


@pytest.fixture
def settings(tmp_path, entry):
    return SettingsWithAutostart(SettingsFile(tmp_path / "settings.toml"), entry)


def test_the_setting_is_what_the_file_says(settings, entry):
    assert settings.load()[KEY] is False
    settings.save({KEY: True, "compute.share_away": 0.5})
    assert entry.is_on()
    assert settings.load()[KEY] is True
    entry.path.unlink()
    assert settings.load()[KEY] is False
    assert settings.load()["compute.share_away"] == 0.5


def test_nothing_is_remembered_beside_the_file(settings, tmp_path):
    settings.save({KEY: True})
    assert not (tmp_path / "settings.toml").exists()


def test_the_terminal_and_the_app_have_the_same_switch(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SKEP_HOME", raising=False)
    home = Home(tmp_path / "home")
    home.create()
    bootstrap.change_settings(home, {KEY: True})
    (written,) = (tmp_path / "config" / "autostart").iterdir()
    assert str(home.root) in written.read_text()
    assert bootstrap.settings(home).load()[KEY] is True
    assert bootstrap.autostart(home).is_on()
