"""This peer's own copy of its run's state on disk: after a restart it needs no download, or the run goes on from it.

Written in a thread of its own, so far apart that a day's snapshots stay within the limit, and when the peer leaves.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import torch
from hivemind.utils import get_logger

from skep.core.errors import StorageError
from skep.core.session.messages import WorkerNoticed
from skep.core.text import Problem, Text
from skep.worker.swarm.state.checkpoints import Checkpoint, CheckpointFolder, epoch_of, read

LEAST_SECONDS: Final = 180.0
"""Between two snapshots."""
DAY: Final = 86_400.0
FORGET_DAYS: Final = 14
"""Snapshots of other runs are removed when they are older than this."""

logger = get_logger(__name__)
State = tuple[int, list[torch.Tensor]]
"""An epoch, and tensors on the CPU that nothing changes: parameters, then the optimizer's."""
Take = Callable[[], State]
SAVED_AGAIN: Final = Problem(Text("snapshot.saved_again"))


@dataclass
class Snapshots:
    """Of one run, in a folder of `folder`. `text` is its manifest, `names` its parameters; `clock` is wall clock.

    `tell` is called when one could not be written, and when one could be again, in another thread.
    """

    folder: Path
    run_id: str
    text: str
    names: Sequence[str]
    bytes_per_day: int
    clock: Callable[[], float] = time.time
    tell: Callable[[WorkerNoticed], object] = lambda _: None
    _writing: threading.Thread | None = None
    _written: int = 0
    """The epoch of the last one; 0 while what is there, if anything, is of no use."""
    _refused: float = float("-inf")
    """When one could not be written last: each attempt fills what is left of the disk for a moment."""
    _attempted: int = 0
    """Bytes of that one, of which any part may have been written: they count for the limit of a day."""
    _unsaved: Problem | None = None
    """Why one could not be written, until one is."""
    _kept: CheckpointFolder = field(init=False)

    def __post_init__(self) -> None:
        self._kept = CheckpointFolder(self.folder / self.run_id, keep=1)

    def newest(self) -> Checkpoint | None:
        """The newest one that can be read, if there is one. Forgets other runs' old ones."""
        try:
            self._forget()
            paths = self._kept.paths()
        except (StorageError, OSError) as error:
            logger.warning("the snapshots of the state cannot be read: %s", error)
            return None
        for path in paths:
            try:
                found = read(path)
            except StorageError as error:
                logger.warning("a snapshot of the state cannot be used: %s", error)
                continue
            if found.run_id == self.run_id and set(found.parameters) == set(self.names):
                self._written = found.epoch
                return found
        return None

    def supersede(self) -> None:
        """What is kept is of no use, as of a state that the swarm does not go on from: the next one takes its place."""
        self._written = 0

    def tensors(self, checkpoint: Checkpoint) -> list[torch.Tensor]:
        """Its tensors in hivemind's order."""
        return [*(checkpoint.parameters[name] for name in self.names), *checkpoint.optimizer]

    def consider(self, take: Take) -> None:
        """Begin to write a snapshot, if one is due and none is being written. `take` is called in another thread."""
        if not (self._writing and self._writing.is_alive()) and self._is_due():
            self._begin(take)

    def finish(self, take: Take, within: float, taken: Callable[[], object] = lambda: None) -> None:
        """Write one now, unless the state is that of the last one; returns after at most `within` seconds.

        `taken` is called in another thread when `take` has returned.
        """
        until = time.monotonic() + within
        if self._writing:
            self._writing.join(within)

        def take_and_tell() -> State:
            state = take()
            taken()
            return state

        self._begin(take_and_tell)
        assert self._writing
        self._writing.join(max(0.0, until - time.monotonic()))

    def _begin(self, take: Take) -> None:
        self._writing = threading.Thread(target=self._write, args=(take,), name="snapshot", daemon=True)
        self._writing.start()

    def _write(self, take: Take) -> None:
        epoch, tensors = take()
        if epoch <= self._written:
            return
        self._remove_useless(epoch)
        parameters = dict(zip(self.names, tensors, strict=False))
        made = Checkpoint(self.run_id, epoch, self.text, parameters, tensors[len(self.names) :])
        try:
            self._kept.write(made)
            self._written = epoch
        except StorageError as error:
            logger.warning("the state cannot be saved: %s", error)
            self._refused, self._attempted = self.clock(), sum(each.nbytes for each in tensors)
            if error.problem != self._unsaved:  # said once: a second problem may alternate with it
                self.tell(WorkerNoticed(error.problem))
            self._unsaved = error.problem
            return
        if self._unsaved is not None:
            self.tell(WorkerNoticed(SAVED_AGAIN, over=self._unsaved))
            self._unsaved = None

    def _remove_useless(self, epoch: int) -> None:
        """One of `epoch` or later would stay, and the one that is written now be removed as the older one."""
        with suppress(StorageError, OSError):
            for path in self._kept.paths():
                if epoch_of(path) >= epoch:
                    path.unlink()

    def _is_due(self) -> bool:
        """Whether the last one is old enough; its own size says how far apart they have to be, over restarts too."""
        if 0 <= self.clock() - self._refused < self._apart(self._attempted):
            return False
        try:
            newest = next(iter(self._kept.paths()), None)
            if newest is None:
                return True
            found = newest.stat()
        except (StorageError, OSError):
            return False
        age = self.clock() - found.st_mtime
        return age < 0 or age >= self._apart(found.st_size)

    def _apart(self, size: int) -> float:
        """Seconds after one of so many bytes until the next one."""
        return max(LEAST_SECONDS, size * DAY / self.bytes_per_day) if self.bytes_per_day else DAY

    def _forget(self) -> None:
        if not self.folder.is_dir():
            return
        for other in self.folder.iterdir():
            newest = max((path.stat().st_mtime for path in other.glob("*.safetensors")), default=0.0)
            if other.name != self.run_id and self.clock() - newest > FORGET_DAYS * DAY:
                shutil.rmtree(other, ignore_errors=True)
