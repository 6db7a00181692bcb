"""The language of a command's output: set once, when the command starts.

What the core says is a `Text` and goes through `say`. A verb's own strings stand in English where they are printed, in
`tr("…")`; a test compares those with `locale/de/terminal.po`.
"""

from __future__ import annotations

import gettext
from dataclasses import replace
from typing import Any

from skep.core.text import Text, from_data
from skep.language.translator import ENGLISH, Translator, catalogue, translator
from skep.language.units import Numbers, written_in


class _AsTyped(gettext.NullTranslations):
    """Keeps the words that are typed after a verb (`automatic`, `off`) English: the terminal takes no others."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self.add_fallback(catalogue(language))
        self._typed = catalogue(ENGLISH)

    def gettext(self, message: str) -> str:
        return self._typed.gettext(message) if message.startswith("keyword.") else super().gettext(message)


def _translator(language: str) -> Translator:
    return replace(translator(language, written_in(language)), catalogue=_AsTyped(language))


class _Speech:
    """What is spoken now: English until `speak` says otherwise."""

    numbers, words = written_in(ENGLISH), _translator(ENGLISH)


def speak(language: str) -> None:
    """From now on, in this language."""
    _Speech.numbers, _Speech.words = written_in(language), _translator(language)


def say(message: Text) -> str:
    """A message of the core in words."""
    return _Speech.words.say(message)


def tr(english: str, /, **args: Any) -> str:
    """A string of the terminal's own; `count` selects the plural. `english` must be a literal."""
    return _Speech.words.tr(english, **args)


def numbers() -> Numbers:
    """Numbers, sizes and dates as they are written in the language that is spoken."""
    return _Speech.numbers


def worded(value: Any) -> Any:
    """`value`, which is to become JSON, with every message in it in words."""
    match value:
        case Text():
            return say(value)
        case {"id": str(), "args": dict(), **rest} if not rest:
            return say(from_data(value))
        case dict():
            return {(say(key) if isinstance(key, Text) else key): worded(item) for key, item in value.items()}
        case list() | tuple():
            return [worded(each) for each in value]
        case _:
            return value
