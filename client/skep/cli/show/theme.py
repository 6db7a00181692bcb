"""The colours of the terminal: one table from a tone of meaning to a colour. Nothing else names a colour."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from rich.theme import Theme


class Tone(StrEnum):
    """What a piece of text means."""

    INK = "ink"
    SOFT = "soft"
    STRONG = "strong"
    HONEY = "honey"
    LEAF = "leaf"
    EMBER = "ember"
    SLATE = "slate"


# Text keeps the terminal's own foreground, which is readable on its background; only accents bring a colour, chosen
# between the light and the dark table of the app so that each reads on both.
STYLES: Final = {
    Tone.INK: "none",
    Tone.SOFT: "dim",
    Tone.STRONG: "bold",
    Tone.HONEY: "#d08a10",
    Tone.LEAF: "#3f9a63",
    Tone.EMBER: "#e0603a",
    Tone.SLATE: "#7d8c9b",
}


def theme() -> Theme:
    return Theme({str(tone): style for tone, style in STYLES.items()})
