"""Text from somewhere else, as people may be shown it."""

from __future__ import annotations

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories without a glyph: control, bidi and zero-width characters, surrogates, separators of lines."""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and symbols that show nothing, in categories that otherwise do."""


def plain(text: str) -> str:
    """The text as people will see it: one line, nothing hidden in it."""
    spaced = (" " if character.isspace() else character for character in text)
    kept = "".join(character for character in spaced if not _is_hidden(character))
    return unicodedata.normalize("NFC", kept).strip()


def _is_hidden(character: str) -> bool:
    return character in _BLANK or unicodedata.category(character) in _HIDDEN
