"""Base class for texts of the app, without Qt: the translator is a parameter.

A page's own texts are in `self.tr`, in English, and are translated there; values are inserted afterwards for
%1, %2. Texts of the core, the adapters and the worker are `Text`, which `said` translates.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from skep.core.settings.settings import SETTINGS
from skep.core.text import Problem, Text
from skep.language.translator import ENGLISH, Translator, translator
from skep.language.units import Numbers

Translate = Callable[[str, str], str]
"""Maps a context and an English text to the text in the current language."""


def as_written(_context: str, text: str) -> str:
    return text


def filled(text: str, *values: str) -> str:
    """The text with the values at %1, %2 and so on; a %1 within a value is not replaced."""
    return re.sub(r"%(\d)", lambda place: values[int(place[1]) - 1], text)


def in_quotes(text: str) -> str:
    return f"“{text}”"


def core_translator(language: str, numbers: Numbers, quoted: Callable[[str], str] = in_quotes) -> Translator:
    """The translator for texts of the core; it names settings by their labels, where a terminal names their keys."""

    def label(key: str) -> str:
        return quoted(made.say(SETTINGS[key].label)) if key in SETTINGS else key

    made = translator(language, numbers, label)
    return made


@dataclass(frozen=True)
class Tongue:
    """A language with its formats. `core` translates texts of the core."""

    translate: Translate = as_written
    core: Translator = field(default_factory=lambda: core_translator(ENGLISH, Numbers()))
    numbers: Numbers = field(default_factory=Numbers)

    def said(self, message: Text) -> str:
        return self.core.say(message)

    def told(self, problem: Problem) -> str:
        """A problem and what can be done about it, on one line."""
        return " ".join(part for part in self.core.problem(problem) if part)


english = Tongue()


class Speaker:
    """Texts must go through `self.tr`, which lupdate looks for."""

    def __init__(self, tongue: Tongue = english) -> None:
        self.tongue, self.numbers, self.said = tongue, tongue.numbers, tongue.said

    def tr(self, text: str) -> str:
        return self.tongue.translate(type(self).__name__, text)
