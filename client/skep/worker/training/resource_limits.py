"""How the training thread keeps to what was ordered: sizes of micro-batches, threads, memory, who is at the computer."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

from skep.core.policy.allowance import GpuMemory
from skep.recipes.tensors.batches import Batch
from skep.worker.process.memory import MemoryWatch, give_back
from skep.worker.training.device import Threads
from skep.worker.training.micro_batches import MicroBatches
from skep.worker.training.model_offload import ModelOffload
from skep.worker.training.oom_retry import Computes, add_gradients
from skep.worker.training.pace import RequestedLimits


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
