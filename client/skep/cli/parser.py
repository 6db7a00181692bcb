"""The parser of the command line: verbs, groups of verbs, and usage errors as one sentence each."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from skep.adapters.storage.paths import Home
from skep.cli.show.speech import tr
from skep.cli.show.terminal import Terminal
from skep.core.errors import BadInput
from skep.core.text import Text, verbatim


@dataclass(frozen=True)
class Context:
    """What every verb is handed."""

    terminal: Terminal
    home: Home
    environ: Mapping[str, str]


Act = Callable[[Context, argparse.Namespace], int | None]
"""Carries out a verb and returns the exit code, None for 0; raises SkepError."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose usage errors are BadInput, and which speaks the language that is set when it is made."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=_Help, **options)
        if self.add_help:
            self._option_string_actions["--help"].help = tr("show this help message and exit")
            self._positionals.title, self._optionals.title = tr("positional arguments"), tr("options")

    def error(self, message: str) -> NoReturn:
        raise BadInput(verbatim(_sentence(message)), Text("parser.see_help", prog=self.prog))


class _Help(argparse.HelpFormatter):
    """argparse's own words in the language that is set."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, tr("usage:") + " " if prefix is None else prefix)


def _sentence(message: str) -> str:
    """A usage error of argparse in our words; its own English where it is none of these."""
    verb = re.escape(tr("VERB"))
    sentences: tuple[tuple[str, Callable[..., str]], ...] = (
        (rf"argument {verb}: invalid choice: '(.*?)' .*", lambda said: tr("“{said}” is not a skep verb.", said=said)),
        (rf"the following arguments are required: {verb}", lambda: tr("A verb is missing.")),
        (r"the following arguments are required: (.*)", lambda names: tr("{names} is missing.", names=names)),
        (r"unrecognized arguments: (.*)", lambda said: tr("“{said}” is not understood here.", said=said)),
        (r"argument (\S+): expected one argument", lambda option: tr("{option} needs a value.", option=option)),
        (
            r"argument (\S+): invalid choice: .* \(choose from (.*)\)",
            lambda option, names: tr("{option} must be one of {names}.", option=option, names=names.replace("'", "")),
        ),
        (
            r"argument (\S+): not allowed with argument (\S+)",
            lambda one, other: tr("{one} and {other} do not go together.", one=one, other=other),
        ),
        (
            r"argument (\S+): ignored explicit argument .*",
            lambda option: tr("{option} takes no value.", option=option),
        ),
    )
    for pattern, words in sentences:
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return words(*found.groups())
    return f"{message[:1].upper()}{message[1:].rstrip('.')}."


class Verbs:
    """The verbs of the program, or of a group such as `project`."""

    def __init__(self, parser: Parser, *, required: bool = True) -> None:
        self._choices = parser.add_subparsers(metavar=tr("VERB"), required=required, parser_class=Parser)

    def verb(self, name: str, act: Act | None, words: str, more: str = "") -> Parser:
        """Add a verb that `act` carries out; `words` is its help, which `more` goes on with where it stands alone.

        Returns its parser, for its own arguments.
        """
        description = f"{words[:1].upper()}{words[1:]}. {more}".rstrip()
        parser = self._choices.add_parser(name, help=words, description=description, parents=[options()])
        if act is not None:
            parser.set_defaults(act=act)
        return parser

    def group(self, name: str, words: str, alone: Act | None = None) -> Verbs:
        """Add a group of verbs; `alone` carries out the group's name without a verb, where that has a meaning."""
        return Verbs(self.verb(name, alone, words), required=alone is None)


def options() -> Parser:
    """The options every verb takes, before or after it."""
    shared = Parser(add_help=False)
    # SUPPRESS, since a default set by the verb's own parser would undo the option given before the verb
    shared.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help=tr("print JSON, in English, for programs")
    )
    shared.add_argument(
        "--home",
        metavar=tr("DIR"),
        default=argparse.SUPPRESS,
        help=tr("use this folder instead of the usual home (SKEP_HOME)"),
    )
    return shared
