"""The texts of the page Settings: the form with its search, the rule tester, the devices, and the presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from types import MappingProxyType
from typing import Final

from skep.core.device import ALL, Device, DeviceKind
from skep.core.plain_text import plain
from skep.core.session.explain import explained
from skep.core.session.snapshot import Snapshot
from skep.core.settings import settings as declared
from skep.core.settings.device_limits import read
from skep.core.settings.setting import Kind, Setting, Value
from skep.core.settings.settings import GROUPS, SETTINGS
from skep.core.text import NOTHING, Text, from_data
from skep.language import units
from skep_gui.words.now import RuleRow
from skep_gui.words.speaker import Speaker, filled

PAIR: Final = ("compute.share_using", "compute.share_away")
"""The two limits that are shown side by side: while the computer is used, and while it is not."""

LIMITS: Final = "compute.device_limits"
"""Shown where there are several cards, with a row of numbers for each."""

Choices = tuple[tuple[str, str], ...]
"""A choice: the value and its text."""


@dataclass(frozen=True)
class Row:
    """One setting. `unavailable` says why it cannot be changed here, "" if it can."""

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
    """The text for 0, if 0 has a special meaning."""
    empty: str = ""


@dataclass(frozen=True)
class Group:
    title: str
    rows: tuple[Row, ...]


class SettingsForm(Speaker):
    lacking: Mapping[str, Text] = MappingProxyType({})
    """By key, why a setting has no effect on this computer."""
    offered: Mapping[str, Choices] = MappingProxyType({"compute.device": ()})
    """By key, the choices on this computer, for settings that are free text in a terminal."""

    def groups(self, values: Mapping[str, Value], search: str = "") -> list[Group]:
        """The groups that have rows after the search, each with its rows in their declared order."""
        groups = []
        for group, title in GROUPS.items():
            said = self.said(title)
            rows = [
                self.row(each, values)
                for each in SETTINGS.values()
                if each.group == group and (each.key != LIMITS or self.concerned(values))
            ]
            found = tuple(row for row in rows if matches(row, said, search))
            if found:
                groups.append(Group(said, found))
        return groups

    def concerned(self, values: Mapping[str, Value]) -> bool:
        """Whether limits of single cards are shown: there are several cards, or there is a limit, which can be removed."""
        return bool(self.offered.get(LIMITS) or values.get(LIMITS))

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
            unavailable=self.said(self.lacking.get(setting.key, NOTHING)),
            choices=self._choices(setting, str(value)),
            zero=self._word(setting.zero),
            empty=self._word(setting.empty),
        )

    def show(self, setting: Setting, value: Value) -> str:
        """A value with its unit, as declared.show writes it, in the current language."""
        text = declared.show(setting.key, value)
        match setting.kind:
            case Kind.CHOICE | Kind.YES_NO:
                return self._word(text)
            case Kind.TEXT:
                return text if value else self._word(text)
            case Kind.WHOLE | Kind.NUMBER | Kind.PERCENT:
                return self._word(text) if text == setting.zero else self.numbers.local(text)

    def _word(self, word: str) -> str:
        """The text for a value that is a word, such as "automatic"; "" if there is none."""
        return self.said(declared.keyword(word)) if word else ""

    def _choices(self, setting: Setting, value: str) -> Choices:
        """Includes the current value, even if that device is no longer present."""
        if setting.key == LIMITS:
            here = self.offered.get(LIMITS, ())
            return here + tuple((card, card) for card in read(value) if card not in dict(here))
        if setting.key not in self.offered:
            return tuple((each, self._word(each)) for each in setting.choices)
        choices = (("", self._word(setting.empty)), *self.offered[setting.key])
        return choices if value in dict(choices) else (*choices, (value, value))

    def _range(self, setting: Setting) -> str:
        if setting.kind is Kind.CHOICE:
            return filled(self.tr("One of: %1"), ", ".join(map(self._word, setting.choices)))
        return self.said(declared.range_of(setting.key))


def matches(row: Row, group: str, search: str) -> bool:
    """Whether the row's texts contain every word of the search."""
    text = f"{row.setting.key} {row.label} {row.help} {group} {row.setting.unit}".casefold()
    return all(word in text for word in search.casefold().split())


@dataclass(frozen=True)
class DeviceRow:
    name: str
    detail: str
    usable: bool


@dataclass(frozen=True)
class Preset:
    """Suggested limits; `values` contains only settings that this version supports."""

    name: str
    meaning: str
    using: str
    away: str
    values: dict[str, Value]


