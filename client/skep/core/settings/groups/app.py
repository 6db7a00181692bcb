"""Settings of the app itself."""

from __future__ import annotations

from typing import Final

from skep.core.settings.setting import Kind, Setting
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "app.start_at_login",
        Text("setting.start_login"),
        Text("setting.start_skep_tray_when_you"),
        Kind.YES_NO,
        default=False,
    ),
    Setting(
        "app.start_minimised",
        Text("setting.start_minimised"),
        Text("setting.start_tray_without_opening_window"),
        Kind.YES_NO,
        default=False,
    ),
    Setting(
        "app.notifications",
        Text("setting.notifications_label"),
        Text("setting.what_skep_tells_you_about"),
        Kind.CHOICE,
        "problems",
        choices=("problems", "all", "none"),
    ),
    Setting(
        "app.check_updates",
        Text("setting.check_updates"),
        Text("setting.look_new_version_skep_when"),
        Kind.YES_NO,
        default=True,
    ),
    Setting(
        "app.language",
        Text("setting.language_label"),
        Text("setting.language_window_tray"),
        Kind.CHOICE,
        "system",
        choices=("system", "en", "de"),
    ),
    Setting(
        "app.theme",
        Text("setting.theme_label"),
        Text("setting.colours_window"),
        Kind.CHOICE,
        "system",
        choices=("system", "light", "dark"),
    ),
)
