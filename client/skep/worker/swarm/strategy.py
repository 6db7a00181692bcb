"""How peers that train the same model keep in step: what the worker asks of it, whatever the manifest names.

To add one: a module of this package with a `STRATEGY`, which is a StrategyMaker, and its line in `SYNC_MODES` of
`skep.core.project.manifest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol

import hivemind
import torch

from skep.core.project.manifest import SYNC_MODES, Manifest
from skep.core.text import Text
from skep.worker.swarm.auth import Membership
from skep.worker.swarm.rounds import Rounds

ASLEEP: Final = Text("round.computer_was_asleep")

Rate = Callable[[], float | None]
"""Samples a second that this peer trains at present, waiting for the swarm excluded; None while nobody knows."""


@dataclass(frozen=True)
class EpochProgress:
    """Samples that the swarm has accumulated for this epoch, and after how many it ends."""

    samples: int
    target: int


class SyncStrategy(Protocol):
    """One peer's way to keep in step with its swarm.

    It is used by the training thread alone, but for `epoch`, `progress` and `farewell`. It adds nothing to `.grad` and
    clears it when what it holds was handed over. Methods that talk to the swarm raise SwarmError.
    """

    @property
    def epoch(self) -> int:
        """The epoch that this peer's parameters belong to."""

    @property
    def progress(self) -> EpochProgress: ...

    @property
    def settled(self) -> bool:
        """Whether a peer that computes no more may leave: nothing of it waits for others, or nobody will come."""

    # --- a newcomer

    def ready(self, within: float) -> None:
        """Return when others can be averaged with, after at most `within` seconds; what is in `.grad` so far is dropped."""

    def synchronise(self) -> None:
        """Before the first sample: take over the swarm's state, unless there is none yet."""

    # --- a peer that trains

    def contribute(self, samples: int) -> None:
        """Count `samples` whose scaled gradients were added to `.grad` since the last call."""

    def discard(self, reason: Text) -> None:
        """Drop all that was contributed and not averaged yet; `reason` is for the ledger."""

    def tend(self, hand_over: Callable[[], None]) -> bool:
        """Keep in step with the swarm; called after each micro-batch, and five times a second at rest.

        `hand_over` makes the caller contribute the samples of an unfinished step batch; it is called before they would be
        left out. Returns whether the epoch changed. Blocks for as long as a round or a state on its way takes.
        """

    def rest(self, *, leaving: bool) -> None:
        """From now on this peer computes nothing. Harmless when repeated; with `leaving` it will not come back."""

    def wake(self) -> None:
        """Be in step with the swarm and counted on again, after a rest."""

    def find_back(self, hand_over: Callable[[], None]) -> bool:
        """After the computer slept while this peer trained: whether it is in step again; False to be asked again."""

    def tensors(self) -> Iterator[torch.Tensor]:
        """What lives on the training device beside the model and its gradients."""

    def farewell(self, within: float) -> None:
        """Tell the swarm that this peer goes, from any thread; returns after at most `within` seconds."""


@dataclass(frozen=True)
class Participant:
    """This peer, as a strategy needs it.

    `parameters` are those that are trained. `step_batch` samples are contributed at a time, or fewer. `rounds` is told what
    becomes of each contribution.
    """

    manifest: Manifest
    dht: hivemind.DHT
    parameters: list[torch.nn.Parameter]
    step_batch: int
    rounds: Rounds
    rate: Rate = lambda: None
    membership: Membership | None = None


StrategyMaker = Callable[[Participant], SyncStrategy]
"""Begins to take part; what a newcomer needs is asked for at once."""


def strategy_of(manifest: Manifest) -> StrategyMaker:
    """The one that the manifest names."""
    made: StrategyMaker = import_module(f"skep.worker.swarm.{SYNC_MODES[manifest.sync.mode]}").STRATEGY
    return made
