"""Every setting there is, in the order in which they are shown. It must hold no behaviour: that is in `settings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final

from skep.core.settings.setting import Setting, Value
from skep.core.text import Text

GROUPS: Final[Mapping[str, Text]] = MappingProxyType(
    {
        "compute": Text("setting.group_compute"),
        "memory": Text("setting.group_memory"),
        "heat": Text("setting.heat_power"),
        "when": Text("setting.group_when"),
        "network": Text("setting.group_network"),
        "disk": Text("setting.group_disk"),
        "app": Text("setting.group_app"),
    }
)
"""Titles of the groups, in the order in which they are shown."""

_FILES: Final = (
    "compute",
    "memory",
    "heat",
    "when",
    "network",
    "disk",
    "app",
)
"""The modules of `groups` whose `SETTINGS` declare settings; a setting is shown in the group that its key names."""


def _declared() -> Sequence[Setting]:
    found = [setting for file in _FILES for setting in import_module(f"skep.core.settings.groups.{file}").SETTINGS]
    return sorted(found, key=lambda setting: [*GROUPS].index(setting.group))


SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType({setting.key: setting for setting in _declared()})
"""Every setting by its key."""

DEFAULTS: Final[Mapping[str, Value]] = MappingProxyType({key: setting.default for key, setting in SETTINGS.items()})
