"""A Trainer with two devices in a swarm of nobody: `lightning_devices_script.py OPTIONS`, which are JSON.

Prints a JSON line for each contribution, one with the gradient on both ranks after each backward pass, and one with the
parameter on both after each batch.
"""

import json
import os
import signal
import socket
import sys
import time
from datetime import timedelta

import psutil
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.plugins.precision import MixedPrecision
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

from skep import training
from skep.lightning import HivemindStrategy

options = json.loads(sys.argv[1])


def tell(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


class SwarmOfNobody:
    """In place of Swarm: notes what is contributed, and steps after every second contribution, as at the end of an epoch."""

    confirmed = peers = epoch = accumulated = 0
    finished = False

    def __init__(self, module, **arguments):
        self.weight = module.weight
        with torch.no_grad():
            self.weight.add_(100.0)  # the state of the swarm
        tell("joined", batch_size=arguments["batch_size"])

    def contribute(self, samples, *, scaled):
        assert scaled
        tell("contributed", samples=samples, gradient=self.weight.grad.item())
        time.sleep(options.get("round_seconds", 0))
        self.accumulated += samples
        self.confirmed += 1
        stepped = self.confirmed % 2 == 0
        if stepped:
            with torch.no_grad():
                self.weight.sub_(1.0)
            self.accumulated = 0
        if stepped or not options.get("reuse_grad_buffers"):
            self.weight.grad.zero_()
        self.finished = self.confirmed == options.get("last", 0)
        return stepped

    def tend(self):
        return False

    def leave(self):
        tell("left")


class Module(LightningModule):
    """Its gradient is the mean of the samples."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        if options.get("unused"):
            self.unused = torch.nn.Parameter(torch.zeros(1))

    def training_step(self, batch, _number):
        return (self.weight * batch).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1.0)


def end_slowly(seconds):
    """End as an interpreter does on a busy computer: connections are closed some time before the process has ended."""
    for each in psutil.Process().net_connections("tcp"):
        if each.status == psutil.CONN_ESTABLISHED:
            socket.socket(fileno=os.dup(each.fd)).shutdown(socket.SHUT_RDWR)
    time.sleep(seconds)
    sys.exit(7)


class Watching(Callback):
    def on_train_start(self, trainer, _module):
        if trainer.is_global_zero:
            ddp = trainer.strategy.model
            names = ("static_graph", "gradient_as_bucket_view", "find_unused_parameters", "bucket_bytes_cap")
            tell("wrapped", **{name: getattr(ddp, name) for name in names})

    def on_after_backward(self, trainer, module):
        found = trainer.strategy.all_gather(module.weight.grad.detach())
        if trainer.is_global_zero:
            tell("backward", gradients=found.flatten().tolist())

    def on_train_batch_end(self, trainer, module, *_):
        found = trainer.strategy.all_gather(module.weight.detach())
        if trainer.is_global_zero:
            tell("batch", weights=found.flatten().tolist())
        if options.get("fails_on_rank") == trainer.global_rank:
            end_slowly(options["ends_after"])
        if options.get("stops_on_rank") == trainer.global_rank:
            os.kill(os.getpid(), signal.SIGSTOP)


training.join = SwarmOfNobody
quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
trainer = Trainer(
    strategy=HivemindStrategy(
        target_batch_size=64,
        reuse_grad_buffers=options.get("reuse_grad_buffers", False),
        timeout=timedelta(seconds=options.get("timeout", 60)),
        ddp_comm_hook=fp16_compress_hook if options.get("hook") else None,
        **options.get("ddp", {}),
    ),
    accelerator="cpu",
    devices=2,
    callbacks=[Watching()],
    plugins=[MixedPrecision("16-mixed", "cpu")] if options.get("fp16") else None,
    **{"max_epochs": 1, **quiet, **options.get("trainer", {})},
)
samples = torch.tensor(options["samples"])
trainer.fit(Module(), torch.utils.data.DataLoader(samples, batch_size=4))
if trainer.is_global_zero:
    tell("done")
