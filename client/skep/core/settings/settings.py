"""All settings in display order, with their checks, parsing and formatting.

The settings are declared in `groups`; everything here is derived from the declarations.

A percentage is a fraction 0..1 here and in every message, and a percent value in the terminal and in the settings file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final

from skep.core.errors import SettingsError
from skep.core.settings.setting import Kind, Setting, Value
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
"""Titles of the groups, in display order."""

_FILES: Final = (
    "computing",
    "program",
)
"""The modules of `groups` whose `SETTINGS` declare settings; the key of a setting begins with its group."""


def _declared() -> Sequence[Setting]:
    found = [setting for file in _FILES for setting in import_module(f"skep.core.settings.groups.{file}").SETTINGS]
    return sorted(found, key=lambda setting: [*GROUPS].index(setting.group))


SETTINGS: Final[Mapping[str, Setting]] = MappingProxyType({setting.key: setting for setting in _declared()})
"""Every setting by its key."""

DEFAULTS: Final[Mapping[str, Value]] = MappingProxyType({key: setting.default for key, setting in SETTINGS.items()})

TEXT_LIMIT: Final = 500
"""Maximum length of a text value in characters."""

_YES: Final = ("yes", "true", "on")
_NO: Final = ("no", "false", "off")


def declared(key: str) -> Setting:
    """The declaration of `key`. Raises SettingsError that suggests the nearest key."""
    if setting := SETTINGS.get(key):
        return setting
    near = nearest(key)
    shown = "".join(character if character.isprintable() else "?" for character in key[:60])
    raise SettingsError(
        Text("setting.there_no_setting", shown=shown),
        Text("setting.did_you_mean", near=near) if near else Text("setting.skep_settings_lists_all_them"),
    )


def nearest(key: str) -> str | None:
    """The known key most similar to `key`; None when none is close."""
    import difflib  # noqa: PLC0415 - only what is mistyped needs it

    names = {known.rpartition(".")[2]: known for known in SETTINGS} | {known: known for known in SETTINGS}
    close = difflib.get_close_matches(key.lower(), names, n=1, cutoff=0.6)
    return names[close[0]] if close else None


def parse(key: str, text: str) -> Value:
    """The value of the user's text for `key`, checked as by `check`; "30" and "30 %" both mean 0.3.

    Raises SettingsError.
    """
    return check(key, _read(declared(key), text.strip()))


def check(key: str, value: object) -> Value:
    """`value` with the setting's own type, within its bounds.

    Raises SettingsError.
    """
    setting = declared(key)
    match setting.kind:
        case Kind.YES_NO:
            fitting = isinstance(value, bool)
        case Kind.WHOLE:
            fitting = isinstance(value, int) and not isinstance(value, bool) and _within(setting, value)
        case Kind.NUMBER | Kind.PERCENT:
            fitting = isinstance(value, int | float) and not isinstance(value, bool) and _within(setting, value)
            value = float(value) if fitting and isinstance(value, int) else value
        case Kind.CHOICE:
            fitting = value in setting.choices
        case Kind.TEXT:
            fitting = isinstance(value, str) and _matches(setting, value)
    if not fitting or not isinstance(value, Value):
        raise SettingsError(
            Text("setting.must", key=key, range_of=range_of(key)),
            Text("setting.unless_set", show=show(key, setting.default)),
        )
    return value


def show(key: str, value: Value) -> str:
    """`value` as text with its unit: "30 %", "automatic", "yes". `parse` accepts this text."""
    setting = declared(key)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value or setting.empty
    if value == 0 and setting.zero:
        return setting.zero
    return _with_unit(setting, value)


def range_of(key: str) -> Text:
    """The valid values of `key` as text: "a percentage from 5 % to 100 %"."""
    setting = declared(key)
    match setting.kind:
        case Kind.YES_NO:
            return Text("setting.range_yes_no")
        case Kind.CHOICE:
            return Text("setting.one", names=setting.choices)
        case Kind.TEXT:
            if setting.empty:
                return Text("setting.form_or_empty", form=setting.form, empty=keyword(setting.empty))
            return setting.form
        case Kind.WHOLE | Kind.NUMBER | Kind.PERCENT:
            return _bounds(setting)


def keyword(word: str) -> Text:
    """A value written as a word, such as "automatic", for display; the terminal accepts the word itself."""
    return Text("keyword." + word.replace(" ", "_"))


_RANGES: Final = {
    Kind.WHOLE: Text("setting.range_whole"),
    Kind.NUMBER: Text("setting.range_number"),
    Kind.PERCENT: Text("setting.range_percent"),
}


def _bounds(setting: Setting) -> Text:
    low, high = _quantity(setting, setting.minimum), _quantity(setting, setting.maximum)
    if setting.zero:
        return Text(
            "setting.bounds_or_zero", kind=_RANGES[setting.kind], low=low, high=high, zero=keyword(setting.zero)
        )
    return Text("setting.bounds", kind=_RANGES[setting.kind], low=low, high=high)


def _quantity(setting: Setting, value: float) -> Text:
    number = float(_rounded(value * 100) if setting.kind is Kind.PERCENT else value)
    return (
        Text("setting.quantity", number=number, unit=setting.unit)
        if setting.unit
        else Text("setting.bare", number=number)
    )


def to_file(key: str, value: Value) -> Value:
    """`value` as written in the settings file: fractions as percent, as an integer where possible."""
    if declared(key).kind is not Kind.PERCENT or isinstance(value, str | bool):
        return value
    percent = _rounded(value * 100)
    return int(percent) if percent.is_integer() else percent


def from_file(key: str, value: object) -> Value:
    """The value in a settings file, checked as by `check`. Raises SettingsError."""
    if declared(key).kind is Kind.PERCENT and isinstance(value, int | float) and not isinstance(value, bool):
        return check(key, _fraction(value))
    return check(key, value)


def _within(setting: Setting, value: float) -> bool:
    return bool(setting.zero and value == 0) or setting.minimum <= value <= setting.maximum


def _matches(setting: Setting, value: str) -> bool:
    if not value:
        return bool(setting.empty)
    return len(value) <= TEXT_LIMIT and re.fullmatch(setting.pattern, value, re.ASCII) is not None


def _read(setting: Setting, text: str) -> object:
    """`text` as a value of the setting's kind; the text itself if invalid, which `check` refuses."""
    match setting.kind:
        case Kind.YES_NO:
            return True if text.lower() in _YES else False if text.lower() in _NO else text
        case Kind.CHOICE:
            return text.lower()
        case Kind.TEXT:
            return "" if text == setting.empty else text
        case Kind.WHOLE | Kind.NUMBER | Kind.PERCENT:
            return _read_number(setting, text)


def _read_number(setting: Setting, text: str) -> object:
    if setting.zero and text.lower() == setting.zero:
        return 0
    number = _number(text.removesuffix(setting.unit).rstrip() if setting.unit else text)
    return _fraction(number) if setting.kind is Kind.PERCENT and not isinstance(number, str) else number


def _number(text: str) -> int | float | str:
    if re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"[+-]?\d{1,18}\.\d{1,18}", text, re.ASCII):
        return float(text)
    return text


def _fraction(percent: float) -> float:
    # a Python int can be too large for a float; it is out of bounds in any case
    return _rounded(percent / 100) if abs(percent) < 1e9 else math.inf  # noqa: PLR2004


def _rounded(value: float) -> float:
    """`value` without the rounding errors of conversion between fractions and percent."""
    return float(f"{value:.12g}")


def _with_unit(setting: Setting, value: float) -> str:
    number = _rounded(value * 100) if setting.kind is Kind.PERCENT else value
    return f"{number:.12g}" + (f" {setting.unit}" if setting.unit else "")
