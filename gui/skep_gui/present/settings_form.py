"""The settings as a form: groups of rows made from the settings' own metadata, and a search over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from skep.core import settings as declared
from skep.core.errors import SkepError
from skep.core.settings import GROUPS, SETTINGS, Kind, Setting, Value
from skep_gui.present.speaker import LANGUAGES, Speaker

PAIR: Final = ("compute.share_using", "compute.share_away")
"""The two limits that belong side by side: while the computer is used, and while it is not."""
LANGUAGE: Final = "app.language"

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
    lacking: Mapping[str, str] = MappingProxyType({})
    """By key, why a setting cannot be obeyed on this computer."""
    offered: Mapping[str, Choices] = MappingProxyType({"compute.device": ()})
    """By key, what there is on this computer to choose from, for settings that are free text in a terminal."""

    def groups(self, values: Mapping[str, Value], search: str = "") -> list[Group]:
        """The groups that have a row left after the search, each with its rows in their declared order."""
        groups = []
        for group, title in GROUPS.items():
            rows = [self.row(each, values) for each in SETTINGS.values() if each.group == group]
            found = tuple(row for row in rows if matches(row.setting, f"{title} {self._words_of(row, title)}", search))
            if found:
                groups.append(Group(self.said(title), found))
        return groups

    def _words_of(self, row: Row, group: str) -> str:
        return f"{row.label} {row.help} {self.said(group)}"

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
            zero=self.said(setting.zero),
            empty=self.said(setting.empty),
        )

    def unavailable(self, setting: Setting) -> str:
        return self.said(self.lacking.get(setting.key, ""))

    def show(self, setting: Setting, value: Value) -> str:
        """A value with its unit, as declared.show writes it, in the language that is set."""
        text = declared.show(setting.key, value)
        match setting.kind:
            case Kind.CHOICE:
                return self._choice(setting, text)
            case Kind.TEXT:
                return text if value else self.said(text)
            case Kind.YES_NO:
                return self.said(text)
            case Kind.WHOLE | Kind.NUMBER | Kind.PERCENT:
                return self.said(text) if text == setting.zero else self.numbers.local(text)

    def _choices(self, setting: Setting, value: str) -> Choices:
        """What is chosen now stands among them, though it may have been taken out of the computer."""
        if setting.key not in self.offered:
            return tuple((each, self._choice(setting, each)) for each in setting.choices)
        choices = (("", self.said(setting.empty)), *self.offered[setting.key])
        return choices if value in dict(choices) else (*choices, (value, value))

    def _choice(self, setting: Setting, value: str) -> str:
        named = LANGUAGES.get(value) if setting.key == LANGUAGE else None
        return named or self.said(value)

    def _range(self, setting: Setting) -> str:
        if setting.kind is Kind.CHOICE:
            return self.tr("One of: %1").replace(
                "%1", ", ".join(self._choice(setting, each) for each in setting.choices)
            )
        return self.said(declared.range_of(setting.key))

    def refusal(self, error: SkepError) -> str:
        """Why a value was not taken."""
        problem = self.tongue.problem(error.problem)
        return f"{problem.title} {problem.hint}".strip()


def matches(setting: Setting, group: str, search: str) -> bool:
    """Whether every word of the search stands somewhere in the setting's words."""
    text = f"{setting.key} {setting.label} {setting.help} {group} {setting.unit}".casefold()
    return all(word in text for word in search.casefold().split())


def slider_steps(setting: Setting) -> tuple[int, int] | None:
    """The least and the greatest percent of a setting that a slider fits; None for every other kind."""
    if setting.kind is not Kind.PERCENT:
        return None
    return round(setting.minimum * 100), round(setting.maximum * 100)
