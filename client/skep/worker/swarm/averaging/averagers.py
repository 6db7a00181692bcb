"""hivemind's averagers of gradients and of the state.

Stock behaviour that this corrects, each covered by a test: loading a state copies any tensors that arrive, broadcast to
our shapes, and takes over the donor's hyperparameters, and leaves the optimizer's statistics in shared memory; the state
that is sent is the one that training changes, and is labelled with an epoch whose step may not be done. A copy of
gradients from an Apple GPU is not waited for before it is multiplied.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import torch
from hivemind import compression
from hivemind.averaging.control import StepControl
from hivemind.optim.grad_averager import GradientAverager
from hivemind.optim.state_averager import TrainingStateAverager, dump_optimizer_state, load_optimizer_state
from hivemind.p2p import PeerID
from hivemind.utils import get_dht_time

from skep.worker.swarm.averaging.groups import DUE, EPOCH
from skep.worker.swarm.averaging.honest_averager import DHT_SECONDS, HonestAverager
from skep.worker.swarm.averaging.robust import Combination, RobustMean
from skep.worker.swarm.averaging.state_rounds import LACKING_WEIGHT, CheckedRounds
from skep.worker.swarm.plausible import restore
from skep.worker.swarm.state import copying, shared
from skep.worker.swarm.state.choice import epochs_of, key_of_offers
from skep.worker.swarm.state.coming import Coming, Tell, nobody
from skep.worker.swarm.state.download import Wanted
from skep.worker.swarm.state.pieces import Piece, check_all, names_of_statistics, piece_of

MOST_STEPS: Final = 100_000
"""Of a schedule that needs each step, at a time: they take seconds. No honest peer is that many epochs ahead."""


def state_prefix(run_id: str) -> str:
    """The key under which a run's peers find each other for the state; hivemind's form, for peers without skep."""
    return f"{run_id}_state_averager"


def request_timeout(matchmaking_seconds: float) -> float:
    """Seconds that a request to join a group may take: below the matchmaking time, or groups split."""
    return min(3.0, matchmaking_seconds / 3)


class CheckedGradientAverager(HonestAverager, GradientAverager):
    """Averages gradients; counts local work in step batches, so that a partial one is weighted by its samples.

    Gradients arrive scaled by micro-batch / step batch, so their sum over `local_times_accumulated` step batches
    (a fraction for an unfinished one) is the exact mean over samples. Without `reuse_grad_buffers` they are moved out
    of `.grad` when they are counted, so no other code needs to clear it. No peer's gradients count for more than
    `most_samples`.
    """

    step_batch: int = 1
    ends: Callable[[], int | None] = staticmethod(lambda: None)
    """The epoch that the next round ends; None if this peer only helps."""
    is_due: Callable[[], bool] = staticmethod(lambda: False)
    """Whether that epoch is over already."""

    def __init__(self, *args: Any, most_samples: float = math.inf, **kwargs: Any) -> None:
        self._most_samples = most_samples  # before hivemind's constructor, which forks
        super().__init__(*args, **kwargs)

    def _new_combination(self) -> Combination:
        return RobustMean(self.peer_id, self._most_samples)

    def schedule_step(self, scheduled_time: float | None = None, **kwargs: Any) -> StepControl:
        told = {EPOCH: self.ends(), DUE: self.is_due()}
        scheduled: StepControl = super().schedule_step(scheduled_time, gather=told, **kwargs)
        return scheduled

    @torch.no_grad()
    def accumulate_grads_(self, batch_size: int) -> None:
        """Count `batch_size` samples, whose gradients are in `.grad` already."""
        self.local_samples_accumulated += batch_size
        self.local_times_accumulated += batch_size / self.step_batch
        if not self.reuse_grad_buffers:
            for gradient, total in zip(self._grads_from_parameters(), self._grad_accumulators(), strict=True):
                total.add_(gradient.to(total.device))
                gradient.zero_()

    @torch.no_grad()
    def load_accumulators_into_averager_(self) -> None:
        """As stock, but waits for each copy: one from an Apple GPU might otherwise arrive after the multiplication."""
        scale = 1.0 / self.local_times_accumulated if self.local_times_accumulated else 0.0
        with self.get_tensors() as averaged:
            for total, mean in zip(self._grad_accumulators(), averaged, strict=True):
                mean.copy_(total).mul_(scale)

    @property
    def local_accumulators(self) -> tuple[torch.Tensor, ...]:
        """Buffers of accumulated gradients besides `.grad`; none with `reuse_grad_buffers`."""
        return self._local_accumulators or ()

    def forget(self) -> None:
        """Discard the gradients: the parameters they were computed with are replaced, or the swarm has gone on."""
        self.reset_accumulated_grads_()

    def catch_up(self) -> None:
        """Forget, and take over from other peers what is needed beside the swarm's state."""
        self.forget()

    @torch.no_grad()
    def reset_accumulated_grads_(self) -> None:
        """Discard the counted gradients, and those in `.grad` that were not counted."""
        super().reset_accumulated_grads_()
        for gradient in self._grads_from_parameters():
            gradient.zero_()


