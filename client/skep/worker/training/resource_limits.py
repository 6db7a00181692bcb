"""How the training thread keeps to what was ordered: sizes of micro-batches, threads, memory, who is at the computer."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from skep.core.policy.allowance import GpuMemory
from skep.recipes.tensors.batches import Batch
from skep.worker.process.malloc_trim import give_back
from skep.worker.process.memory_watch import MemoryWatch
from skep.worker.training.device import Threads
from skep.worker.training.micro_batches import MicroBatches
from skep.worker.training.model_offload import ModelOffload
from skep.worker.training.oom_retry import Computes, add_gradients

Told = Callable[[GpuMemory, float, str], None]
"""Told what is held no longer, how many seconds after it was asked for, and what had to end first."""


def nobody_listens(_memory: GpuMemory, _seconds: float, _behind: str) -> None:
    """For a worker that nobody asks."""


@dataclass
class RequestedLimits:
    """`present` and `memory` as in SetShare; `clock` is monotonic seconds."""

    present: bool = False
    memory: GpuMemory = GpuMemory.KEEP
    obeyed: Told = nobody_listens
    clock: Callable[[], float] = time.monotonic
    _asked_at: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.memory is not GpuMemory.KEEP:
            self._asked_at = self.clock()

    def give(self, memory: GpuMemory, *, present: bool) -> bool:
        """From any thread. Returns whether something else may be held of the GPU's memory now."""
        with self._lock:
            self.present = present
            if memory is self.memory:
                return False
            self.memory, self._asked_at = memory, self.clock()
            return True

    def done(self, memory: GpuMemory, behind: str, since: float) -> None:
        """`memory` is obeyed from now on. `behind` is named where it was asked for before `since`, when that ended."""
        with self._lock:
            asked_at = self._asked_at
            if asked_at is None or memory is not self.memory:
                return  # nothing new, or something else was asked for meanwhile
            self._asked_at = None
        self.obeyed(memory, self.clock() - asked_at, behind if asked_at < since else "")


NOTHING_BEHIND: Final = ("", 0.0)


@dataclass
class ResourceLimits:
    """For use in the training thread alone; `orders` are given from another."""

    orders: RequestedLimits
    trainer: Computes
    sizes: MicroBatches
    threads: Threads
    residence: ModelOffload
    ram: MemoryWatch = field(default_factory=lambda: MemoryWatch(0))
    _held: GpuMemory = GpuMemory.KEEP

    @property
    def must_rest(self) -> bool:
        """Whether nothing can be computed, whatever the share: the model may not be on its device."""
        return self.orders.memory is GpuMemory.RELEASE

    @property
    def size(self) -> int:
        """Samples in the next micro-batch, at most."""
        if self._held is GpuMemory.SHRINK or self.ram.short:
            return 1
        return self.sizes.size(present=self.orders.present)

    @property
    def heavy(self) -> bool:
        return self.sizes.heavy

    def obey(self, behind: tuple[str, float]) -> None:
        """Hold no more memory than was ordered. `behind` names what the thread stood in, and when that ended."""
        wanted = self.orders.memory
        if wanted is not self._held:
            self._hold(wanted)
        self.orders.done(wanted, *behind)

    def _hold(self, wanted: GpuMemory) -> None:
        match wanted:
            case GpuMemory.KEEP:
                self.sizes.try_again()
            case GpuMemory.SHRINK:
                self._tidy()
            case GpuMemory.RELEASE:
                self.residence.leave()
                self._tidy()
        self._held = wanted

    def _tidy(self) -> None:
        gc.collect()
        self.trainer.empty_caches()
        give_back()

    def prepare(self) -> None:
        """Before computing: the model on its device, as many threads as are fitting now."""
        self.residence.come_back()
        self.threads.use(present=self.orders.present)

    def add_gradients(self, batch: Batch, scale: float) -> float:
        """As `scarcity.add_gradients`; a size that was too large is not used again soon."""
        return add_gradients(self.trainer, batch, scale, self.sizes.ran_out)

    def took(self, size: int, wall: float, spent: float) -> None:
        """A micro-batch of `size` samples took so many seconds by the clock, and of computing."""
        self.sizes.took(size, wall, spent, present=self.orders.present)
