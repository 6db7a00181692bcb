"""One model on several devices: each rank computes a part of every micro-batch, rank 0 drives them and has the sum.

A micro-batch counts on all ranks or on none: each holds its gradients until rank 0 knows the loss and the gradients of
all to be finite. Between two hand-overs ranks add up their own gradients without any communication. When a rank is lost,
the micro-batch is computed again by the others; what the lost rank alone had is lost, and `lost` says how much. A device
that cannot begin is left out. Every wait for a rank has a deadline, and rank 0's own part of a collective has a watchdog.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import torch

from skep.core.device import ComputingDevice
from skep.core.errors import DeviceError
from skep.core.project.manifest import Manifest
from skep.core.text import Problem, Text
from skep.recipes.contract import NO_FILES, Files
from skep.recipes.tensors.batches import Batch
from skep.worker.ranks import collectives, orders, rendezvous
from skep.worker.ranks.division import Division
from skep.worker.ranks.offload import CopiesOffload
from skep.worker.ranks.others import Other, Others, RankLost
from skep.worker.ranks.watchdog import watched
from skep.worker.training.compute_group import Gradients
from skep.worker.training.device import TrainingDevice
from skep.worker.training.device_errors import is_lack_of_memory, out_of_memory
from skep.worker.training.resource_limits import DryRun, ModelOffload
from skep.worker.training.trainer import Trainer

COLLECTIVE_SECONDS: Final = 5.0
"""How long a rank is waited for in one message between ranks."""
CONNECT_SECONDS: Final = 60.0
"""How long libraries may take to connect the ranks, whatever their timeout."""
LATE_SECONDS: Final = 3.0
"""How much later than rank 0 another rank may say how a collective ended: both have waited equally long."""
ANSWER_SECONDS: Final = 8.0
"""How long a rank may take for a micro-batch, at least."""
TIMES: Final = 20
"""A rank may take as many times what the slowest micro-batch so far took."""
FADE: Final = 0.9
"""What is left of the slowest time after another micro-batch."""
BUILD_SECONDS: Final = 600.0
FIRST_SECONDS: Final = 120.0
"""For the first micro-batch of a size, for which drivers load code."""
MEETINGS: Final = 3
"""Groups formed in a row without a rank being lost, after which the worker starts afresh."""

Tell = Callable[[Problem], object]


@dataclass(frozen=True)
class Building:
    """What ranks besides rank 0 need to know, as in WorkerOptions, and whether shards are in the host's memory."""

    leave_gpu: int = 0
    leave_gpu_of: Mapping[str, int] = field(default_factory=dict)
    nice: int = 0
    present: bool = False
    offload: bool = False


