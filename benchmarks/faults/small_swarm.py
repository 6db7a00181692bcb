"""Swarms of small peers, each a process tree of its own, on a real seed peer."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil

from families import alive, kill
from skep.host.practice.swarm import PracticeFolder, seed

SCRIPT = Path(__file__).with_name("small_peer.py")
END_SECONDS = 20.0
"""So long a busy computer takes to end killed processes."""
Event = dict[str, Any]


class SmallPeer:
    """A running peer and what it has said."""

    def __init__(self, options: Path, script: Path = SCRIPT) -> None:
        with options.with_suffix(".log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, script, options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"HIVEMIND_MEMORY_SHARING_STRATEGY": "file_descriptor"},
                start_new_session=True,
            )
        self._log = options.with_suffix(".log")
        self.events: list[Event] = []
        self._frozen: list[psutil.Process] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(json.loads(line))

    def named(self, name: str) -> list[Event]:
        return [event for event in self.events if event["event"] == name]

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def name(self) -> str:
        return self._log.stem

    def words(self) -> str:
        """The end of its log, for an error."""
        return self._log.read_text(errors="replace")[-2000:]

    def family(self) -> list[psutil.Process]:
        root = psutil.Process(self._process.pid)
        return [root, *root.children(recursive=True)]

    def freeze(self) -> None:
        """Stop all its processes, as when the computer hangs or sleeps."""
        self._frozen = self.family()
        for process in self._frozen:
            process.suspend()

    def kill(self) -> None:
        """End all its processes at once with SIGKILL."""
        if not self._frozen and self.runs:
            self.freeze()
        kill(self._frozen)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # what it left when it ended by itself, which holds its pipes
        self._process.wait()
        self._reader.join(END_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def leave(self) -> None:
        """Ask it to leave; returns immediately."""
        self.tell("leave")


def wait(condition: Callable[[], bool], within: float, peers: Iterable[SmallPeer], look: float = 0.1) -> None:
    """Until the condition is true; it is looked at every `look` seconds. Raises TimeoutError with what the peers said."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            said = [f"{each.name}: {each.events[-2:]} {each.words()[-500:]}" for each in peers]
            raise TimeoutError(f"not within {within:g} s: {said}")
        time.sleep(look)


class SmallSwarm:
    """Peers of one kind in one run. `target` samples an epoch, `rate` samples a second of each peer."""

    def __init__(self, folder: Path, seeds: list[str], kind: str, target: int, rate: float) -> None:
        self._folder, self._numbers = folder, itertools.count(1)
        self._options = {"kind": kind, "peers": seeds, "run_id": "faults", "target": target, "rate": rate}
        self.peers: list[SmallPeer] = []

    def add(self) -> SmallPeer:
        number = next(self._numbers)
        options = self._folder / f"peer{number}.json"
        options.write_text(json.dumps(self._options | {"seed": number}))
        self.peers.append(SmallPeer(options))
        return self.peers[-1]

    def wait(self, condition: Callable[[], bool], within: float, look: float = 0.1) -> None:
        """Raises TimeoutError."""
        wait(condition, within, self.peers, look)

    def close(self) -> None:
        for peer in self.peers:
            peer.kill()
        killed = [process for peer in self.peers for process in peer._frozen]  # noqa: SLF001
        _, left = psutil.wait_procs(killed, END_SECONDS)
        assert not alive(left)


@contextlib.contextmanager
def small_swarm(folder: Path, kind: str, target: int, rate: float) -> Iterator[SmallSwarm]:
    folder.mkdir()
    with (
        seed(PracticeFolder(folder), 0) as addresses,
        contextlib.closing(SmallSwarm(folder, addresses, kind, target, rate)) as made,
    ):
        yield made
