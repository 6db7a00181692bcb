"""Consent to keep a secret unencrypted: by an option, or by a yes in the terminal. Never by silence.

It must not know what is kept, nor where.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from skep.cli.parser import Context
from skep.cli.show.speech import tr
from skep.core.errors import SecretsError
from skep.core.text import Text

Kept_co = TypeVar("Kept_co", covariant=True)

_YES: Final = {"y", "yes", "j", "ja"}
"""In every language that the question is asked in."""


class Keep(Protocol[Kept_co]):
    def __call__(self, *, in_file: bool) -> Kept_co:
        """Keeps the secret. Raises SecretsError when the keyring does not take it."""


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--unencrypted-file",
        action="store_true",
        help=tr("do without a keyring: keep it in skep's folder, in a file of mode 0600 that is not encrypted"),
    )


def kept(
    context: Context, arguments: argparse.Namespace, keep: Keep[Kept_co], ask: Callable[[], str] = input
) -> Kept_co:
    """What `keep` returns: into the keyring, or into a file with consent. Raises SecretsError."""
    if arguments.unencrypted_file:
        return keep(in_file=True)
    try:
        return keep(in_file=False)
    except SecretsError as error:
        if context.terminal.json or not sys.stdin.isatty():
            raise
        context.terminal.sentence(error.problem)
        question = tr("Keep it in an unencrypted file that only you can read instead? [y/N]")
        context.terminal.error.print(f"{question} ", end="")
        if not _is_yes(ask):
            raise SecretsError(Text("consent.nothing_was_kept"), error.hint) from None
        return keep(in_file=True)


def _is_yes(ask: Callable[[], str]) -> bool:
    try:
        return ask().strip().casefold() in _YES
    except EOFError:
        return False
