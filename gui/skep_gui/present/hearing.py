"""Recognises what the core said and says it in another language. No Qt; the core knows nothing of it.

The core says "Keeping the GPU under 80 °C." in English, with its values in it. `core_sentences` lists every sentence that
its source can say, read out of the source by `make translations`, with %1, %2 where a value stands: "Keeping the %1 under
%2 °C.". A sentence is compared with that list, the longest words first; the values between the words are taken out, said
in the other language themselves ("GPU", "on battery", 2.5), and put into the translation. So a sentence is translated
wherever it comes from, a worker's pipe or last month's ledger, and needs no other form on its way.

What fits nothing is taken for several sentences, and then stays as it is: rather English than lost. Values that are no
words of ours, a project's title among them, are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Final

from skep.core.policy import Holding
from skep.core.snapshot import Snapshot
from skep_gui.present.numbers import Numbers
from skep_gui.present.projects import PRACTICE
from skep_gui.present.speaker import Tongue

CORE: Final = "core"
"""The context of the core's sentences among the translations."""
DEPTH: Final = 4
"""How many sentences may stand within one another."""

_PLACE: Final = re.compile(r"%\d")
_QUANTITY: Final = r"\d[\d.,]*[ \u2009]?(?:GB|MB|kB|KiB|B|min|s|h|%|°C|W)(?!\w)"
_VALUE: Final = rf"({_QUANTITY}|.+?)"
"""A number stays with its unit: "96 GB of memory" is 96 GB and "of memory"."""
_VALUE_OR_NONE: Final = rf"({_QUANTITY}|.*?)"
_BETWEEN: Final = re.compile(r"(?<=[.!?]) (?=\S)")
_NUMBER: Final = re.compile(rf"-?\d+\.\d+|{_QUANTITY}")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2})?")
_TIME: Final = re.compile(r"(?:(?P<day>[A-Z][a-z]+day) )?(?P<time>\d{2}:\d{2})")


class Template:
    """One sentence of the core; its pattern is made when a sentence first has all its words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = [word for word in _PLACE.split(text) if word]
        self.weight = sum(map(len, self.words))
        self._pattern: re.Pattern[str] | None = None

    def values(self, sentence: str) -> tuple[str, ...] | None:
        """What stands at its places in `sentence`; None where that is another sentence."""
        if not all(word in sentence for word in self.words):
            return None
        if self._pattern is None:
            self._pattern = re.compile("".join(self._parts()), re.DOTALL)
        found = self._pattern.fullmatch(sentence)
        return None if found is None else found.groups()

    def _parts(self) -> Iterator[str]:
        """A value that touches the word before it may be empty: "Outside your hours%1."."""
        before = ""
        for part in re.split(r"(%\d)", self.text):
            if _PLACE.fullmatch(part):
                yield _VALUE_OR_NONE if before[-1:].isalnum() else _VALUE
            else:
                yield re.escape(part)
            before = part or before


class Hearing:
    """Call it with what was said. `translate` is given an English template and gives the one of the other language."""

    def __init__(self, sentences: Sequence[str], translate: Callable[[str], str], numbers: Numbers) -> None:
        self._translate, self._numbers = translate, numbers
        self._whole = frozenset(each for each in sentences if not _PLACE.search(each))
        open_ones = [Template(each) for each in sentences if _PLACE.search(each)]
        self._templates = sorted(open_ones, key=lambda each: (-each.weight, each.text))
        self._heard = lru_cache(maxsize=1024)(self._hear)

    def __call__(self, sentence: str) -> str:
        return self._heard(sentence, DEPTH) if sentence else sentence

    def recognised(self, sentence: str) -> str | None:
        """The template that a sentence was made of; None for what is none of ours."""
        if sentence in self._whole:
            return sentence
        return next((each.text for each in self._templates if each.values(sentence) is not None), None)

    def _hear(self, sentence: str, depth: int) -> str:
        said = self._as_one(sentence, depth)
        if said is None:
            said = self._as_several(_BETWEEN.split(sentence), depth) or self._as_one(sentence, depth, loose=True)
        return sentence if said is None else said

    def _as_one(self, sentence: str, depth: int, *, loose: bool = False) -> str | None:
        """Unless it is `loose`, no value is more than one sentence."""
        if sentence in self._whole:
            return self._translate(sentence)
        for template in self._templates:
            values = template.values(sentence)
            if values is not None and (loose or not any(map(_BETWEEN.search, values))):
                return self._filled(self._translate(template.text), values, depth)
        return None

    def _as_several(self, parts: Sequence[str], depth: int) -> str | None:
        """Sentences one after the other, as many at a time as are one of ours; None where none is."""
        for count in range(len(parts) - 1, 0, -1):
            begin = self._as_one(" ".join(parts[:count]), depth)
            if begin is not None:
                return f"{begin} {self._hear(' '.join(parts[count:]), depth)}"
        if len(parts) == 1:
            return None
        end = self._as_several(parts[1:], depth) or self._as_one(" ".join(parts[1:]), depth)
        return None if end is None else f"{parts[0]} {end}"

    def _filled(self, text: str, values: Sequence[str], depth: int) -> str:
        said = [self._value(value, depth - 1) for value in values]
        return _PLACE.sub(lambda place: said[int(place.group()[1:]) - 1], text)

    def _value(self, value: str, depth: int) -> str:
        """A value may bring its own space along: " (process 5)"."""
        inner = value.strip()
        begin = value.index(inner)
        return value[:begin] + self._bare(inner, depth) + value[begin + len(inner) :] if inner else value

    def _bare(self, value: str, depth: int) -> str:
        if _NUMBER.fullmatch(value):
            return self._numbers.local(value)
        if _DATE.fullmatch(value):
            moment = datetime.fromisoformat(value)
            time = f" {self._numbers.time(moment)}" if " " in value else ""
            return self._numbers.date(moment) + time
        if found := _TIME.fullmatch(value):
            day = f"{self._translate(found['day'])} " if found["day"] else ""
            return day + self._numbers.time(datetime.fromisoformat(f"2000-01-01 {found['time']}"))
        return value if depth == 0 else self._heard(value, depth)


def heard(snapshot: Snapshot, tongue: Tongue) -> Snapshot:
    """The snapshot with all that is said in it in that language; nothing is decided by words, so nothing else changes.

    Of projects only the practice swarm's title is ours to translate.
    """
    stage, problem, project = snapshot.stage, snapshot.problem, snapshot.project
    if project is not None and project.id == PRACTICE:
        project = replace(project, title=tongue.said(project.title))
    return replace(
        snapshot,
        project=project,
        allowance=replace(snapshot.allowance, reason=tongue.said(snapshot.allowance.reason)),
        holding=tuple(_held(each, tongue) for each in snapshot.holding),
        stage=None if stage is None else replace(stage, detail=tongue.said(stage.detail)),
        problem=None if problem is None else tongue.problem(problem),
    )


def _held(each: Holding, tongue: Tongue) -> Holding:
    return replace(each, allowance=replace(each.allowance, reason=tongue.said(each.allowance.reason)))
