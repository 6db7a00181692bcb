"""Words without Qt: whoever has a translator hands it in.

What a page says itself stands in `self.tr`, in English, and is translated where it stands, values put in afterwards for
%1, %2. What the core, the adapters and the worker say is a `Text`, which `said` puts into words.
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
"""Context and English text to the text in the language that is set."""


def as_written(_context: str, text: str) -> str:
    return text


def filled(text: str, *values: str) -> str:
    """The text with the values in the places %1, %2 and so on; what a value itself holds is no place."""
    return re.sub(r"%(\d)", lambda place: values[int(place[1]) - 1], text)


def in_quotes(text: str) -> str:
    return f"“{text}”"


def core_translator(language: str, numbers: Numbers, quoted: Callable[[str], str] = in_quotes) -> Translator:
    """Of what the core says; its settings by their names on screen, where a terminal says their keys."""

    def label(key: str) -> str:
        return quoted(made.say(SETTINGS[key].label)) if key in SETTINGS else key

    made = translator(language, numbers, label)
    return made


@dataclass(frozen=True)
class Tongue:
    """A language with what belongs to it. `core` says what the core said."""

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
    """What it says goes through `self.tr`, which the tool that collects texts for translation looks for."""

    def __init__(self, tongue: Tongue = english) -> None:
        self.tongue, self.numbers, self.said = tongue, tongue.numbers, tongue.said

    def tr(self, text: str) -> str:
        return self.tongue.translate(type(self).__name__, text)
