"""The settings as a form: groups of rows made from the settings' own metadata, and a search over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from skep.core.errors import SkepError
from skep.core.settings import settings as declared
from skep.core.settings.setting import Kind, Setting, Value
from skep.core.settings.settings import GROUPS, SETTINGS
from skep.core.text import NOTHING, Text
from skep_gui.words.speaker import Speaker

PAIR: Final = ("compute.share_using", "compute.share_away")
"""The two limits that belong side by side: while the computer is used, and while it is not."""

Choices = tuple[tuple[str, str], ...]
"""What may be chosen: the value and its word."""


@dataclass(frozen=True)
class Row:
    """One setting. `unavailable` says why it cannot be changed here, "" where it can."""

    setting: Setting
    value: Value
    label: str
    help: str
    shown: str
    default: str
    range: str
    changed: bool
    unavailable: str = ""
    choices: Choices = ()
    zero: str = ""
    """The word for 0, where 0 means something of its own."""
    empty: str = ""


@dataclass(frozen=True)
class Group:
    title: str
    rows: tuple[Row, ...]


class SettingsForm(Speaker):
    lacking: Mapping[str, Text] = MappingProxyType({})
    """By key, why a setting cannot be obeyed on this computer."""
    offered: Mapping[str, Choices] = MappingProxyType({"compute.device": ()})
    """By key, what there is on this computer to choose from, for settings that are free text in a terminal."""

    def groups(self, values: Mapping[str, Value], search: str = "") -> list[Group]:
        """The groups that have a row left after the search, each with its rows in their declared order."""
        groups = []
        for group, title in GROUPS.items():
            said = self.said(title)
            rows = [self.row(each, values) for each in SETTINGS.values() if each.group == group]
            found = tuple(row for row in rows if matches(row, said, search))
            if found:
                groups.append(Group(said, found))
        return groups

    def row(self, setting: Setting, values: Mapping[str, Value]) -> Row:
        value = values.get(setting.key, setting.default)
        return Row(
            setting=setting,
            value=value,
            label=self.said(setting.label),
            help=self.said(setting.help),
            shown=self.show(setting, value),
            default=self.show(setting, setting.default),
            range=self._range(setting),
            changed=value != setting.default,
            unavailable=self.unavailable(setting),
            choices=self._choices(setting, str(value)),
            zero=self._word(setting.zero),
            empty=self._word(setting.empty),
        )

    def unavailable(self, setting: Setting) -> str:
        return self.said(self.lacking.get(setting.key, NOTHING))

    def show(self, setting: Setting, value: Value) -> str:
        """A value with its unit, as declared.show writes it, in the language that is set."""
        text = declared.show(setting.key, value)
        match setting.kind:
            case Kind.CHOICE | Kind.YES_NO:
                return self._word(text)
            case Kind.TEXT:
                return text if value else self._word(text)
            case Kind.WHOLE | Kind.NUMBER | Kind.PERCENT:
                return self._word(text) if text == setting.zero else self.numbers.local(text)

    def _word(self, word: str) -> str:
        """A value that is a word, such as "automatic"; "" for none."""
        return self.said(declared.keyword(word)) if word else ""

    def _choices(self, setting: Setting, value: str) -> Choices:
        """What is chosen now stands among them, though it may have been taken out of the computer."""
        if setting.key not in self.offered:
            return tuple((each, self._word(each)) for each in setting.choices)
        choices = (("", self._word(setting.empty)), *self.offered[setting.key])
        return choices if value in dict(choices) else (*choices, (value, value))

    def _range(self, setting: Setting) -> str:
        if setting.kind is Kind.CHOICE:
            return self.tr("One of: %1").replace("%1", ", ".join(map(self._word, setting.choices)))
        return self.said(declared.range_of(setting.key))

    def refusal(self, error: SkepError) -> str:
        """Why a value was not taken."""
        return self.tongue.told(error.problem)


def matches(row: Row, group: str, search: str) -> bool:
    """Whether every word of the search stands somewhere in the row's words."""
    text = f"{row.setting.key} {row.label} {row.help} {group} {row.setting.unit}".casefold()
    return all(word in text for word in search.casefold().split())


def slider_steps(setting: Setting) -> tuple[int, int] | None:
    """The least and the greatest percent of a setting that a slider fits; None for every other kind."""
    if setting.kind is not Kind.PERCENT:
        return None
    return round(setting.minimum * 100), round(setting.maximum * 100)
