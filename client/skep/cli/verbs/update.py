"""The verb `update`: checks for a new version, installs it, and goes back to the previous one."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import skep
from skep import bootstrap
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import tr
from skep.core.errors import BadInput, NotRunning, UpdateError
from skep.services import updating
from skep.services.updating import Found, Updates

STEP: Final = 10
"""Percent between two lines about how far it is."""


def add(verbs: Verbs) -> None:
    made = verbs.verb("update", _update, tr("look for a newer skep"))
    chosen = made.add_mutually_exclusive_group()
    chosen.add_argument(
        "--install", action="store_true", help=tr("download and install it; it starts with the next skep")
    )
    chosen.add_argument("--back", action="store_true", help=tr("go back to the version before the last update"))


def _update(context: Context, arguments: argparse.Namespace) -> None:
    updates = updating.updates(context.home)
    if arguments.back:
        version = updates.go_back()
        words = tr("skep {version} is used again from the next start.", version=version)
        _say(context, {"version": version}, " ".join((words, *_running(context))))
    elif updates.lacking:
        raise UpdateError(updates.lacking)
    elif (found := updates.look()) is None:
        _say(context, {"version": updates.version, "newer": None}, _newest(updates))
    elif arguments.install:
        _install(context, updates, found)
    else:
        _tell(context, updates, found)


def _newest(updates: Updates) -> str:
    if updates.version == skep.__version__:
        return tr("skep {version} is the newest.", version=updates.version)
    return tr("skep {version} is the newest. It is installed, and starts the next time.", version=updates.version)


def _tell(context: Context, updates: Updates, found: Found) -> None:
    release = found.release
    way = (
        tr("skep update --install installs it.")
        if found.installs
        else tr("Install it the way this one was installed; your system's software updates may bring it.")
    )
    body = {"version": updates.version, "newer": release.version, "notes": release.notes, "installs": found.installs}
    words = tr("skep {newer} is there; this is {version}.", newer=release.version, version=updates.version)
    _say(context, body, words, release.notes, way)


def _install(context: Context, updates: Updates, found: Found) -> None:
    version = found.release.version
    downloaded = _Progress(context, lambda how: tr("{percent} % of {megabytes:.0f} MB downloaded.", **how))
    unpacked = _Progress(context, lambda how: tr("{percent} % of {megabytes:.0f} MB unpacked.", **how))
    updates.install(found.release, downloaded, unpacked)
    words = tr("skep {version} is installed and starts the next time.", version=version)
    back = tr("skep update --back goes back to {version}.", version=updates.previous) if updates.previous else ""
    _say(context, {"version": version, "installed": True}, " ".join((words, *_running(context))), back)


class _Progress:
    """A line every STEP percent."""

    def __init__(self, context: Context, words: Callable[[dict[str, Any]], str]) -> None:
        self._context, self._words, self._told = context, words, 0

    def __call__(self, came: int, of: int) -> bool:
        percent = 100 * came // max(1, of)
        if percent >= self._told + STEP:
            self._told = percent - percent % STEP
            self._context.terminal.note(self._words({"percent": self._told, "megabytes": of / 1e6}))
        return True


def _running(context: Context) -> tuple[str, ...]:
    with suppress(NotRunning, BadInput):
        bootstrap.ask(context.home, {"verb": "status"})
        return (tr("Quit the skep that runs and start it again."),)
    return ()


def _say(context: Context, body: dict[str, object], *lines: str) -> None:
    context.terminal.show(body, [line for line in lines if line])
