"""The practice swarm as a child process of a front end: starting it, reading its output, ending its process tree."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from skep.adapters.process.child_log import LogPipe
from skep.adapters.process.process_tree import end_child
from skep.adapters.process.programs import module_command
from skep.adapters.storage.logs import open_log
from skep.core.errors import SwarmError
from skep.core.text import Text, verbatim

START: Final = 120.0
"""Seconds the swarm may take until it can be joined; importing torch on a busy computer is most of it."""
LAST_WORDS_SECONDS: Final = 1.0
"""How long the last lines of a swarm that has ended are waited for."""


class PracticeProcess:
    """`skep practice` in its own session. `folder` is for its temporary files and its log.

    `pack` is the folder of the compute pack to use.
    """

    def __init__(self, home: Path, folder: Path, environ: Mapping[str, str], pack: Path | None = None) -> None:
        self._home, self._folder, self._environ, self._pack = home, folder, environ, pack
        self._child: subprocess.Popen[bytes] | None = None
        self._log: LogPipe

    def start(self) -> None:
        """Returns immediately; `manifest` waits until the swarm is ready."""
        self._folder.mkdir(mode=0o700)
        # what the swarm leaves in temporary folders, even when killed, goes with the demo's own folder
        places = dict.fromkeys(("TMPDIR", "XDG_RUNTIME_DIR"), str(self._folder))
        command = [*module_command("skep.cli.main", self._pack), "--home", str(self._home), "--json"]
        with LogPipe(open_log(self._folder, "practice")) as self._log:
            self._child = subprocess.Popen(
                [*command, "practice", "--peers", "1", "--until-eof"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log.fileno(),
                env={**self._environ, **places},
                start_new_session=True,
            )

    def manifest(self, asked_to_stop: Callable[[], bool]) -> Path | None:
        """The signed manifest that joins the swarm; None when asked to stop before. Raises SwarmError."""
        assert self._child is not None
        assert self._child.stdout is not None
        deadline, line = time.monotonic() + START, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if asked_to_stop():
                    return None
                if time.monotonic() > deadline:
                    raise SwarmError(Text("process.practice_swarm_did_not_start", start=START), self._last_words())
                if selector.select(0.1):
                    piece = os.read(self._child.stdout.fileno(), 65_536)
                    if not piece and asked_to_stop():
                        return None
                    if not piece:
                        raise SwarmError(Text("process.practice_swarm_ended_before_could"), self._last_words())
                    line += piece
        said = json.loads(line)
        if "manifest" not in said:  # a problem, which its last words say in the person's language
            raise SwarmError(Text("process.practice_swarm_ended_before_could"), self._last_words())
        return Path(said["manifest"])

    def _last_words(self) -> Text:
        self._log.wait(LAST_WORDS_SECONDS)
        return verbatim(" ".join(line.strip() for line in tuple(self._log.last) if line.strip()))

    def ask(self) -> None:
        """Ask it to end; may be called repeatedly, and from a signal handler."""
        if self._child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(signal.SIGINT)

    def end(self, within: float) -> None:
        """Ask it to end, wait for at most `within` seconds, kill what is left of its process tree."""
        if self._child is None:
            return
        end_child(self._child, self.ask, within, self._folder)
        self._log.wait(LAST_WORDS_SECONDS)
        self._child = None
