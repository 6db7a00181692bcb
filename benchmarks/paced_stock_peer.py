"""A stock hivemind peer that computes nothing and reports samples at a given rate, to test progress tracking.

    python paced_stock_peer.py OPTIONS.json

The options: peers, run_id, target, batch, rate. Each line of its standard input is another rate in samples a second; 0
is a pause, which to hivemind is a peer that no longer steps. Prints {"event": "contribution", "epoch", "samples"} for
each round.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import hivemind
import torch
from hivemind.p2p import P2P


class Rate:
    """Samples a second, as last set."""

    def __init__(self, first: float) -> None:
        self.now = first
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self.now = float(line)
        os._exit(0)


def build(options: dict[str, Any]) -> tuple[hivemind.Optimizer, torch.nn.Parameter]:
    parameter = torch.nn.Parameter(torch.zeros(64))
    dht = hivemind.DHT(initial_peers=options["peers"], start=True, startup_timeout=60)
    optimizer = hivemind.Optimizer(
        dht=dht,
        run_id=options["run_id"],
        target_batch_size=options["target"],
        batch_size_per_step=options["batch"],
        params=[parameter],
        optimizer=lambda params: torch.optim.SGD(params, lr=0.01),
        matchmaking_time=3.0,
        averaging_timeout=20.0,
        reuse_grad_buffers=True,
        offload_optimizer=True,
        delay_optimizer_step=True,
        delay_state_averaging=True,
        average_state_every=1000,
    )
    return optimizer, parameter


def say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def main() -> None:
    multiprocessing.set_start_method("fork", force=True)  # hivemind's averagers cannot be pickled, as others require
    P2P._UNIX_SOCKET_PREFIX = f"/unix{tempfile.mkdtemp(prefix='s-')}/h-"  # noqa: SLF001 - stock leaves them in /tmp
    options = json.loads(Path(sys.argv[1]).read_text())
    optimizer, parameter = build(options)
    optimizer.load_state_from_peers()
    rate, mine = Rate(options["rate"]), 0
    say(event="progress", epoch=optimizer.local_epoch)
    due = time.monotonic()
    while True:
        if rate.now <= 0:
            time.sleep(0.05)
            due = time.monotonic()
            continue
        due += options["batch"] / rate.now
        time.sleep(max(0.0, due - time.monotonic()))
        parameter.grad += 1.0
        mine, epoch = mine + options["batch"], optimizer.local_epoch
        optimizer.step()
        if optimizer.local_epoch != epoch:
            say(event="contribution", epoch=epoch, samples=mine)
            mine, due = 0, time.monotonic()


if __name__ == "__main__":
    main()
