"""The training thread's limits on resources: sizes of micro-batches, threads, and memory.

A micro-batch is short while this computer is in use, and otherwise as large as is useful. Sizes are powers of two. The
dry run gives the first size, and the time of every later micro-batch adjusts it.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import torch

from skep.core.policy.allowance import GpuMemory
from skep.recipes.tensors.batches import Batch
from skep.worker.process.memory import MemoryWatch, give_back
from skep.worker.training.compute_group import ComputeGroup
from skep.worker.training.device import CPU, Threads
from skep.worker.training.device_errors import add_gradients
from skep.worker.training.pace import RequestedLimits

PRESENT_SECONDS: Final = 0.05
"""Longest time for a micro-batch while this computer is in use, if it has more than one sample."""
AWAY_ON_GPU: Final = 0.1
AWAY_ON_PROCESSOR: Final = 0.2
"""The same while it is not in use, so a returning user waits no longer than this; the processor works at lowest priority."""
GAIN: Final = 1.01
"""A larger micro-batch is used only if its time per sample is smaller by this factor."""
RECENT: Final = 5
ENOUGH: Final = 3
"""Micro-batches of one size that are considered, and the number needed to change it: a single slow one is an outlier."""
RETRY_SECONDS: Final = 60.0
LONGEST_RETRY_SECONDS: Final = 3600.0
"""After memory ran out, the next size is tried again after this time, which doubles each time that it runs out."""
ROOM: Final = 0.8
"""A size is doubled if twice its time is below this part of the bound, so that it is not halved immediately after."""


@dataclass(frozen=True)
class DryRun:
    """Seconds of computing of a micro-batch, by its size, starting with 1; at most `limit` samples fit into memory.

    `away` is the longest time in seconds while the computer is not in use.
    """

    seconds: Mapping[int, float]
    limit: int
    away: float = AWAY_ON_GPU

    def useful(self) -> int:
        """The smallest size within `away` for which no larger one takes less time per sample."""
        within = {size: taken / size for size, taken in self.seconds.items() if size == 1 or taken <= self.away}
        best = min(within.values())
        return min(size for size, each in within.items() if each <= best * GAIN)

    def within(self, bound: float) -> int:
        """The largest size, up to the useful one, that takes no longer than `bound` seconds; at least 1."""
        return max(
            size for size, taken in self.seconds.items() if size == 1 or (taken <= bound and size <= self.useful())
        )


def expected_of_twice(seconds: Mapping[int, float]) -> float:
    """Expected seconds for twice the largest size tried: a linear extrapolation of the two largest."""
    size = max(seconds)
    growth = seconds[size] - seconds.get(size // 2, seconds[size])
    return seconds[size] + 2 * max(0.0, growth)


@dataclass
class Sizing:
    """One size under one bound in seconds, halved and doubled according to measured times."""

    size: int
    limit: int
    bound: float
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def took(self, size: int, seconds: float) -> None:
        """Add the wall time of a micro-batch; those of another size are ignored."""
        if size != self.size:
            return
        self._recent.append(seconds)
        if len(self._recent) < ENOUGH:
            return
        typical = median(self._recent)
        if typical > self.bound:
            self._become(max(1, size // 2))
        elif 2 * typical <= ROOM * self.bound and 2 * size <= self.limit:
            self._become(2 * size)

    def _become(self, size: int) -> None:
        if size != self.size:
            self.size = size
            self._recent.clear()


class MicroBatches:
    """The sizes for a computer in use and not in use, under one limit that memory sets."""

    def __init__(self, dry_run: DryRun, clock: Callable[[], float] = time.monotonic) -> None:
        limit = min(dry_run.limit, dry_run.useful())
        self._sizings = {
            True: Sizing(dry_run.within(PRESENT_SECONDS), limit, PRESENT_SECONDS),
            False: Sizing(dry_run.within(dry_run.away), limit, dry_run.away),
        }
        self._cap = self._limit = limit
        self._clock, self._wait, self._try_at = clock, RETRY_SECONDS, 0.0
        self._single = dry_run.seconds[1]
        self._singles: deque[float] = deque(maxlen=RECENT)

    def size(self, *, present: bool) -> int:
        """Samples in the next micro-batch."""
        if self._cap < self._limit and self._clock() >= self._try_at:
            self._cap = min(self._limit, 2 * self._cap)
            self._try_at = self._clock() + self._wait
        return min(self._cap, self._sizings[present].size)

    @property
    def heavy(self) -> bool:
        """Whether a single sample takes longer than PRESENT_SECONDS."""
        return self._single > PRESENT_SECONDS

    def took(self, size: int, wall: float, spent: float, *, present: bool) -> None:
        """Add a micro-batch of `wall` seconds, `spent` of them computing; other programs may have used the device."""
        self._sizings[present].took(size, wall)
        if size == 1:
            self._singles.append(spent)
            self._single = median(self._singles)
        else:
            self._single = min(self._single, spent)

    def ran_out(self, size: int) -> None:
        """Memory did not suffice for `size` samples: use half, and later try again, ever less often."""
        self._cap = max(1, min(self._cap, size // 2))
        self._try_at = self._clock() + self._wait
        self._wait = min(LONGEST_RETRY_SECONDS, 2 * self._wait)

    def try_again(self) -> None:
        """Remove the limit that `ran_out` set: memory may suffice again."""
        self._cap, self._wait = self._limit, RETRY_SECONDS


@dataclass
class ModelOffload:
    """Moves the model between its device and RAM, to free the device's memory.

    `tensors` gives all tensors on `device`, or on others of its kind: parameters, gradients, buffers, the optimizer's
    statistics. Values do not change: training continues bit for bit. Tensors stay the same objects, because hivemind
    keeps references to them.
    """

    device: torch.device
    tensors: Callable[[], Iterable[torch.Tensor]]
    _away: list[tuple[torch.Tensor, torch.device]] = field(default_factory=list)

    def leave(self) -> None:
        """Move all tensors into RAM. Has no effect on the processor, where they are in RAM already."""
        if self.device.type != CPU.type and not self._away:
            homes = [(tensor, self._home(tensor)) for tensor in self.tensors()]
            self._away = [(tensor, home) for tensor, home in homes if home.type == self.device.type]
            self._to_ram()

    def come_back(self) -> None:
        """Move all tensors back. If that runs out of memory, move all of them into RAM again and raise the error."""
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
        tensor.data = self._moved(tensor.data, target)

    def _moved(self, data: torch.Tensor, target: torch.device) -> torch.Tensor:
        return data.to(target)


@dataclass
class ResourceLimits:
    """Applies the engine's limits, in the training thread only; `requested` are set from another thread."""

    requested: RequestedLimits
    group: ComputeGroup
    sizes: MicroBatches
    threads: Threads
    offload: ModelOffload
    ram: MemoryWatch = field(default_factory=lambda: MemoryWatch(0))
    _held: GpuMemory = GpuMemory.KEEP

    @property
    def must_rest(self) -> bool:
        """Whether nothing can be computed regardless of the share: the model may not be on its device."""
        return self.requested.memory is GpuMemory.RELEASE

    @property
    def size(self) -> int:
        """Samples in the next micro-batch, at most."""
        if self._held is GpuMemory.SHRINK or self.ram.short:
            return 1
        return self.sizes.size(present=self.requested.present)

    @property
    def heavy(self) -> bool:
        return self.sizes.heavy

    def obey(self, behind: tuple[str, float]) -> None:
        """Reduce memory to the requested limit. `behind` names what delayed the thread, and when that ended."""
        wanted = self.requested.memory
        if wanted is not self._held:
            self._hold(wanted)
        self.requested.done(wanted, *behind)

    def _hold(self, wanted: GpuMemory) -> None:
        match wanted:
            case GpuMemory.KEEP:
                self.sizes.try_again()
            case GpuMemory.SHRINK:
                self._tidy()
            case GpuMemory.RELEASE:
                try:
                    # before they are moved into RAM, where NCCL cannot sum the gradients of several devices
                    self.group.collect()
                finally:
                    self.release()
        self._held = wanted

    def release(self) -> None:
        """Free the device's memory: nothing is computed any more.

        Copies on other devices are not asked for their gradients: another thread may call this while the training thread
        sums them.
        """
        self.offload.leave()
        self._tidy()

    def _tidy(self) -> None:
        gc.collect()
        self.group.empty_caches()
        give_back()

    def prepare(self) -> None:
        """Prepare for computing: move the model to its device and set the number of threads."""
        self.offload.come_back()
        self.threads.use(present=self.requested.present)

    def add_gradients(self, batch: Batch, scale: float) -> float:
        """As `device_errors.add_gradients`; a size that was too large is not used again soon."""
        return add_gradients(self.group, batch, scale, self.sizes.ran_out)

    def took(self, size: int, wall: float, spent: float) -> None:
        """Add a micro-batch of `size` samples: seconds of wall time, and of computing."""
        self.sizes.took(size, wall, spent, present=self.requested.present)