class CheckedStateAverager(CheckedRounds):
    """Averages parameters, hands over states that belong to one epoch, and loads them with every tensor checked.

    hivemind raises `local_epoch` before a delayed optimizer step is done, and a peer that has fallen behind goes on
    under the swarm's number. `whole_epoch` is the number of steps that our tensors contain: each of our own, or all of
    those of a swarm whose parameters a round has brought.
    """

    number_of_averager = 1
    asked_at = 0.0
    """When the state that is loaded, or was loaded last, was asked for, by hivemind's clock."""
    _coming: Coming | None = None
    _steps_now = False
    """Whether the thread that steps is about to do so; it is the only one that reads and writes this."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # before hivemind's constructor, which forks
        self._whole_epoch = multiprocessing.Value("q", 0, lock=False)
        copying.install()
        super().__init__(*args, **kwargs)

    # --- handing over

    @property
    def whole_epoch(self) -> int:
        """The epoch that our tensors belong to; from any thread and the averager's process."""
        return int(self._whole_epoch.value)

    @property
    def state_version(self) -> float:
        return float(self.whole_epoch)

    def _do(
        self,
        wait_for_trigger: Any,
        optimizer_step: bool,  # noqa: FBT001 - hivemind's
        zero_grad: bool,  # noqa: FBT001 - as above
        averaging_round: bool,  # noqa: FBT001 - as above
        averaging_control: StepControl | None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """A step of the optimizer and a round of the state, in the thread that does both.

        A peer whose parameters lack steps takes those of the others in such a round, and gives hardly anything.
        """
        self._steps_now = optimizer_step
        epoch, before = self.round_epoch, self.whole_rounds
        if averaging_round and epoch - self.whole_epoch > optimizer_step:
            kwargs["weight"] = LACKING_WEIGHT
        super()._do(wait_for_trigger, optimizer_step, zero_grad, averaging_round, averaging_control, *args, **kwargs)
        self._steps_now = False  # what was waited for may have failed
        if averaging_round and self.whole_rounds > before:
            self._whole_epoch.value = max(self.whole_epoch, epoch)

    def _update_scheduler(self) -> None:
        """Called right after the step, before the lock of the optimizer is released.

        hivemind makes one step of the schedule for each epoch that it is behind, however many another peer claims. The
        rate of a LambdaLR depends on the epoch alone, also of an earlier one; other schedules, which only scripts have,
        need each step.
        """
        behind = self.local_epoch - self.scheduler._step_count if self.scheduler else 0  # noqa: SLF001 - as hivemind
        by_epoch = isinstance(self.scheduler, torch.optim.lr_scheduler.LambdaLR)
        if behind > (0 if by_epoch else MOST_STEPS) or (by_epoch and behind < -1):
            self.scheduler.last_epoch, self.scheduler._step_count = self.local_epoch - 1, self.local_epoch  # noqa: SLF001 - as above
        super()._update_scheduler()
        if self._steps_now:
            self._steps_now = False
            self._whole_epoch.value += 1

    @contextmanager
    def whole(self) -> Iterator[list[torch.Tensor]]:
        """Parameters, extra tensors and the optimizer's, in hivemind's order: while this is open none of them changes."""
        with torch.no_grad(), self.lock_optimizer, self.lock_averaged_tensors:
            yield [*self._parameters, *dump_optimizer_state(self.optimizer)[1]]

    def copied(self) -> tuple[int, list[torch.Tensor]]:
        """The state's epoch and tensors, which nothing changes any more. From any thread."""
        with self.whole() as tensors:
            return self.whole_epoch, [each.detach().to("cpu", copy=True) for each in tensors]

    def get_current_state(self) -> tuple[Any, Sequence[torch.Tensor], Sequence[compression.CompressionInfo]]:
        """A copy of the state for newcomers, in memory shared with the averager's process."""
        with self.whole() as tensors:
            copied = shared.copied(tensors)
            epoch = self.whole_epoch
        metadata = {
            "epoch": epoch,
            "group_bits": self.get_group_bits(),
            "optimizer_metadata": dump_optimizer_state(self.optimizer)[0],
        }
        return metadata, copied, self._infos(copied)

    @property
    def _parameters(self) -> list[torch.Tensor]:
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        return [*parameters, *self.extra_tensors]

    def _infos(self, tensors: Sequence[torch.Tensor]) -> list[compression.CompressionInfo]:
        roles = [compression.TensorRole.PARAMETER] * len(self.main_parameters)
        roles += [compression.TensorRole.UNSPECIFIED] * len(self.extra_tensors)
        roles += [compression.TensorRole.OPTIMIZER] * (len(tensors) - len(roles))
        return [
            compression.CompressionInfo.from_tensor(tensor, key=key, role=role)
            for key, (tensor, role) in enumerate(zip(tensors, roles, strict=True))
        ]

    # --- loading

    def pieces(self) -> tuple[Piece, ...]:
        """What a state of this model consists of."""
        tensors = [*self._parameters, *dump_optimizer_state(self.optimizer)[1]]
        names = [*("" for _ in self._parameters), *names_of_statistics(self.optimizer)]
        return tuple(map(partial(piece_of, self.state_compression), tensors, names, self._infos(tensors)))

    def offers(self) -> Mapping[PeerID, float]:
        """The epochs of the states that other peers offer; empty if the DHT does not answer within DHT_SECONDS."""
        look = self.dht.get(key_of_offers(self.prefix), latest=True, return_future=True)
        try:
            found = look.result(DHT_SECONDS)
        except (TimeoutError, CancelledError, OSError):
            look.cancel()
            return {}
        entries = found.value if found and isinstance(found.value, dict) else {}
        offered = epochs_of({key: entry.value for key, entry in entries.items()})
        offered.pop(self.peer_id, None)
        return offered

    def ask_for_state(self, known: int) -> None:
        """Download the newest state in the background; `known` is the newest epoch we know of. See `load_checked`."""
        self.asked_at = get_dht_time()
        self._coming = self.download(Wanted(self.pieces(), (self.local_epoch, known)))

    def load_checked(self, known: int, tell: Tell = nobody) -> int | None:
        """Download the newest state, unless `ask_for_state` has started that, and apply it.

        Returns its epoch, or None when no peer offered a state at least as new as ours. There is no limit on the time;
        `tell` learns how far it is. Raises SwarmError when what arrived is not a state of this model.
        """
        if self._coming is None:
            self.ask_for_state(known)
        assert self._coming
        coming, self._coming = self._coming, None
        loaded = coming.wait(tell)
        if loaded is None or loaded[0] < self.local_epoch:
            return None
        self.adopt(*loaded)
        return loaded[0]

    def adopt(self, epoch: int, tensors: Sequence[torch.Tensor]) -> None:
        """Take over a state of `epoch`: parameters, then the optimizer's, in hivemind's order. Raises SwarmError."""
        check_all(self.pieces(), tensors)
        with self.whole():
            # our own hyperparameters: only tensors are taken from a donor, never a learning rate
            metadata, own = dump_optimizer_state(self.optimizer)
            # our own memory: what has arrived lies in memory that the averager's process shares
            restore([*self._parameters, *own], tensors)
            load_optimizer_state(self.optimizer, metadata, own)
            self.local_epoch = self._whole_epoch.value = epoch
        if self.offload_optimizer:
            self._apply_optimizer_parameters_()
        if not self.reuse_tensors:
            self._load_local_tensors_into_averager_()
        self._update_scheduler()


# RPC handler names are derived from class names: with ours, stock peers would not find us
CheckedGradientAverager.__name__ = GradientAverager.__name__
CheckedStateAverager.__name__ = TrainingStateAverager.__name__