class GroupTrainer(Trainer):
    """Rank 0 with its `others`; the group meets through files in `folder`.

    `allowed` tells which part 0..1 of the group's time a device may compute. `told` learns of each rank that is lost or
    left out. `alarm` is called from another thread when rank 0 itself hangs in a collective: this process has to end
    then.
    """

    sharded = False
    """Whether each has a part of the model in place of a copy."""
    _waits = COLLECTIVE_SECONDS
    """How long a rank is waited for in one message."""

    def __init__(
        self,
        manifest: Manifest,
        device: TrainingDevice,
        others: Others,
        folder: Path,
        files: Files = NO_FILES,
        *,
        building: Building = Building(),
        told: Tell = lambda _problem: None,
        alarm: Tell = lambda _problem: None,
        present: Callable[[], bool] = lambda: False,
        allowed: Callable[[str], float] = lambda _device: 1.0,
    ) -> None:
        """Build the model on all devices; those that cannot be used are left out. `begin` comes before anything else.

        Raises DoesNotFit if the model cannot be trained on `device`, and what torch raises if its memory is too small.
        """
        self._others, self._folder, self._present, self._allowed = others, folder, present, allowed
        self._building = building
        self._told, self._alarm = told, alarm
        self._meetings, self._lost, self._beyond = 0, 0, 0.0
        self._short = False  # whether the last collective failed because memory ran out
        self._shared: Sequence[int] = ()
        """Marks of the parameters that the others have."""
        self._slowest = FIRST_SECONDS / TIMES
        self._id = others.number(str(device.device))
        for rank in others.ranks:
            of_rank = rank.device, device.precision, dict(files)
            rest = building.leave_gpu_of.get(rank.id, building.leave_gpu), building.nice, building.present
            others.tell(orders.Build(*of_rank, *rest, sharded=self.sharded), [rank])
        rendezvous.use_for_collectives(device)
        try:
            super().__init__(manifest, device, files)
            self._make_buffers()  # the gradients need room too
        except BaseException:
            # a trainer of shards may be built next: these answers are not for it
            others.begun(BUILD_SECONDS, told, of_copies=False)
            raise
        others.begun(BUILD_SECONDS, told)
        self._division = Division(1 + len(others.ranks))

    def begin(self) -> None:
        """Form the group; call it once the network's processes are forked, which must not have its sockets."""
        self._form()

    # --- the same interface as that of one device

    @property
    def devices(self) -> Sequence[ComputingDevice]:
        ranks = [(self._id, self._device.name), *((rank.id, rank.name) for rank in self._others.ranks)]
        busy = self._division.busy
        return [ComputingDevice(*each, part) for each, part in zip(ranks, busy, strict=False)]  # one may just be lost

    def stopwatch(self) -> float:
        """Seconds of computing: of the rank that computed longest, for each micro-batch."""
        return super().stopwatch() + self._beyond

    def empty_caches(self) -> None:
        super().empty_caches()
        self._others.tell(orders.Tidy())

    def recompute_activations(self) -> None:
        super().recompute_activations()
        self._others.tell(orders.Recompute())

    def dry_run(self, step_batch: int, enough: Callable[[], bool] = lambda: True) -> DryRun:
        found = super().dry_run(step_batch, enough)
        self._slowest = max(found.seconds.values())
        self.forget()
        return found

    def add_gradients(self, batch: Batch, scale: float) -> float:
        """As for one device; gradients of the part that other ranks compute stay there until `collect`."""
        while True:
            try:
                return self._attempt(batch, scale)
            except RankLost:
                self._form()

    def loss_size(self, size: int) -> int:
        """Rank 0 alone computes losses without gradients."""
        return max(1, size // (1 + len(self._others.ranks)))

    def collect(self) -> None:
        while any(rank.samples for rank in self._others.ranks):
            try:
                self._gather()
            except RankLost:
                self._form()

    def forget(self) -> None:
        self._others.tell(orders.Forget())
        for rank in self._others.ranks:
            rank.samples = 0
        self._lost = 0

    def lost(self) -> int:
        lost, self._lost = self._lost, 0
        return lost

    def measure_gradients(self) -> None:
        """Not ahead of `collect`, which has them all only then."""

    def gradients_finite(self) -> bool:
        super().measure_gradients()
        return super().gradients_finite()

    def offload(self, tensors: Callable[[], Iterable[torch.Tensor]]) -> ModelOffload:
        return CopiesOffload(self._device.device, tensors, move=lambda away: self.move(away=away))

    def move(self, *, away: bool) -> None:
        """Move the other ranks' models into RAM, or back. Raises OutOfMemoryError when a device has no room."""
        self._others.tell(orders.Move(away))
        try:
            answers = self._others.answers(FIRST_SECONDS)
        except RankLost as lost:
            answers = lost.answers
            self._form()
        if any(isinstance(answer, orders.NoMemory) for answer in answers.values()):
            self.move(away=True)
            raise torch.OutOfMemoryError(self.name)

    # --- one micro-batch

    def _attempt(self, batch: Batch, scale: float) -> float:
        """Raises RankLost, before anything was added."""
        self._norm = None
        self._share_parameters()
        self._make_buffers()
        first, *parts = self._parts(batch)
        factor = self.loss_scale.factor if self.loss_scale else 1.0
        working = [rank for rank, part in zip(self._others.ranks, parts, strict=True) if part]
        for rank, part in zip(self._others.ranks, parts, strict=True):
            if part:
                self._others.tell(orders.Compute(part, factor, torch.get_num_threads(), self._present()), [rank])
        own, held = self._own_part(first, factor)
        self.meanwhile()
        answers = self._others.answers(max(ANSWER_SECONDS, TIMES * self._slowest), working)
        found = [own, *(answers[rank] for rank in working)]
        computed = [each for each in found if isinstance(each, orders.Computed)]
        if len(computed) < len(found):
            self._others.tell(orders.Settle(None), working)
            raise torch.OutOfMemoryError(self.name)
        sizes = [len(first), *(len(part) for part in parts if part)]
        self._measure(computed, sizes, working)
        value = sum(each.loss * size / len(batch) for each, size in zip(computed, sizes, strict=True) if size)
        if not self._all_finite(computed, value):
            self._others.tell(orders.Settle(None), working)
            return math.nan
        unit = scale / len(batch) / factor
        if held is not None:
            held.add(unit * len(first))
        for rank, size in zip(working, sizes[1:], strict=True):
            rank.samples += size
            self._others.tell(orders.Settle(unit * size), [rank])
        return value

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        done, ids = 0, [self._id, *(rank.id for rank in self._others.ranks)]
        for size in self._division.sizes(len(batch), [self._allowed(each) for each in ids]):
            yield batch.part(done, size)
            done += size

    def _own_part(self, part: Batch, factor: float) -> tuple[orders.Answer, Gradients | None]:
        """As a rank does it. The error is dropped here: its frames hold activations."""
        if not part:
            return orders.Computed(0.0, finite=True, spent=0.0, wall=0.0), None
        begun, wall = super().stopwatch(), time.monotonic()
        try:
            loss, held = self.compute(part, factor)
        except (MemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
            return orders.NoMemory(), None
        finite = held is not None and held.finite
        return orders.Computed(loss, finite, super().stopwatch() - begun, time.monotonic() - wall), held

    def _measure(self, computed: Sequence[orders.Computed], sizes: Sequence[int], working: Sequence[Other]) -> None:
        if self.kind == "cpu":  # elsewhere the time of waiting for the others is in ours
            self._beyond += max(each.spent for each in computed) - computed[0].spent
        self._slowest = max(FADE * self._slowest, *(each.wall for each in computed))
        numbers = [0, *(1 + self._others.ranks.index(rank) for rank in working)]
        seconds = [0.0] * (1 + len(self._others.ranks))
        for number, each, size in zip(numbers, computed, sizes, strict=True):
            if size:
                self._division.took(number, size, each.wall)
                seconds[number] = each.wall
        self._division.passed(seconds)

    def _all_finite(self, computed: Sequence[orders.Computed], loss: float) -> bool:
        """Whether the micro-batch may be added on all ranks; the scale of fp16 learns it."""
        if not math.isfinite(loss):
            return False
        finite = all(each.finite for each in computed)
        if self.loss_scale is not None:
            self.loss_scale.learn(finite=finite)
        return finite

    @torch.no_grad()
    def _make_buffers(self) -> None:
        """Have all of `.grad`, so that adding to it cannot run out of memory on one rank only."""
        for parameter in self.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)

    # --- the group

    def _share_parameters(self) -> None:
        """Give the others the parameters, if these have changed."""
        if not self._others.ranks:
            return
        marks = self._marks()
        if marks == self._shared:
            return
        whole = not self._shared
        tensors = [*self.model.parameters(), *self.model.buffers()] if whole else self.parameters
        with self._together(orders.TakeParameters(whole), tensors):
            collectives.broadcast(tensors)
        self._shared, self._meetings = marks, 0

    def _marks(self) -> list[int]:
        """They change with the parameters."""
        return [each._version for each in self.parameters]  # noqa: SLF001 - torch has no public name for it

    def _gather(self) -> None:
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        received: list[torch.Tensor] = []
        try:
            with self._together(orders.GiveGradients(), gradients):
                received += collectives.sums(gradients)
        finally:
            if received:  # complete, whatever became of the others since
                collectives.take(received, gradients)
                self._meetings = 0
                self._others.tell(orders.Forget())
                for rank in [*self._others.ranks, *self._others.lost]:
                    rank.samples = 0

    @contextmanager
    def _together(self, order: orders.Order | None = None, tensors: Sequence[torch.Tensor] = ()) -> Iterator[None]:
        """A context for rank 0's part of a collective over `tensors`, for which all ranks have got `order`.

        Raises RankLost if it failed.
        """
        if order is not None:
            self._others.tell(order)
        begun, broken, short = time.monotonic(), False, False
        try:
            messages = max(1, len(list(collectives.buckets(tensors))))
            with watched(CONNECT_SECONDS + self._waits * messages, self._hangs):
                yield
        except (MemoryError, RuntimeError) as error:
            broken, short = True, is_lack_of_memory(error)
            rendezvous.leave()  # so that others do not wait for rank 0
        self._short = short
        # the others wait as long as rank 0, from about the same time on
        left = self._waits - (time.monotonic() - begun) if broken else self._waits
        answers = self._others.answers(LATE_SECONDS + max(0.0, left))
        self._short |= any(isinstance(answer, orders.NoMemory) for answer in answers.values())
        if self._short:
            self.empty_caches()
        if broken or not all(isinstance(answer, orders.Done) for answer in answers.values()):
            raise RankLost

    def _hangs(self) -> None:
        self._alarm(Problem(Text("ranks.group_does_not_last"), Text("device.skep_tries_again_if_happens")))

    def _form(self) -> None:
        """Form the group of the ranks that there are; count what the others had. Raises DeviceError if none lasts."""
        while True:
            self._count_lost()
            self._meetings += 1
            if self._meetings > MEETINGS and self._short:
                raise out_of_memory(self.name)
            if self._meetings > MEETINGS:
                raise DeviceError(Text("ranks.group_does_not_last"), Text("device.skep_tries_again_if_happens"))
            with suppress(RankLost):
                self._begin_anew()
                return

    def _begin_anew(self) -> None:
        """Form one group. Raises RankLost."""
        self._others.tell(orders.Settle(None))
        if self._others.ranks:
            self._meet()
        else:
            rendezvous.leave()

    def _count_lost(self) -> None:
        for rank in self._others.lost:
            self._lost += rank.samples
            self._meetings = 0
            self._told(Problem(Text("ranks.device_lost", device=rank.label), Text("ranks.others_go_on")))
        if self._others.lost:
            self._others.lost.clear()
            self._division = Division(1 + len(self._others.ranks))

    def _meet(self) -> None:
        ranks = self._others.ranks
        path = self._folder / f"ranks-{time.monotonic_ns()}"
        meet = partial(orders.Meet, str(path), size=1 + len(ranks), backend=self._backend(), seconds=self._waits)
        for number, rank in enumerate(ranks, 1):
            self._others.tell(meet(rank=number, device=rank.device), [rank])
        with self._together():
            rendezvous.meet(meet(rank=0, device=str(self._device.device)))

    def _backend(self) -> str:
        return rendezvous.NCCL if self._by_nccl else rendezvous.GLOO

    @property
    def _by_nccl(self) -> bool:
        """NCCL is for different NVIDIA cards only."""
        ranks = self._others.ranks
        types = {torch.device(rank.device).type for rank in ranks} | {self.kind}
        apart = len({rank.device for rank in ranks} | {str(self._device.device)}) == 1 + len(ranks)
        return types == {"cuda"} and apart
