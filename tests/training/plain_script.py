"""A script with a plain PyTorch loop, as a user writes it: `plain_script.py OPTIONS`, which are JSON.

Prints a JSON line when it has joined, at each epoch and after it has left. It ends when its stdin is closed, or as
`end` says: "exception", "interrupt", "none" (without leaving) or "" for the end of the with statement.
"""

import json
import os
import signal
import sys
import threading
import time
from functools import partial

import torch

from skep import training
from skep.worker.connection import network

options = json.loads(sys.argv[1])
given = options.get("join", {})
SHAPE = options.get("shape", 4)
stop = threading.Event()


def tell(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


def read():
    # not sys.stdin, which forked processes close: they would wait for this thread
    if os.read(0, 64).strip() == b"interrupt":
        signal.raise_signal(signal.SIGINT)
    stop.set()


threading.Thread(target=read, daemon=True).start()
if options.get("undialled"):
    undialled = {"find_out": lambda _dht: False, "becomes_relayed": lambda _dht: False}
    network.connect_as_needed = partial(network.connect_as_needed, **undialled)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(SHAPE, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
chance = torch.Generator().manual_seed(options.get("seed", 0))
target = torch.arange(1.0, SHAPE + 1) / SHAPE


def batch(size=8):
    inputs = torch.randn(size, SHAPE, generator=chance)
    return inputs, inputs @ target[:, None]


def loss():
    inputs, wanted = batch()
    return torch.nn.functional.mse_loss(model(inputs), wanted)


def optimizer(parameters):
    return torch.optim.AdamW(parameters, lr=1e-2)


def values():
    return [round(each, 6) for p in model.parameters() for each in p.flatten().tolist()]


swarm = training.join(
    model,
    run_id="scripts",
    optimizer=optimizer,
    target_batch_size=options.get("target", 256),
    batch_size=8,
    initial_peers=options.get("peers", ()),
    report=lambda line: tell("said", line=line),
    **{"host": "127.0.0.1", "matchmaking_time": 2.0, "averaging_timeout": 20.0} | given,
)
tell("joined", addresses=swarm.addresses, epoch=swarm.epoch, values=values())
if options.get("end") == "none":
    sys.exit()
with swarm:
    while not stop.is_set():
        loss().backward()
        stop.wait(options.get("pause", 0.05))
        if swarm.contribute():
            tell(
                "epoch",
                epoch=swarm.epoch,
                peers=swarm.peers,
                confirmed=swarm.confirmed,
                lost=swarm.lost,
                values=values(),
            )
    tell("leaving", at=time.time())
tell("left", at=time.time(), confirmed=swarm.confirmed, lost=swarm.lost, after=loss().item())
