"""Training scripts of one's own: a PyTorch loop with its own model, data and optimizer, in one swarm with others.

    with training.join(model, run_id="my-run", optimizer=lambda p: torch.optim.AdamW(p, lr=1e-3), target_batch_size=1024,
                       batch_size=8) as swarm:
        while swarm.epoch < 100:
            loss_of(model, next_batch()).backward()
            swarm.contribute()

docs/train-your-own-script.md explains each step. This package needs the training stack (extra `train`), and neither Qt nor
the app. Importing it makes multiprocessing fork, as hivemind needs, and has to precede the import of hivemind.
"""

from skep.worker.process.processes import use_fork

use_fork()

from skep.training.local import communicate  # noqa: E402 - hivemind is imported after the above
from skep.training.projects import build_model  # noqa: E402 - as above
from skep.training.swarm import Swarm, join  # noqa: E402 - as above
from skep.training.synchronisation import SyncOptions  # noqa: E402 - as above
from skep.training.words import TrainingError  # noqa: E402 - as above
from skep.worker.ranks.hooks import Compress, PostLocalSGD, PowerSGD  # noqa: E402 - as above
from skep.worker.swarm.strategy import EpochProgress  # noqa: E402 - as above

__all__ = [
    "Compress",
    "EpochProgress",
    "PostLocalSGD",
    "PowerSGD",
    "Swarm",
    "SyncOptions",
    "TrainingError",
    "build_model",
    "communicate",
    "join",
]
