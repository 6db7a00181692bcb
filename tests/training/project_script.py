"""A script that trains in the swarm of a published project: `project_script.py OPTIONS`, which are JSON.

Prints a JSON line when it has joined and at each epoch. It ends when its stdin is closed.
"""

import json
import os
import sys
import threading

import torch
from safetensors.torch import load_file

from skep import training

options = json.loads(sys.argv[1])
stop = threading.Event()


def tell(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


def read():
    os.read(0, 64)  # not sys.stdin, which forked processes close: they would wait for this thread
    stop.set()


threading.Thread(target=read, daemon=True).start()
samples = load_file(options["shard"])["tokens"].long()
model = training.build_model(options["project"])
joining = training.join(
    model, project=options["project"], batch_size=8, host="127.0.0.1", report=lambda line: tell("said", line=line)
)
with joining as swarm:
    tell("joined", epoch=swarm.epoch)
    while not (stop.is_set() or swarm.finished):
        batch = samples[torch.randint(len(samples), (8,))]
        model(input_ids=batch, labels=batch).loss.backward()
        if swarm.contribute():
            tell("epoch", epoch=swarm.epoch, peers=swarm.peers, confirmed=swarm.confirmed, lost=swarm.lost)
