"""Compiles the catalogues: every locale/LANGUAGE/AREA.po into one locale/LANGUAGE/LC_MESSAGES/skep.mo.

python assets/catalogues.py            compile what is older than its sources
python assets/catalogues.py missing    also name what has no German yet, and end with 1 if there is any
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LOCALE: Final = Path(__file__).resolve().parent.parent / "client" / "skep" / "language" / "locale"
LANGUAGES: Final = sorted(folder.name for folder in LOCALE.iterdir())


def sources(language: str) -> list[Path]:
    return sorted((LOCALE / language).glob("*.po"))


def compiled(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "skep.mo"


def read(language: str) -> Catalog:
    """All areas of a language as one catalogue. Raises ValueError for an id that occurs in two of them."""
    whole = Catalog(locale=language, domain="skep", charset="utf-8")
    places: dict[tuple[str, str | None], Path] = {}
    for path in sources(language):
        with path.open("rb") as file:
            for message in read_po(file, locale=language, abort_invalid=True):
                if not message.id:
                    continue
                key = (message.id[0] if isinstance(message.id, tuple) else message.id, message.context)
                if key in places:
                    raise ValueError(f"{key[0]!r} stands in {places[key].name} and in {path.name}")
                places[key] = path
                whole.add(message.id, message.string, context=message.context)
    return whole


def is_stale(language: str) -> bool:
    made = compiled(language)
    return not made.exists() or any(path.stat().st_mtime > made.stat().st_mtime for path in sources(language))


def compile_stale() -> None:
    for language in LANGUAGES:
        if is_stale(language):
            made, words = compiled(language), read(language)
            made.parent.mkdir(exist_ok=True)
            new = made.with_suffix(f".{os.getpid()}")
            with new.open("wb") as file:
                write_mo(file, words)
            new.replace(made)  # atomic, so that a program that reads it meanwhile gets the whole old file


def missing() -> list[str]:
    """The ids that have an English entry and no German one."""
    german = {(m.id if isinstance(m.id, str) else m.id[0]) for m in read("de") if m.id and m.string}
    english = [m.id if isinstance(m.id, str) else m.id[0] for m in read("en") if m.id]
    return [each for each in english if each not in german]


if __name__ == "__main__":
    compile_stale()
    if "missing" in sys.argv[1:]:
        names = missing()
        print("\n".join(names) or "everything has German")
        sys.exit(bool(names))
