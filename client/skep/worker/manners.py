"""How the training thread behaves towards whoever owns the computer: sizes, threads and memory, as they were ordered.

It must not know about the swarm or the share; the loop asks it before and after each micro-batch.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

from skep.core.model import GpuMemory
from skep.worker.batches import Batch
from skep.worker.device import Threads
from skep.worker.freed import give_back
from skep.worker.orders import Orders
from skep.worker.ram import RamWatch
from skep.worker.residence import Residence
from skep.worker.scarcity import Computes, add_gradients
from skep.worker.sizes import MicroBatches


@dataclass
class Manners:
    """For use in the training thread alone; `orders` are given from another."""

    orders: Orders
    trainer: Computes
    sizes: MicroBatches
    threads: Threads
    residence: Residence
    ram: RamWatch = field(default_factory=lambda: RamWatch(0))
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
        if wanted is GpuMemory.RELEASE:
            self.residence.leave()
        elif wanted is GpuMemory.KEEP:
            self.sizes.try_again()
        if wanted is not GpuMemory.KEEP:
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