class Devices(Speaker):
    def rows(self, devices: Sequence[Device]) -> list[DeviceRow]:
        return [DeviceRow(plain(each.name), self._detail(each), each.unusable is None) for each in devices]

    def _detail(self, device: Device) -> str:
        if device.unusable is not None:
            return plain(self.said(device.unusable))
        if device.kind is DeviceKind.CPU:
            return self.tr("Works for small projects.")
        if device.memory_total is None:
            return self.tr("Ready to train.")
        return filled(self.tr("Ready to train, with %1 of memory."), self.numbers.size(device.memory_total))

    def offered(self, devices: Sequence[Device]) -> Choices:
        """The usable devices, each by its value in the setting and its name; equal names are numbered; several cards as all."""
        usable = [each for each in devices if each.unusable is None]
        together = ((ALL, self.tr("All graphics cards")),) if self.limited(devices) else ()
        return together + _named(usable)

    def limited(self, devices: Sequence[Device]) -> Choices:
        """The usable cards, each of which can have limits of its own; none where there is one."""
        cards = [each for each in devices if each.unusable is None and each.kind in (DeviceKind.NVIDIA, DeviceKind.AMD)]
        return _named(cards) if len(cards) > 1 else ()

    def sentence(self, devices: Sequence[Device]) -> str:
        usable = [each for each in devices if each.unusable is None]
        graphics = [each for each in usable if each.kind is not DeviceKind.CPU]
        if graphics:
            return filled(self.tr("skep found %1."), plain(graphics[0].name))
        if usable:
            return self.tr("skep found no GPU it can use, so the processor will train. That suits small projects.")
        return self.tr("skep found nothing it can train on.")

    def presets(self) -> list[Preset]:
        return [
            self._preset(self.tr("Gentle"), self.tr("Quiet and cool."), 0.0, 0.5),
            self._preset(self.tr("Balanced"), self.tr("A little while you work, most of the time else."), 0.2, 0.75),
            self._preset(self.tr("Generous"), self.tr("A good part while you work, all of the time else."), 0.4, 1.0),
        ]

    def _preset(self, name: str, meaning: str, using: float, away: float) -> Preset:
        shown = units.percent(using) if using else self.tr("pauses")
        values: dict[str, Value] = {"compute.share_away": away, "compute.share_using": using}
        return Preset(
            name,
            meaning,
            filled(self.tr("While I use this computer: %1"), shown),
            filled(self.tr("While I'm away: %1"), units.percent(away)),
            values,
        )


def _named(devices: Sequence[Device]) -> Choices:
    names = [plain(each.name) for each in devices]
    return tuple(
        (each.choice, f"{name} ({each.choice})" if names.count(name) > 1 else name)
        for each, name in zip(devices, names, strict=True)
    )


OPPOSITES: Final = (("input", "away"), ("locked", "unlocked"), ("battery", "mains"), ("metered", "unmetered"))
"""Conditions that exclude each other: at most one of them can be assumed."""


@dataclass(frozen=True)
class Answer:
    """The result; the first consequence decides."""

    sentence: str
    consequences: tuple[RuleRow, ...] = ()
    remarks: tuple[str, ...] = ()


class RuleWords(Speaker):
    def cases(self) -> dict[str, str]:
        """The names of `explain --if`, and their texts."""
        return {
            "input": self.tr("I use this computer"),
            "away": self.tr("nobody uses it"),
            "battery": self.tr("it runs on battery"),
            "mains": self.tr("it runs on mains"),
            "fullscreen": self.tr("a full-screen program opens"),
            "call": self.tr("a call or film runs"),
            "busy": self.tr("another program uses the GPU"),
            "memory": self.tr("GPU memory runs short"),
            "processor": self.tr("others need the processor"),
            "hot": self.tr("the device gets too warm"),
            "metered": self.tr("the connection is metered"),
            "unmetered": self.tr("the connection is not metered"),
            "locked": self.tr("the screen is locked"),
            "unlocked": self.tr("the screen is unlocked"),
        }

    def answer(self, snapshot: Snapshot, words: tuple[str, ...], now: float, zone: tzinfo) -> Answer:
        """`now` is wall clock seconds. Without words the answer asks for a choice."""
        if not words:
            return Answer(self.tr("Choose a situation."))
        body = explained(snapshot, words, now, zone)
        allowance = body["allowance"]
        said = self._said(allowance["reason"])
        if not allowance["network"]:
            said = filled(self.tr("%1 skep leaves the swarm meanwhile."), said)
        return Answer(
            said,
            tuple(
                RuleRow(
                    self._said(each["label"]),
                    self._said(each["allowance"]["reason"]),
                    units.percent(each["allowance"]["share"]),
                    each["setting"],
                )
                for each in body["holding"]
            ),
            tuple(map(self._said, body["remarks"])),
        )

    def _said(self, data: object) -> str:
        return self.said(from_data(data))


def without_opposite(words: tuple[str, ...], chosen: str) -> tuple[str, ...]:
    """The words that are compatible with the one chosen last."""
    against = {other for pair in OPPOSITES if chosen in pair for other in pair if other != chosen}
    return tuple(word for word in words if word not in against)
