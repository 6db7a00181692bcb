"""A script with Lightning that trains in the swarm of a published project: `lightning_project_script.py OPTIONS` (JSON).

Prints a JSON line at each epoch of the swarm, and one for each confirmed contribution. It ends by Ctrl-C.
"""

import json
import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import Logger
from safetensors.torch import load_file

from skep import training
from skep.core.session.messages import ContributionConfirmed
from skep.lightning import HivemindStrategy

options = json.loads(sys.argv[1])
hear = training.Swarm._hear


def tell(event, **more):
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")  # at once: another thread may tell something too
    sys.stdout.flush()


def heard(swarm, message):
    if isinstance(message, ContributionConfirmed):
        tell("confirmed", epoch=message.epoch, peers=message.peers)
    hear(swarm, message)


training.Swarm._hear = heard


class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.model = training.build_model(options["project"])

    def training_step(self, batch, _number):
        return self.model(input_ids=batch, labels=batch).loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)  # the project's takes its place


class Told(Logger):
    """The Trainer's logger."""

    name, version = "told", 0

    def log_metrics(self, metrics, step=None):
        if "swarm/epoch" in metrics:
            told = {name.removeprefix("swarm/"): value for name, value in metrics.items()}
            tell("epoch", confirmed=told["confirmed_samples"], **told)

    def log_hyperparams(self, *_args, **_more):
        pass


samples = torch.utils.data.DataLoader(load_file(options["shard"])["tokens"].long(), batch_size=8, shuffle=True)
strategy = HivemindStrategy(project=options["project"], host_maddrs=["/ip4/127.0.0.1/tcp/0"])
quiet = dict.fromkeys(("enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
Trainer(strategy=strategy, accelerator="cpu", devices=1, max_epochs=-1, logger=Told(), **quiet).fit(Module(), samples)
