"""What rank 0 tells another rank, and its answers: pickled objects through a pair of sockets.

Each order to which an answer is named gets exactly one, the others none. A rank that neither answers nor ends in time
is killed, so no answer ever arrives late.
"""

from __future__ import annotations

from dataclasses import dataclass

from skep.core.text import Problem
from skep.recipes.contract import Files
from skep.recipes.tensors.batches import Batch


@dataclass(frozen=True)
class Build:
    """Build the model on `device`, as torch names it, in `precision`. Answer: Built or Refused.

    Where it is `sharded`, only prepare for the orders in Sharded. `leave_gpu`, `nice` and `present` as in WorkerOptions.
    """

    device: str
    precision: str
    files: Files
    leave_gpu: int
    nice: int
    present: bool
    sharded: bool = False


@dataclass(frozen=True)
class Meet:
    """Form the group of `size` through `path`, as `rank`, where a collective may take `seconds`.

    `device` as torch names it. Answer of each collective: Done, Broken or NoMemory.
    """

    path: str
    rank: int
    size: int
    backend: str
    seconds: float
    device: str


@dataclass(frozen=True)
class TakeParameters:
    """Receive the parameters from rank 0; with `whole`, everything in the model. Answer as to Meet."""

    whole: bool


@dataclass(frozen=True)
class Compute:
    """Compute the gradients of `factor` x mean loss over `batch` and hold them. Answer: Computed or NoMemory."""

    batch: Batch
    factor: float
    threads: int
    present: bool


@dataclass(frozen=True)
class Settle:
    """Add `weight` x the held gradients to `.grad`, or drop them if it is None."""

    weight: float | None


@dataclass(frozen=True)
class GiveGradients:
    """Send `.grad` into the sum at rank 0. It stays as it is until Forget. Answer as to Meet."""


@dataclass(frozen=True)
class Forget:
    """Make `.grad` zero."""


@dataclass(frozen=True)
class Tidy:
    """Free memory that is cached and not used."""


@dataclass(frozen=True)
class Recompute:
    """From now on keep few activations, and compute the others again."""


@dataclass(frozen=True)
class Move:
    """Move the model into RAM (`away`), or back to the device. Answer: Done or NoMemory."""

    away: bool


# --- to the ranks of a sharded model, all of them at the same time: each of these is a collective


@dataclass(frozen=True)
class Shard:
    """Make this rank's shards and fill them from rank 0's masters, whole. Answer: Done, Broken or NoMemory.

    With `recompute`, keep few activations; with `offload`, the shards in the host's memory; `factor` is that on the
    loss in fp16.
    """

    recompute: bool
    factor: float
    offload: bool


@dataclass(frozen=True)
class LoadTrained:
    """Fill the shards of the parameters that are trained from rank 0's masters. Answer: Done, Broken or NoMemory."""


@dataclass(frozen=True)
class Pass:
    """Add the gradients of `scale` x mean loss over the micro-batch to the shards' sums; if it is None, only compute the loss.

    `part` are this rank's of its `samples`, and may be empty. Answer: Computed, with the loss of all, Broken or NoMemory.
    """

    part: Batch
    samples: int
    scale: float | None
    threads: int
    present: bool


@dataclass(frozen=True)
class Gather:
    """Send the shards' sums to rank 0 and start from zero again. Answer: Done, Broken or NoMemory."""


@dataclass(frozen=True)
class DropShards:
    """Free the memory of the shards, and what they have summed up."""


Sharded = Shard | LoadTrained | Pass | Gather
Unanswered = Settle | Forget | Tidy | Recompute | DropShards
Order = Build | Meet | TakeParameters | Compute | GiveGradients | Move | Sharded | Unanswered


@dataclass(frozen=True)
class Built:
    name: str


@dataclass(frozen=True)
class Refused:
    """The device cannot be used, or `for_memory`: the model does not fit into its memory."""

    problem: Problem
    for_memory: bool = False


@dataclass(frozen=True)
class Computed:
    """The mean loss in nats per prediction, whether it and the gradients are finite, and seconds: of computing as the
    device's stopwatch gives them, and of wall time.
    """

    loss: float
    finite: bool
    spent: float
    wall: float


@dataclass(frozen=True)
class Done: ...


@dataclass(frozen=True)
class Broken:
    """A collective failed."""


@dataclass(frozen=True)
class NoMemory:
    """Memory ran out. In a sharded model the rank has left the group, so that the others do not wait for it."""


Answer = Built | Refused | Computed | Done | Broken | NoMemory
