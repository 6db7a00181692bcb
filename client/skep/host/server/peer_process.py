"""A seed peer as a child process: starting it, reading its addresses and events, ending its process tree.

The child, `skep.host.server.seed`, prints JSON lines, its addresses first, and ends when its stdin closes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from skep.adapters.process.child_log import LogPipe
from skep.adapters.process.process_tree import end_child
from skep.adapters.process.programs import module_command
from skep.adapters.process.tree_use import use_of
from skep.adapters.storage.logs import open_log
from skep.adapters.storage.paths import make_run_folder
from skep.core.errors import SwarmError
from skep.core.policy.growth import Use
from skep.core.text import Text, as_data, from_data

START_SECONDS: Final = 120.0
"""How long it may take to print its addresses; on a busy computer, importing torch and starting p2pd a few times."""
END_SECONDS: Final = 2.0
"""How long it may take to end after it was asked to, before its process tree is killed."""


def problem_event(title: Text, hint: Text) -> dict[str, Any]:
    """The event of `skep host` that reports a problem."""
    return {"event": "problem", "title": as_data(title), "hint": as_data(hint)}


class PeerProcess:
    """The seed in its own session, its stderr in the rotated log `log`, whose name ends with ".log".

    `pack` is the folder of the compute pack to use.
    """

    def __init__(self, arguments: Sequence[str], log: Path, pack: Path | None = None) -> None:
        self._command = [*module_command("skep.host.server.seed", pack), *arguments]
        self._log, self._entries = log, open_log(log.parent, log.stem)
        self._pipe: LogPipe | None = None
        self._run_folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> list[str]:
        """Returns its addresses; may be called again after it ended unexpectedly.

        Raises SwarmError when it does not start; then it is not running.
        """
        self._stop()
        self._run_folder = self._run_folder or make_run_folder()
        with LogPipe(self._entries) as self._pipe:
            self._process = subprocess.Popen(
                [*self._command, "--run-folder", str(self._run_folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._pipe.fileno(),
                start_new_session=True,
            )
        too_slow = threading.Timer(START_SECONDS, self._process.kill)
        too_slow.start()
        first = next(self.lines(), None)
        too_slow.cancel()
        if first is None or "addresses" not in first:
            self.end()
            why = self._why_not_started() if first is None else from_data(first["title"])  # a part of it was lost
            raise SwarmError(why, Text("peer_process.log", log=str(self._log)))
        return [str(address) for address in first["addresses"]]

    def _why_not_started(self) -> Text:
        """With the last line that it wrote, if any; once it has ended."""
        assert self._pipe is not None
        written = [line for line in self._pipe.last if line.strip()]
        if written:
            return Text("peer_process.seed_peer_did_not_start_reason", reason=written[-1].strip())
        return Text("peer_process.seed_peer_did_not_start")

    def lines(self) -> Iterator[dict[str, Any]]:
        """Its output, until it has ended."""
        assert self._process is not None
        assert self._process.stdout is not None
        for line in iter(self._process.stdout.readline, b""):
            yield json.loads(line)

    def use(self) -> Use:
        """What it and its children use now; nothing if it does not run. From any thread."""
        process = self._process
        try:
            root = psutil.Process(process.pid) if process is not None else None
            return use_of([root, *root.children(recursive=True)] if root is not None else [])
        except psutil.NoSuchProcess:
            return use_of([])

    def ask_to_end(self) -> None:
        """Close its stdin, which ends it and its children; may be called again."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def end(self) -> None:
        """Ask it to end, and kill its process tree if that takes too long."""
        self._stop()
        if self._run_folder is not None:
            shutil.rmtree(self._run_folder, ignore_errors=True)
            self._run_folder = None

    def _stop(self) -> None:
        if self._process is not None:
            end_child(self._process, self.ask_to_end, END_SECONDS)
            self._process = None
        if self._pipe is not None:
            self._pipe.wait(END_SECONDS)
