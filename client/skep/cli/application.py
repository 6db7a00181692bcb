"""Execution of one command, from its arguments to its exit code; unexpected errors are shown without a traceback.

Exit codes: 0 done, 1 failed, 2 usage or bad input, 130 interrupted before there was anything to leave.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import skep
from skep import bootstrap
from skep.adapters.storage.logs import open_log
from skep.adapters.storage.paths import Home
from skep.cli.interrupt import INTERRUPTED, ends_at_once
from skep.cli.parser import Context, Parser, Verbs, options
from skep.cli.show.speech import speak, tr
from skep.cli.show.terminal import Terminal
from skep.core.errors import BadInput, SkepError
from skep.core.settings.settings import DEFAULTS
from skep.core.text import Problem, Text
from skep.language.translator import ENGLISH, LANGUAGES, system_language

_MODULES: Final[Mapping[str, Sequence[str]]] = {
    "join": ("join",),
    "running": ("status", "pause", "resume", "share", "leave", "explain"),
    "record": ("timeline", "stats"),
    "settings": ("settings",),
    "projects": ("projects", "project"),
    "keys": ("key",),
    "computer": ("devices", "identity", "sensors", "diagnostics"),
    "doctor": ("doctor",),
    "host": ("practice", "host"),
    "demo": ("demo",),
    "self_test": ("self-test",),
    "update": ("update",),
    "packs": ("packs",),
}
"""The modules of this package whose `add` adds verbs, and which, in the order of the help."""


def parser(arguments: Sequence[str] = ()) -> Parser:
    """The parser of all verbs, or only of those in `arguments`, to avoid imports that other verbs need."""
    made = Parser(
        prog="skep",
        description=tr("Lend this computer's idle GPU to open, peer-to-peer model training."),
        parents=[options()],
    )
    made.add_argument("--version", action="version", version=f"skep {skep.__version__}", help=tr("print the version"))
    verbs = Verbs(made)
    named = [module for module, added in _MODULES.items() if not set(added).isdisjoint(arguments)]
    for module in named or _MODULES:
        import_module(f"skep.cli.verbs.{module}").add(verbs)
    return made


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Carry out one command; returns its exit code and raises nothing but KeyboardInterrupt."""
    terminal = Terminal(json="--json" in arguments)
    home: Home | None = None
    try:
        if "--version" in arguments and terminal.json:
            terminal.object({"version": skep.__version__})
            return 0
        speak(_language(arguments, environ, json=terminal.json))
        with ends_at_once():
            known = parser(arguments)
        parsed = known.parse_args(arguments)
        home = bootstrap.home(getattr(parsed, "home", None), environ)
        return parsed.act(Context(terminal, home, environ), parsed) or 0
    except SkepError as error:
        terminal.problem(error.problem)
        return error.exit_code
    except SystemExit as ended:
        return int(ended.code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # what we printed to was closed, as by `| head`; without this the interpreter complains while it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the last resort: a bug becomes a sentence and a log entry
        terminal.problem(_our_own(error, home))
        return 1


def _language(arguments: Sequence[str], environ: Mapping[str, str], *, json: bool) -> str:
    """English for JSON output; otherwise the language in the settings, or English if they cannot be read."""
    if json:
        return ENGLISH
    try:
        chosen = getattr(options().parse_known_args(arguments)[0], "home", None)
        home = bootstrap.home(chosen, environ)
    except BadInput:
        return system_language(environ)
    try:
        language = _chosen_language(home.settings_file)
    except (SkepError, OSError):
        return ENGLISH
    return language if language in LANGUAGES else system_language(environ)


def _chosen_language(settings: Path) -> str:
    if not settings.exists():
        return str(DEFAULTS["app.language"])
    from skep.adapters.storage.settings_file import SettingsFile  # noqa: PLC0415 - it brings tomlkit

    return str(SettingsFile(settings).load()["app.language"])


def _our_own(error: Exception, home: Home | None) -> Problem:
    title = Text("application.own_mistake", kind=type(error).__name__)
    if home is None:
        return Problem(title)
    try:
        home.create()
        open_log(home.logs_folder, "terminal").error("unexpected", exc_info=error)
    except (SkepError, OSError):
        return Problem(title, Text("application.details_could_not_written_log"))
    return Problem(title, Text("application.details_log", logs_folder=str(home.logs_folder)))
