"""The interface of sync strategies: how peers that train the same model stay synchronised.

To add one: a module of this package with a `STRATEGY`, which is a StrategyMaker, and its line in `SYNC_MODES` of
`skep.core.project.manifest`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import hivemind
import torch

from skep.core.project.manifest import SYNC_MODES, Manifest, Sync
from skep.core.text import Text
from skep.worker.connection.auth import Membership
from skep.worker.connection.watch import Part
from skep.worker.swarm.apart import Notice
from skep.worker.swarm.optimizers import Factory, optimizer_factory, scheduler
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.state.coming import Tell, nobody
from skep.worker.swarm.state.signed import SignedState
from skep.worker.swarm.state.snapshots import Snapshots

Rate = Callable[[], float | None]
"""Samples per second that this peer trains at present, excluding waits for the swarm; None while unknown."""


@dataclass(frozen=True)
class EpochProgress:
    """Samples that the swarm has accumulated for this epoch, and the number at which it ends.

    `seconds_left` is when that is expected at the present rates; None while it cannot be said.
    """

    samples: int
    target: int
    seconds_left: float | None = None


class SyncStrategy(Protocol):
    """Keeps one peer synchronised with its swarm.

    Used by the training thread only, except `epoch`, `progress` and `farewell`. It adds nothing to `.grad`, and clears
    it when its content was handed over. Methods that communicate with the swarm raise SwarmError.
    """

    @property
    def epoch(self) -> int:
        """The epoch that this peer's parameters belong to."""

    @property
    def progress(self) -> EpochProgress: ...

    @property
    def settled(self) -> bool:
        """Whether a peer that has stopped computing may leave: its work waits for no round, or no round will come."""

    @property
    def finished(self) -> bool:
        """Whether the run's last epoch has ended, for this peer or for all others that are known.

        Then this peer computes nothing more, and `rest` keeps its state available without taking part in a round.
        """

    # --- a newcomer

    def ready(self, within: float) -> None:
        """Wait at most `within` seconds until averaging is possible; drops what is in `.grad` so far."""

    def synchronise(self) -> None:
        """Before the first sample: load the swarm's state, unless there is none yet, and enter its epoch."""

    # --- a peer that trains

    def contribute(self, samples: int) -> None:
        """Count `samples` whose scaled gradients were added to `.grad` since the last call."""

    def discard(self, reason: Text) -> None:
        """Drop everything contributed and not averaged yet; `reason` is for the ledger."""

    def tend(self, hand_over: Callable[[], None]) -> bool:
        """Synchronise with the swarm; called after each micro-batch, and five times a second at rest.

        `hand_over` makes the caller contribute the samples of an unfinished step batch; it is called before they would
        be left out. Returns whether the epoch changed. Blocks for as long as a round or a state download takes.
        """

    def rest(self, *, leaving: bool) -> None:
        """This peer stops computing; with `leaving` it will not resume. May be called repeatedly."""

    def wake(self) -> None:
        """Synchronise and publish progress again, after a rest."""

    def find_back(self, hand_over: Callable[[], None]) -> bool:
        """Synchronise after the computer slept; False means that it should be called again.

        What was accumulated is kept if the swarm is still in the same epoch, also at rest.
        """

    def reload(self) -> None:
        """Replace parameters that are not finite by the swarm's or the publisher's; drop what was not averaged."""

    def tensors(self) -> Iterator[torch.Tensor]:
        """Tensors on the training device besides the model and its gradients."""

    def parts(self) -> Iterator[Part]:
        """Processes and threads of its own, which are watched; besides the DHT's."""

    def save(self, within: float, copied: Callable[[], object] = lambda: None) -> None:
        """Save the state on this computer, as the last call; returns after at most `within` seconds.

        `copied` is called, in any thread, as soon as the tensors are not needed any more.
        """

    def farewell(self, within: float) -> None:
        """Tell the swarm that this peer leaves, from any thread; returns after at most `within` seconds."""


@dataclass(frozen=True)
class Run:
    """What the peers of one swarm have in common, of a project or of scripts.

    `optimizer` gives the factory of an optimizer that steps as its rounds allow (GuardedStep). `scheduler` makes the
    schedule, which is stepped once per epoch; None keeps the learning rate. `total_epochs` is infinite for a run without
    an end.
    """

    run_id: str
    sync: Sync
    optimizer: Callable[[Rounds], Factory]
    scheduler: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler] | None = None
    total_epochs: float = math.inf


def run_of(manifest: Manifest) -> Run:
    return Run(
        manifest.run_id,
        manifest.sync,
        partial(optimizer_factory, manifest.optimizer),
        partial(scheduler, schedule=manifest.schedule),
        manifest.schedule.total_epochs,
    )


@dataclass(frozen=True)
class Participant:
    """What a strategy needs to know of this peer.

    `parameters` are those that are trained. At most `step_batch` samples are contributed at a time. `rounds` records
    what becomes of each contribution, and `loading` is told how far a state has come that is being loaded. The
    state is kept in `snapshots`, if anywhere. The more `bandwidth`, the more this peer averages for others; 1 if they can
    dial it. `notice` tells the user of a problem that does not end training, or is over. With `signed`, a newcomer begins with that
    state, and no state of another peer is ever loaded. `groups` are the parameters in the same order, in groups with
    options of torch's optimizers; None for one group.
    """

    run: Run
    dht: hivemind.DHT
    parameters: list[torch.nn.Parameter]
    step_batch: int
    rounds: Rounds
    rate: Rate = lambda: None
    membership: Membership | None = None
    notice: Notice = lambda _notice: None
    loading: Tell = nobody
    snapshots: Snapshots | None = None
    bandwidth: float = 1.0
    signed: SignedState | None = None
    groups: Sequence[dict[str, Any]] | None = None


StrategyMaker = Callable[[Participant], SyncStrategy]
"""Makes a strategy, and immediately requests what a newcomer needs."""


def strategy_of(manifest: Manifest) -> StrategyMaker:
    """The maker of the strategy that the manifest names."""
    made: StrategyMaker = import_module(f"skep.worker.swarm.{SYNC_MODES[manifest.sync.mode]}").STRATEGY
    return made
