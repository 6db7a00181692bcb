"""The grammar of the command line: verbs, groups of verbs, and usage errors as one sentence each. It runs nothing."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from skep.adapters.paths import Home
from skep.cli.terminal import Terminal
from skep.core.errors import BadInput


@dataclass(frozen=True)
class Context:
    """What every verb is handed."""

    terminal: Terminal
    home: Home
    environ: Mapping[str, str]


Act = Callable[[Context, argparse.Namespace], int]
"""Carries out a verb and returns the exit code; raises SkepError."""

# argparse's own wordings, and ours
_SENTENCES: Final = (
    (r"argument VERB: invalid choice: '(.*?)' .*", "“{0}” is not a skep verb."),
    (r"the following arguments are required: VERB", "A verb is missing."),
    (r"the following arguments are required: (.*)", "{0} is missing."),
    (r"unrecognized arguments: (.*)", "“{0}” is not understood here."),
    (r"argument (\S+): expected one argument", "{0} needs a value."),
    (r"argument (\S+): not allowed with argument (\S+)", "{0} and {1} do not go together."),
    (r"argument (\S+): ignored explicit argument .*", "{0} takes no value."),
)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose usage errors are BadInput."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise BadInput(_sentence(message), f"See {self.prog} --help.")


def _sentence(message: str) -> str:
    for pattern, words in _SENTENCES:
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return words.format(*found.groups())
    return f"{message[:1].upper()}{message[1:].rstrip('.')}."


class Verbs:
    """The verbs of the program, or of a group such as `project`."""

    def __init__(self, parser: Parser, *, required: bool = True) -> None:
        self._choices = parser.add_subparsers(metavar="VERB", required=required, parser_class=Parser)

    def verb(self, name: str, act: Act, words: str) -> Parser:
        """Add a verb that `act` carries out; `words` is its help. Returns its parser, for its own arguments."""
        parser = self._parser(name, words)
        parser.set_defaults(act=act)
        return parser

    def group(self, name: str, words: str, alone: Act | None = None) -> Verbs:
        """Add a group of verbs; `alone` carries out the group's name without a verb, where that has a meaning."""
        parser = self._parser(name, words)
        if alone is not None:
            parser.set_defaults(act=alone)
        return Verbs(parser, required=alone is None)

    def _parser(self, name: str, words: str) -> Parser:
        description = f"{words[:1].upper()}{words[1:]}."
        return self._choices.add_parser(name, help=words, description=description, parents=[options()])


def options() -> Parser:
    """The options every verb takes, before or after it."""
    shared = Parser(add_help=False)
    # SUPPRESS, since a default set by the verb's own parser would undo the option given before the verb
    shared.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON, for programs")
    shared.add_argument(
        "--home", metavar="DIR", default=argparse.SUPPRESS, help="use this folder instead of the usual home (SKEP_HOME)"
    )
    return shared
