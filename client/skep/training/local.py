"""Communication between the devices of one computer in a script without a swarm, each with an optimizer of its own."""

from __future__ import annotations

from torch.nn.parallel import DistributedDataParallel

from skep.training.swarm import is_in_swarm
from skep.training.words import in_words
from skep.worker.ranks.hooks import AfterStep, Hook, register


def communicate(ddp: DistributedDataParallel, options: Hook) -> AfterStep:
    """Let the devices behind `ddp` communicate as the options say, by torch's own hooks.

    Call it once, in the process of each device, before the first backward pass. Call what it returns after each step of the
    optimizer: with PostLocalSGD that averages the parameters every `period` steps, else it does nothing. Raises
    TrainingError for options that cannot be used, as PostLocalSGD in a process that has joined a swarm.
    """
    with in_words():
        return register(ddp, options, local_steps=not is_in_swarm())
