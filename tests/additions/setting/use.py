"""The setting is listed in its group, set in the terminal, stored, and shown by the app. Exits with 3 without it."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from skep.core.settings.settings import DEFAULTS, GROUPS, SETTINGS
from skep_gui.words.settings import SettingsForm

KEY = "disk.doze_minutes"


def skep(*arguments):
    whole = [sys.executable, "-m", "skep.cli.main", "--json", "--home", home, *arguments]
    return subprocess.run(whole, capture_output=True, text=True, check=False)


with tempfile.TemporaryDirectory() as home:
    if skep("settings", "get", KEY).returncode:
        sys.exit(3)
    listed = json.loads(skep("settings").stdout)["settings"]
    found = next(each for each in listed if each["key"] == KEY)
    assert (found["shown"], found["label"], found["group"]) == ("30 min", "Doze", "Disk")
    groups = [SETTINGS[each["key"]].group for each in listed]
    assert groups == sorted(groups, key=list(GROUPS).index)
    assert skep("settings", "set", KEY, "91").returncode
    assert skep("settings", "set", KEY, "45").returncode == 0
    assert "doze_minutes = 45" in (Path(home) / "settings.toml").read_text()
    assert json.loads(skep("settings", "get", KEY).stdout)["value"] == 45

shown = {row.setting.key: row.shown for group in SettingsForm().groups(DEFAULTS) for row in group.rows}
assert shown[KEY] == "30 min"
