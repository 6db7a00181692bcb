"""Words that can be translated, without Qt: whoever has a translator hands it in.

There are two kinds of words. What a page says itself stands in `self.tr`, in English, and is translated where it stands,
values put in afterwards for %1, %2. What the core, the adapters and the worker say (why the share is what it is, what
went wrong, what a setting is for) arrives as an English sentence with its values in it already, through pipes and out of
the ledger: they know no translator, and what is kept must not depend on the language of the day. Such a sentence goes
through `Tongue.said`, which recognises it; how is told in `hearing`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from skep.core.model import Problem
from skep.core.settings import SETTINGS
from skep_gui.present.numbers import Numbers

LANGUAGES: Final = {"en": "English", "de": "Deutsch"}
"""Each language by its own name, which whoever looks for it can read."""

Translate = Callable[[str, str], str]
"""Context and English text to the text in the language that is set."""


def as_written(_context: str, text: str) -> str:
    return text


def as_said(text: str) -> str:
    return text


def in_quotes(text: str) -> str:
    return f"“{text}”"


_KEY: Final = re.compile("|".join(map(re.escape, sorted(SETTINGS, key=len, reverse=True))))


@dataclass(frozen=True)
class Tongue:
    """A language with what belongs to it. `said` translates what the core said."""

    translate: Translate = as_written
    said: Callable[[str], str] = as_said
    numbers: Numbers = field(default_factory=Numbers)
    quoted: Callable[[str], str] = in_quotes

    def problem(self, problem: Problem) -> Problem:
        """Its settings by their names on screen, where the core, which speaks to a terminal too, says their keys."""
        return replace(problem, title=self._named(problem.title), hint=self._named(problem.hint))

    def _named(self, sentence: str) -> str:
        return _KEY.sub(self._name, self.said(sentence))

    def _name(self, found: re.Match[str]) -> str:
        return self.quoted(self.said(SETTINGS[found.group()].label))


english = Tongue()


class Speaker:
    """What it says goes through `self.tr`, which the tool that collects texts for translation looks for."""

    def __init__(self, tongue: Tongue = english) -> None:
        self.tongue, self.numbers, self.said = tongue, tongue.numbers, tongue.said

    def tr(self, text: str) -> str:
        return self.tongue.translate(type(self).__name__, text)
