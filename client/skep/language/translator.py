"""Translation of messages and of a front end's own strings to the language in the settings.

The catalogues are gettext's. A message from the core is looked up by its id, in the language's catalogue and then in
the English one. A string of a front end is written in English where it is shown and looked up as such. Both have named
places, ``{share:percent}``, whose part behind the colon says how a raw value is shown (`translator`).
"""

from __future__ import annotations

import functools
import gettext
import os
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from skep.core.text import Problem, Text
from skep.language import units
from skep.language.units import WRITTEN_PLAINLY, Numbers

LOCALE: Final = Path(__file__).parent / "locale"
DOMAIN: Final = "skep"
ENGLISH: Final = "en"
LANGUAGES: Final = frozenset(folder.name for folder in LOCALE.iterdir())
COUNT: Final = "count"
"""The argument that selects the plural."""

_JOINTS: Final = {"sentences": " ", "clauses": "; ", "words": " "}
"""What stands between the parts of a tuple, by the kind of its place; a comma otherwise."""

Show = Callable[[Any], str]
"""A raw value to its text."""


@dataclass(frozen=True)
class Translator(string.Formatter):
    """One language. `shows` are the kinds of places, by name; `show_plain` shows what has no kind."""

    catalogue: gettext.NullTranslations
    shows: Mapping[str, Show] = field(default_factory=dict)
    show_plain: Callable[[Any, str], str] = format

    def say(self, message: Text) -> str:
        """A message from the core in words; "" for no message."""
        return self._filled(self._entry(message.id, message.args), message.args) if message else ""

    def has(self, message: Text) -> bool:
        """Whether there is an entry for it."""
        return self._entry(message.id, message.args) != message.id

    def tr(self, english: str, /, **args: Any) -> str:
        """A front end's own string, with its places filled."""
        return self._filled(self._entry(english, args), args)

    def problem(self, problem: Problem) -> tuple[str, str]:
        """Its title and its hint in words."""
        return self.say(problem.title), self.say(problem.hint)

    def _entry(self, msgid: str, args: Mapping[str, Any]) -> str:
        count = args.get(COUNT)
        if isinstance(count, int):
            # "" or, for one, the id itself where the entry has no plural
            plural = self.catalogue.ngettext(msgid, "", count)
            if plural and (count != 1 or plural != msgid):
                return plural
        return self.catalogue.gettext(msgid)

    def _filled(self, entry: str, args: Mapping[str, Any]) -> str:
        return self.vformat(entry, (), args) if args else entry

    def format_field(self, value: Any, kind: str) -> str:
        """What stands in a place `{name:kind}`."""
        if isinstance(value, Text):
            value = self.say(value)
        elif isinstance(value, tuple):
            value = _JOINTS.get(kind, ", ").join(self.format_field(each, "") for each in value)
            kind = "" if kind in _JOINTS else kind
        if kind in self.shows:
            return self.shows[kind](value)
        return self.show_plain(value, kind)


def catalogue(language: str) -> gettext.NullTranslations:
    """The catalogue of `language`, which falls back to the English one."""
    english = gettext.translation(DOMAIN, LOCALE, [ENGLISH])
    if language == ENGLISH:
        return english
    wanted = gettext.translation(DOMAIN, LOCALE, [language])
    wanted.add_fallback(english)
    return wanted


def translator(language: str, numbers: Numbers = WRITTEN_PLAINLY, setting: Callable[[str], str] = str) -> Translator:
    """Of one language. `setting` shows a setting's key as people know it: a terminal shows the key itself."""
    shows: dict[str, Show] = {
        "number": units.number,
        "percent": lambda share: f"{share * 100:.0f} %",
        "span": units.span,
        "size": numbers.size,
        "time": lambda time: numbers.time(datetime.fromisoformat(f"2000-01-01 {time}")),
        "date": lambda date: numbers.date(datetime.fromisoformat(date)),
        "setting": setting,
        "capital": lambda words: words[:1].upper() + words[1:],
    }

    def plainly(value: Any, spec: str) -> str:
        if isinstance(value, float) or (spec and isinstance(value, int)):
            return numbers.local(format(value, spec))
        return str(value)

    return Translator(catalogue(language), shows, plainly)


@functools.cache
def _strict() -> Translator:
    return translator(ENGLISH, setting="".join)  # which takes texts only


def fits(message: Text, longest: int) -> bool:
    """Whether there is an entry for it and for those within it, which its arguments fit, of `longest` characters at most.

    For messages of another process: one without an entry would be filled as if it were one, by what it names itself.
    """
    if not message:
        return True
    english = _strict()
    values = [each for value in message.args.values() for each in (value if isinstance(value, tuple) else (value,))]
    if not english.has(message) or not all(fits(each, longest) for each in values if isinstance(each, Text)):
        return False
    try:
        return len(english.say(message)) <= longest
    except Exception:  # noqa: BLE001 - whatever a value that does not fit its place may raise
        return False


def system_language(environ: Mapping[str, str] = os.environ, preferred: Sequence[str] = ()) -> str:
    """The first language that the system prefers and there is a catalogue for; English otherwise."""
    named = environ.get("LC_ALL") or environ.get("LC_MESSAGES") or environ.get("LANG") or ""
    several = environ.get("LANGUAGE", "").split(":") if named not in {"", "C", "POSIX", "C.UTF-8"} else []
    for each in (*preferred, *several, named):
        code = each.partition("_")[0].partition("-")[0].partition(".")[0]
        if code in LANGUAGES:
            return code
    return ENGLISH
