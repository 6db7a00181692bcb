"""The processes of a Trainer with several devices: the script itself, started once more for each further device.

So do Lightning's own strategies: a fork could not use CUDA once the script has, and nothing has to be pickled. Unlike there,
the processes meet in a private folder and listen on the loopback only, end with the first one, and their death ends it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import torch.distributed as dist
from lightning.fabric.utilities.distributed import _set_num_threads_if_needed
from lightning.pytorch import Trainer
from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher

from skep.adapters.storage.paths import make_run_folder
from skep.core.text import Text
from skep.training import processes
from skep.training.words import say
from skep.worker.process.processes import PR_SET_PDEATHSIG
from skep.worker.ranks.rendezvous import INTERFACES

FOLDER: Final = "SKEP_RANKS_FOLDER"
"""Names the folder in the environment of the processes; torchrun's have none, and meet as torchrun says."""
PARENT: Final = "SKEP_RANKS_PARENT"
GLOO: Final = "gloo"
"""Is in the words of its errors, which have no type of their own, but for those of a wait that was in vain."""
TIMED_OUT: Final = ("Application timeout caused pair closure", "Timed out waiting", "collective operation timeout")
"""Gloo's words for these, and NCCL's."""
WATCH_SECONDS: Final = 0.1
GRACE_SECONDS: Final = 2.0
"""How long the loss of a process may take to be noticed where it is waited for; after that the script is ended."""
LOST_SECONDS: Final = 10.0
"""How long a process may take to end once its connections are closed: its interpreter winds down, on a busy computer."""
END_SECONDS: Final = 0.5
"""How long the other processes may take to end, after this one has."""


class RankLauncher(_SubprocessScriptLauncher):
    """Starts the other processes, unless another launcher has, and watches them."""

    _told = False
    _lost: tuple[int, int] | None = None
    """The rank that has ended, and its exit code."""

    def launch(self, function: Callable[..., Any], *args: Any, trainer: Trainer | None = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Call the function, in the processes of all ranks."""
        self.cluster_environment.validate_settings(num_devices=self.num_processes, num_nodes=self.num_nodes)
        if not self.cluster_environment.creates_processes_externally:
            self._call_children_scripts()
        _set_num_threads_if_needed(self.num_processes)
        return function(*args, **kwargs)

    def _call_children_scripts(self) -> None:
        folder = make_run_folder()
        # a second Trainer of the script finds the processes of the first
        os.environ.update({FOLDER: str(folder), "LOCAL_RANK": "0"})
        os.environ.update(INTERFACES)
        for rank in range(1, self.num_processes):
            process = subprocess.Popen(
                [sys.executable, *sys.orig_argv[1:]],
                env=os.environ | {PARENT: str(os.getpid()), "LOCAL_RANK": str(rank)},
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C reaches the first process only, which ends the others
            )
            self.procs.append(process)
        atexit.register(self._end, folder)
        threading.Thread(target=self._watch, args=[folder], daemon=True).start()

    def _end(self, folder: Path) -> None:
        deadline = time.monotonic() + END_SECONDS
        for process in self.procs:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        self.kill(signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)

    def kill(self, signum: signal.Signals) -> None:
        super().kill(signum)
        self._told = True

    def _watch(self, folder: Path) -> None:
        while (lost := self._ended()) is None:
            time.sleep(WATCH_SECONDS)
        if not lost[1] or self._told:
            return
        self._lost = lost
        time.sleep(GRACE_SECONDS)
        if not self._told:
            sys.stderr.write(f"{say(_words(*lost))}\n")
            self.kill(signal.SIGKILL)
            processes.end()
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(1)

    def _ended(self) -> tuple[int, int] | None:
        """A rank that has ended with an error, or, once all have ended, the last one; with its exit code."""
        codes = [process.poll() for process in self.procs]
        failed = next(((rank, code) for rank, code in enumerate(codes, 1) if code), None)
        return failed or ((len(codes), 0) if all(code == 0 for code in codes) else None)

    def explain(self, error: BaseException, timeout: timedelta) -> None:
        """Say so if the error comes from a rank that hangs, or from the end of one, whose process may end a little later."""
        if any(words in str(error) for words in TIMED_OUT):
            self._told = True
            sys.stderr.write(f"{say(Text('lightning.rank_is_silent', seconds=round(timeout.total_seconds())))}\n")
            return
        if not isinstance(error, dist.DistError) and GLOO not in str(error):
            return
        deadline = time.monotonic() + LOST_SECONDS
        while self._lost is None and time.monotonic() < deadline:
            time.sleep(WATCH_SECONDS)
        if self._lost is not None and not self._told:
            self._told = True
            sys.stderr.write(f"{say(_words(*self._lost))}\n")


def _words(rank: int, code: int) -> Text:
    return Text("lightning.rank_has_ended", number=rank, code=code)


def end_with_first() -> None:
    """In a process that a launcher has started: end when the first one does."""
    parent = os.environ.get(PARENT)
    if parent is None or int(parent) == os.getpid():
        return
    atexit.register(gc.freeze)  # the interpreter's last collection takes longer than all the rest of its end
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        os._exit(1)
