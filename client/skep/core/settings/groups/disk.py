"""Settings of the disk."""

from __future__ import annotations

from typing import Final

from skep.core.settings.setting import Kind, Setting
from skep.core.text import Text

SETTINGS: Final = (
    Setting(
        "disk.cache_gb",
        Text("setting.cache_limit"),
        Text("setting.how_much_disk_downloaded_training"),
        Kind.NUMBER,
        10.0,
        unit="GB",
        minimum=0.1,
        maximum=10_000,
    ),
    Setting(
        "disk.keep_free_gb",
        Text("setting.keep_free"),
        Text("setting.how_much_disk_downloads_always"),
        Kind.NUMBER,
        5.0,
        unit="GB",
        minimum=0.1,
        maximum=10_000,
    ),
)
