"""The settings as a form: groups of rows made from the settings' own metadata, and a search over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from skep.core import settings as declared
from skep.core.settings import GROUPS, SETTINGS, Kind, Setting, Value
from skep_gui.present.speaker import Speaker

PAIR: Final = ("compute.share_using", "compute.share_away")
"""The two limits that belong side by side: while the computer is used, and while it is not."""


@dataclass(frozen=True)
class Row:
    """One setting. `unavailable` says why it cannot be changed here, "" where it can."""

    setting: Setting
    value: Value
    shown: str
    range: str
    changed: bool
    unavailable: str = ""


@dataclass(frozen=True)
class Group:
    title: str
    rows: tuple[Row, ...]


class SettingsForm(Speaker):
    def groups(self, values: Mapping[str, Value], search: str = "") -> list[Group]:
        """The groups that have a row left after the search, each with its rows in their declared order."""
        groups = []
        for group, title in GROUPS.items():
            rows = [self.row(each, values) for each in SETTINGS.values() if each.group == group]
            found = tuple(row for row in rows if matches(row.setting, title, search))
            if found:
                groups.append(Group(title, found))
        return groups

    def row(self, setting: Setting, values: Mapping[str, Value]) -> Row:
        value = values.get(setting.key, setting.default)
        return Row(
            setting=setting,
            value=value,
            shown=declared.show(setting.key, value),
            range=declared.range_of(setting.key),
            changed=value != setting.default,
            unavailable=self.unavailable(setting),
        )

    def unavailable(self, setting: Setting) -> str:
        return "" if setting.effective else self.tr("Comes with a later version of skep.")


def matches(setting: Setting, group: str, search: str) -> bool:
    """Whether every word of the search stands somewhere in the setting's words."""
    text = f"{setting.key} {setting.label} {setting.help} {group} {setting.unit}".casefold()
    return all(word in text for word in search.casefold().split())


def slider_steps(setting: Setting) -> tuple[int, int] | None:
    """The least and the greatest percent of a setting that a slider fits; None for every other kind."""
    if setting.kind is not Kind.PERCENT:
        return None
    return round(setting.minimum * 100), round(setting.maximum * 100)
