"""A script with Lightning, as a user writes it: `lightning_script.py OPTIONS`, which are JSON.

Prints a JSON line when it has joined, at each epoch of the swarm, and after fit. It ends when its stdin is closed.
"""

import json
import multiprocessing
import os
import signal
import sys
import threading
import time

import torch
from compressions import made
from lightning.pytorch import Callback, LightningModule, Trainer, seed_everything
from lightning.pytorch.loggers import Logger
from lightning.pytorch.plugins.precision import MixedPrecision

from skep.lightning import HivemindStrategy
from skep.training import processes
from skep.worker.connection.network import ByteCounters, add
from skep.worker.swarm.averaging.honest_averager import HonestAverager

options = json.loads(sys.argv[1])
stop = threading.Event()
FLAGS = ("offload_optimizer", "delay_optimizer_step", "delay_grad_averaging", "delay_state_averaging")
seed_everything(0, verbose=False)


def tell(event, **more):
    if trainer.is_global_zero:
        print(json.dumps({"event": event, **more}), flush=True)


traffic, rounds_tried = ByteCounters(), multiprocessing.Value("q", 0)
processes.ByteCounters = lambda: traffic  # those of the swarm
aggregate = HonestAverager._aggregate_with_group


async def counted(*args, **kwargs):
    """A round of a group, in an averager's process."""
    add(rounds_tried, 1)
    return await aggregate(*args, **kwargs)


HonestAverager._aggregate_with_group = counted


def values():
    return [round(each, 6) for p in module.parameters() for each in p.flatten().tolist()[:20]]


def read():
    # not sys.stdin, which forked processes close: they would wait for this thread
    if os.read(0, 64).strip() == b"interrupt":
        signal.raise_signal(signal.SIGINT)
    stop.set()


class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 1))

    def training_step(self, batch, _number):
        inputs, wanted = batch
        time.sleep(options.get("pause", 0.05))
        return torch.nn.functional.mse_loss(self.layers(inputs), wanted)

    def validation_step(self, batch, _number):
        self.log("val_loss", torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1]))

    def configure_optimizers(self):
        bias = [p for p in self.parameters() if p.ndim < 2]
        weights = [p for p in self.parameters() if p.ndim > 1]
        return torch.optim.AdamW([{"params": weights}, {"params": bias, "weight_decay": 0.0}], lr=1e-3)


class Told(Logger):
    """The Trainer's logger."""

    name, version = "told", 0

    def log_metrics(self, metrics, step=None):
        if "swarm/epoch" in metrics:
            rounds = trainer.strategy.swarm._sync
            tell(
                "epoch",
                epoch=metrics["swarm/epoch"],
                peers=metrics["swarm/peers"],
                confirmed=metrics["swarm/confirmed_samples"],
                values=values(),
                step=step,
                alike=watching.alike,
                sent=traffic.sent.value,
                rounds=rounds_tried.value,
                rate=rounds.param_groups[0]["lr"],
                flags={name: getattr(rounds, name) for name in FLAGS},
            )

    def log_hyperparams(self, *_args, **_more):
        pass


class Watching(Callback):
    joined, alike = False, True
    """Whether the parameters were the same on all ranks after each batch."""

    def on_train_batch_end(self, trainer, *_):
        swarm = trainer.strategy.swarm
        if not self.joined and swarm:
            ranks = [process.pid for process in getattr(trainer.strategy.launcher, "procs", ())]
            kept = (module.zero_grad(), module_keeps())[1]
            tell("joined", addresses=swarm.addresses, epoch=swarm.epoch, kept=kept, ranks=ranks, values=values())
        self.joined = True
        found = trainer.strategy.all_gather(sum(p.detach().double().sum() for p in module.parameters()))
        self.alike &= len(found.unique()) == 1
        if trainer.strategy.broadcast(stop.is_set()):  # what rank 0 reads; a rank's own stdin is empty
            trainer.should_stop = True

    def on_train_epoch_end(self, *_):
        folder = processes._Forks.folder  # none in the process of another device
        tell("pass", folder=folder is not None and folder.is_dir())

    def on_train_end(self, *_):
        tell("leaving", at=time.time())


def module_keeps():
    """Whether gradients are still there after zero_grad."""
    return any(p.grad is not None and bool(p.grad.abs().sum()) for p in module.parameters())


def loader(count):
    chance = torch.Generator().manual_seed(options.get("seed", 0))
    inputs = torch.randn(count, 256, generator=chance)
    target = torch.linspace(0, 0.1, 256)[:, None]
    samples = torch.utils.data.TensorDataset(inputs, inputs @ target)
    return torch.utils.data.DataLoader(samples, batch_size=8, num_workers=options.get("workers", 0))


threading.Thread(target=read, daemon=True).start()
module, watching = Module(), Watching()
strategy = HivemindStrategy(
    **{
        "target_batch_size": options.get("target", 256),
        "run_id": "lightning",
        "initial_peers": options.get("peers", ()),
        "matchmaking_time": 2.0,
        "averaging_timeout": 20.0,
        "host_maddrs": ["/ip4/127.0.0.1/tcp/0"],
    }
    | made(options.get("strategy", {}))
)
trainer = Trainer(
    **{
        "strategy": strategy,
        "accelerator": "cpu",
        "devices": 1,
        "max_epochs": -1,
        "logger": Told(),
        "callbacks": [watching],
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
    }
    | options.get("trainer", {})
    # Lightning takes bf16 in place of precision="16-mixed" on the processor
    | ({"plugins": [MixedPrecision("16-mixed", "cpu")]} if options.get("fp16") else {})
)
trainer.fit(module, loader(options.get("samples", 1001)), loader(16))
module.zero_grad()
scaler = getattr(trainer.precision_plugin, "scaler", None)
tell(
    "left",
    scale=scaler and scaler.get_scale(),
    at=time.time(),
    kept=module_keeps(),
    own="zero_grad" in vars(module),
    clip=trainer.gradient_clip_val,
)
