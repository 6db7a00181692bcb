"""Runs the real app as a separate process on a desktop, and reads its state with the terminal's verbs."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from desktops import until
from skep import bootstrap
from skep.adapters.storage.paths import Home
from skep.core.errors import NotRunning


def command(home: Home, *arguments: str) -> list[str]:
    return [sys.executable, "-X", "faulthandler", "-m", "skep_gui.main", "--home", str(home.root), *arguments]


@contextlib.contextmanager
def running(
    home: Home, environ: dict[str, str], *arguments: str, first_run: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """With `first_run` it shows the first steps. It is ended by SIGTERM, as at the end of a session."""
    if not first_run:
        (home.root / "window.ini").write_text("[General]\nfirst-run-done=done\n")
    process = subprocess.Popen(command(home, *arguments), env=environ)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # prints the current line of each thread
            process.wait()


def status(home: Home) -> dict[str, Any] | None:
    """As `skep status --json`; None if no skep runs in this home."""
    try:
        answer: dict[str, Any] = bootstrap.ask(home, {"verb": "status"})["status"]
    except NotRunning:
        return None
    return answer


def answered(home: Home) -> dict[str, Any]:
    """As `status`, of a skep that runs: one on a busy computer may not answer in time."""
    seen: dict[str, Any] = until(lambda: status(home), "an answer of skep")
    return seen
