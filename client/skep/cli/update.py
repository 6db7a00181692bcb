"""The verb `update`: whether there is a newer skep, installing it, going back to the one before."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Final

import skep
from skep import bootstrap, updating
from skep.cli.parser import Context, Verbs
from skep.core.errors import BadInput, NotRunning, UpdateError
from skep.updating import Found, Updates

STEP: Final = 10
"""Percent between two lines about how far it is."""


def add(verbs: Verbs) -> None:
    made = verbs.verb("update", _update, "look for a newer skep")
    chosen = made.add_mutually_exclusive_group()
    chosen.add_argument("--install", action="store_true", help="download and install it; it starts with the next skep")
    chosen.add_argument("--back", action="store_true", help="go back to the version before the last update")


def _update(context: Context, arguments: argparse.Namespace) -> int:
    updates = updating.updates(context.home)
    if arguments.back:
        version = updates.go_back()
        return _say(
            context, {"version": version}, f"skep {version} is used again from the next start.{_running(context)}"
        )
    if updates.lacking:
        raise UpdateError(updates.lacking)
    found = updates.look()
    if found is None:
        return _say(context, {"version": updates.version, "newer": None}, _newest(updates))
    if not arguments.install:
        return _tell(context, updates, found)
    return _install(context, updates, found)


def _newest(updates: Updates) -> str:
    if updates.version == skep.__version__:
        return f"skep {skep.__version__} is the newest."
    return f"skep {updates.version} is the newest. It is installed, and starts the next time."


def _tell(context: Context, updates: Updates, found: Found) -> int:
    release = found.release
    way = (
        "skep update --install installs it."
        if found.installs
        else "Install it the way this one was installed; your system's software updates may bring it."
    )
    body = {"version": updates.version, "newer": release.version, "notes": release.notes, "installs": found.installs}
    return _say(context, body, f"skep {release.version} is there; this is {updates.version}.", release.notes, way)


def _install(context: Context, updates: Updates, found: Found) -> int:
    version = found.release.version
    updates.install(found.release, _Progress(context, "downloaded"), _Progress(context, "unpacked"))
    return _say(
        context,
        {"version": version, "installed": True},
        f"skep {version} is installed and starts the next time.{_running(context)}",
        f"skep update --back goes back to {updates.previous}." if updates.previous else "",
    )


class _Progress:
    """A line every STEP percent."""

    def __init__(self, context: Context, done: str) -> None:
        self._context, self._done, self._told = context, done, 0

    def __call__(self, came: int, of: int) -> bool:
        percent = 100 * came // max(1, of)
        if percent >= self._told + STEP:
            self._told = percent - percent % STEP
            self._context.terminal.note(f"{self._told} % of {of / 1e6:.0f} MB {self._done}.")
        return True


def _running(context: Context) -> str:
    with suppress(NotRunning, BadInput):
        bootstrap.ask(context.home, {"verb": "status"})
        return " Quit the skep that runs and start it again."
    return ""


def _say(context: Context, body: dict[str, object], *lines: str) -> int:
    context.terminal.show(body, [line for line in lines if line])
    return 0
