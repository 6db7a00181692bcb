"""How the training thread keeps to what was ordered: sizes of micro-batches, threads, memory, who is at the computer."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from skep.core.policy.allowance import GpuMemory
from skep.recipes.tensors.batches import Batch
from skep.worker.process.memory import MemoryWatch, give_back
from skep.worker.training.compute_group import ComputeGroup
from skep.worker.training.device import CPU, Threads
from skep.worker.training.device_errors import add_gradients
from skep.worker.training.micro_batches import MicroBatches
from skep.worker.training.pace import RequestedLimits


class ModelOffload:
    """Where the model lives: on its device, or in RAM while the device's memory is given back.

    `tensors` gives everything that lives on `device`, or on others of its kind: parameters, gradients, buffers, the
    optimizer's statistics. Values are moved, never changed: training goes on bit for bit where it was. Tensors stay the
    same objects, because hivemind holds them.
    """

    def __init__(
        self,
        device: torch.device,
        tensors: Callable[[], Iterable[torch.Tensor]],
        move: Callable[[torch.Tensor, torch.device], torch.Tensor] = torch.Tensor.to,
    ) -> None:
        self._device, self._tensors, self._move = device, tensors, move
        self._away: list[tuple[torch.Tensor, torch.device]] = []

    def leave(self) -> None:
        """Everything into RAM. On the processor it is there already, and nothing happens."""
        if self._device.type != CPU.type and not self._away:
            homes = [(tensor, self._home(tensor)) for tensor in self._tensors()]
            self._away = [(tensor, home) for tensor, home in homes if home.type == self._device.type]
            self._to_ram()

    def come_back(self) -> None:
        """Everything back to where it was. Where that runs out of memory, all of it is in RAM again, and the error raised."""
        try:
            for tensor, home in self._away:
                self._send(tensor, home)
        except (MemoryError, RuntimeError):
            self._to_ram()
            raise
        self._away = []

    def _home(self, tensor: torch.Tensor) -> torch.device:
        return tensor.device

    def _to_ram(self) -> None:
        for tensor, _ in self._away:
            self._send(tensor, CPU)

    @torch.no_grad()
    def _send(self, tensor: torch.Tensor, target: torch.device) -> None:
        tensor.data = self._move(tensor.data, target)


@dataclass
class ResourceLimits:
    """For use in the training thread alone; `orders` are given from another."""

    orders: RequestedLimits
    group: ComputeGroup
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
        self.group.empty_caches()
        give_back()

    def prepare(self) -> None:
        """Before computing: the model on its device, as many threads as are fitting now."""
        self.residence.come_back()
        self.threads.use(present=self.orders.present)

    def add_gradients(self, batch: Batch, scale: float) -> float:
        """As `device_errors.add_gradients`; a size that was too large is not used again soon."""
        return add_gradients(self.group, batch, scale, self.sizes.ran_out)

    def took(self, size: int, wall: float, spent: float) -> None:
        """A micro-batch of `size` samples took so many seconds by the clock, and of computing."""
        self.sizes.took(size, wall, spent, present=self.orders.present)
