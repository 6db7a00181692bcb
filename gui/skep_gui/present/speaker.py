"""Words that can be translated, without Qt: whoever has a translator hands it in."""

from __future__ import annotations

from collections.abc import Callable

Translate = Callable[[str, str], str]
"""Context and English text to the text in the language that is set."""


def english(_context: str, text: str) -> str:
    return text


class Speaker:
    """What it says goes through `self.tr`, which the tool that collects texts for translation looks for."""

    def __init__(self, translate: Translate = english) -> None:
        self._translate = translate

    def tr(self, text: str) -> str:
        return self._translate(type(self).__name__, text)
