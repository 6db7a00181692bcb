"""Rounds that average the parameters: an average is checked before it replaces our own, and its outcome is told.

Stock behaviour that this corrects, covered by a test: an average is written over the parameters part by part, whatever
it contains, and a failed round is noted in the log only. Peers of different epochs form a group: one of them
may first have a round of gradients, in which the other is waited for, and both wait until they give up.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.averaging.control import StepControl
from hivemind.optim.state_averager import TrainingStateAverager

from skep.worker.swarm.averaging.all_reduce import Used
from skep.worker.swarm.averaging.drift import Drift
from skep.worker.swarm.averaging.groups import EPOCH, epoch_told, of_one_epoch
from skep.worker.swarm.averaging.honest_averager import HonestAverager, in_thread
from skep.worker.swarm.averaging.robust import Combination, Median
from skep.worker.swarm.plausible import finite, plausible_changes, size_of
from skep.worker.swarm.rounds import RoundFacts

LACKING_WEIGHT: Final = 1e-3
"""Of a peer whose parameters lack steps. Not 0: two such peers may meet alone."""

_log = logging.getLogger(__name__)


class CheckedRounds(HonestAverager, TrainingStateAverager):
    """The averager's process keeps the changes of a round until all have arrived, and then uses all or none of them.

    That takes 4 bytes per parameter of RAM during a round, and nothing between rounds: the parameters themselves are
    not copied. While a round runs, other threads see the parameters from before it.
    """

    settled: Callable[[RoundFacts | None], None] = staticmethod(lambda _facts: None)
    """Called from the thread that averages, after each round; with None if the round failed."""

    reached = 0
    """The epoch in which the last shared round of gradients left us; `local_epoch` follows it a moment later."""

    @property
    def round_epoch(self) -> int:
        """The epoch that a round of the state begins now."""
        return max(int(self.local_epoch), self.reached)

    # --- the averager's process

    _accepts = staticmethod(of_one_epoch)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._drift = Drift()  # before hivemind's constructor, which forks
        super().__init__(*args, **kwargs)

    def _new_combination(self) -> Combination:
        return Median()

    async def _use(self, runner: AllReduceRunner, tensors: Sequence[torch.Tensor]) -> Used:
        sizes = [await in_thread(size_of, tensor) for tensor in tensors]
        if not all(map(math.isfinite, sizes)):
            runner.finalize(cancel=True)  # nothing was sent yet, and the others learn that nothing will come
            return Used(refused=True)
        bounds = await in_thread(partial(self._drift.bounds, sizes=sizes), tensors)
        if runner.weight <= LACKING_WEIGHT:
            bounds = None  # what our own steps have moved says nothing of those that we lack
        changes = [change async for change in runner]
        if not await in_thread(partial(plausible_changes, sizes=sizes, bounds=bounds), changes):
            return Used(refused=True)
        for tensor, change in zip(tensors, changes, strict=True):
            tensor.add_(change, alpha=self._averaging_alpha)
        self._drift.settle(tensors)
        return Used(moved=True)  # also by nothing: the parameters of peers that missed no round are equal

    async def _get_current_state_from_host_process(self) -> Any:
        """Raises ValueError for a state that no newcomer would accept; it asks the next peer."""
        state = await super()._get_current_state_from_host_process()
        if not await in_thread(finite, state[1]):
            raise ValueError("the state is not finite and is not sent")
        return state

    # --- the worker's process

    def _do(
        self,
        wait_for_trigger: Any,
        optimizer_step: bool,  # noqa: FBT001 - hivemind's
        zero_grad: bool,  # noqa: FBT001
        averaging_round: bool,  # noqa: FBT001
        averaging_control: StepControl | None,
        *others: Any,
        **options: Any,
    ) -> None:
        if averaging_round:
            averaging_control = self._usable(averaging_control, **options)
        super()._do(wait_for_trigger, optimizer_step, zero_grad, averaging_round, averaging_control, *others, **options)
        if averaging_round:
            self.settled(facts_of(averaging_control))

    def schedule_step(self, *args: Any, gather: int, **options: Any) -> StepControl:
        scheduled: StepControl = super().schedule_step(*args, gather={EPOCH: gather}, **options)
        return scheduled

    def _usable(self, control: StepControl | None, **options: Any) -> StepControl | None:
        """The control of this round, made here instead of in hivemind's `_do`, so that its result can be read.

        `options` are those of hivemind's `step`, as for a round that is not scheduled; a scheduled one keeps its own but
        for the weight, which is decided now.
        """
        epoch = self.round_epoch
        if control is not None and not control.triggered and not control.done():
            if epoch_told(control.data_for_gather) == epoch:
                control.weight = options.get("weight", control.weight)
                return control
            control.cancel()
        try:
            made: StepControl = DecentralizedAverager.step(
                self, gather={EPOCH: epoch}, require_trigger=True, wait=False, **options
            )
        except Exception:  # noqa: BLE001 - hivemind's `_do` tries once more, and notes the failure
            _log.exception("A round of the state could not begin")
            return None
        return made


def facts_of(control: StepControl | None) -> RoundFacts | None:
    """The facts of a round that is over; None if it failed."""
    if control is None or not control.done() or control.cancelled() or control.exception():
        return None
    facts: RoundFacts = control.result().facts
    return facts
