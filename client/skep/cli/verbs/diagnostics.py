"""The verb `diagnostics`: one redacted text for whoever helps, shown, or written to a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from skep import bootstrap
from skep.cli.parser import Context, Verbs
from skep.cli.show.speech import tr
from skep.core.errors import NotRunning
from skep.core.session import control
from skep.services import diagnosis


def add(verbs: Verbs) -> None:
    made = verbs.verb("diagnostics", _diagnostics, tr("show what somebody who helps needs to know, without secrets"))
    made.add_argument("file", metavar=tr("FILE"), nargs="?", default="", help=tr("write it to this file instead"))


def _diagnostics(context: Context, arguments: argparse.Namespace) -> int:
    context.terminal.note(tr("Looking at devices, readings and the way to the seeds; this takes some seconds."))
    try:
        running = control.snapshot_of(bootstrap.ask(context.home, {"verb": "status"})["status"])
    except NotRunning:
        running = None
    text = diagnosis.diagnose(context.home, running)
    if not arguments.file:
        context.terminal.show({"diagnostics": text}, text.splitlines())
        return 0
    path = Path(arguments.file).expanduser().absolute()
    diagnosis.keep(path, text)
    context.terminal.show({"path": str(path)}, [tr("Written to {path}. Read it before you pass it on.", path=path)])
    return 0
