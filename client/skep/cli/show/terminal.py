"""The output of the verbs: styled text for the user, and JSON lines for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text as Styled

from skep.cli.show.speech import say, worded
from skep.core.session.control import finite
from skep.core.text import Problem


class Tone(StrEnum):
    """What a piece of text means, and how rich styles it. Nothing else names a colour.

    Text keeps the terminal's own foreground, which is readable on its background; only accents bring a colour, chosen
    between the light and the dark table of the app so that each reads on both.
    """

    INK = "none"
    SOFT = "dim"
    STRONG = "bold"
    HONEY = "#d08a10"
    LEAF = "#3f9a63"
    EMBER = "#e0603a"
    SLATE = "#7d8c9b"


@dataclass(frozen=True)
class Span:
    text: str
    tone: Tone = Tone.INK


Line = tuple[Span, ...]


def plain(line: Line) -> str:
    """The line's text alone, as it is written where there is no terminal."""
    return "".join(span.text for span in line).rstrip()


def problem_event(shown: Problem) -> dict[str, Any]:
    return {"event": "problem", "title": shown.title, "hint": shown.hint}


class Terminal:
    """Standard output and standard error of one command; `json` chooses between the two kinds of reader.

    JSON goes to standard output only, one object a line, flushed. Problems are sentences on standard error, and with
    `json` an object with "event": "problem" as well.
    """

    def __init__(self, *, json: bool, out: TextIO | None = None, error: TextIO | None = None) -> None:
        self.json = json
        self.out = _console(out or sys.stdout)
        self.error = _console(error or sys.stderr)

    def show(self, body: dict[str, Any], lines: Iterable[str | Line | Table]) -> None:
        """`body` for programs, or `lines` for people."""
        if self.json:
            self.object(body)
            return
        for line in lines:
            self.write(line)

    def object(self, body: dict[str, Any]) -> None:
        """One JSON object on a line of its own, at once."""
        stream = self.out.file
        stream.write(json.dumps(worded(finite(body)), ensure_ascii=True, allow_nan=False) + "\n")
        stream.flush()

    def write(self, line: str | Line | Table) -> None:
        """One line for a person on standard output."""
        match line:
            case str():
                self.out.print(Styled(line), soft_wrap=True)
            case Table():
                self.out.print(line)
            case _:
                self.out.print(toned(line), soft_wrap=True)
        self.out.file.flush()

    def note(self, text: str) -> None:
        """A remark for a person, out of the way of what is printed for use; left out with `json`."""
        if not self.json:
            self.error.print(Styled(text, style=Tone.SOFT), soft_wrap=True)

    def problem(self, shown: Problem) -> None:
        if self.json:
            self.object(problem_event(shown))
        self.sentence(shown)

    def sentence(self, shown: Problem) -> None:
        """A problem as a sentence and its hint, on standard error."""
        self.error.print(Styled(say(shown.title), style=Tone.EMBER), soft_wrap=True)
        if shown.hint:
            self.error.print(Styled(say(shown.hint), style=Tone.SOFT), soft_wrap=True)


def toned(line: Line) -> Styled:
    """A line with its colours; markup in a project's words stays text."""
    return Styled.assemble(*((span.text, str(span.tone)) for span in line)) if plain(line) else Styled("")


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """A table without rules, its first column in the accent's colour."""
    made = Table(box=None, pad_edge=False, header_style=str(Tone.SOFT), padding=(0, 2, 0, 0))
    for index, heading in enumerate(headings):
        made.add_column(heading, style=str(Tone.HONEY) if index == 0 else None, overflow="fold")
    for row in rows:
        made.add_row(*(Styled(cell) for cell in row))
    return made


def _console(stream: TextIO) -> Console:
    if hasattr(stream, "reconfigure"):
        # a terminal of another encoding shows "?" where a sign is missing, and nothing fails
        stream.reconfigure(errors="replace")
    return Console(file=stream, highlight=False, markup=False, emoji=False)
