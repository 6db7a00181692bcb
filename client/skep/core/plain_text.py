"""Cleaning of text from other sources before it is shown to the user."""

from __future__ import annotations

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories without a glyph: control, bidi and zero-width characters, surrogates, separators of lines."""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters without a glyph in categories whose characters usually have one."""
LONGEST_REASON: Final = 200
"""Characters of an exception's message that are shown."""


def plain(text: str) -> str:
    """The text on one line, without hidden characters."""
    spaced = (" " if character.isspace() else character for character in text)
    kept = "".join(character for character in spaced if not _is_hidden(character))
    return unicodedata.normalize("NFC", kept).strip()


def first_line(error: BaseException) -> str:
    """Its message for a sentence: one line, without the full stop; its class's name if it has none."""
    return (str(error).splitlines() or [""])[0].rstrip(".")[:LONGEST_REASON] or type(error).__name__


def _is_hidden(character: str) -> bool:
    return character in _BLANK or unicodedata.category(character) in _HIDDEN
