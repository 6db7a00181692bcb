"""A stock peer: a minimal loop around hivemind.Optimizer, as in hivemind's own ALBERT example.

Batch, flags, compressions and times are the manifest's, not the example's, so that it does the same work as skep.

    python stock_peer.py OPTIONS.json

The options: model (our recipe's fields), shard, peers, run_id, sync (the manifest's), optimizer, batch. Prints JSON
lines: {"event": "counted"} when its first step batch is in the gradients of an epoch; {"event": "progress", "samples",
"counted", "epoch", "seconds"} about twice a second and when the epoch has changed; of each round {"event":
"contribution", "epoch", "samples"} and {"event": "confirmed" or "lost", "epoch", "samples", "peers"}, where hivemind
also confirms a group whose data did not all arrive. On SIGTERM it shuts hivemind down as its documentation says, then
ends.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import hivemind
import torch
from bare_loop import REPORT_SECONDS, build_model, samples_of
from hivemind.compression import (
    CompressionBase,
    Float16Compression,
    NoCompression,
    ScaledFloat16Compression,
    SizeAdaptiveCompression,
    Uniform8BitQuantization,
)
from hivemind.optim.grad_averager import GradientAverager


def compression(name: str, threshold: int) -> CompressionBase:
    if name == "size-adaptive":
        return SizeAdaptiveCompression(
            threshold=threshold, less=Float16Compression(), greater_equal=Uniform8BitQuantization()
        )
    made = {
        "none": NoCompression,
        "float16": Float16Compression,
        "scaled-float16": ScaledFloat16Compression,
        "uniform-8bit": Uniform8BitQuantization,
    }[name]()
    assert isinstance(made, CompressionBase)
    return made


class ObservedAverager(GradientAverager):
    """hivemind's; it reports what is accumulated, and what enters a round and becomes of it."""

    counted, epoch = 0, 0

    def accumulate_grads_(self, batch_size: int) -> None:
        super().accumulate_grads_(batch_size)
        if not self.counted:
            say(event="counted")
        self.counted += batch_size

    def step(self, *args: Any, **kwargs: Any) -> Any:
        entered = {"epoch": self.epoch, "samples": self.local_samples_accumulated}
        say(event="contribution", **entered)
        control = super().step(*args, **kwargs)

        def tell(done: Any) -> None:
            peers = 0 if done.cancelled() or done.exception() else len(done.result()) - 1
            say(event="confirmed" if peers else "lost", **entered, peers=peers)

        control.add_done_callback(tell)
        return control


def build_optimizer(options: dict[str, Any], model: torch.nn.Module) -> hivemind.Optimizer:
    sync, wanted = options["sync"], options["optimizer"]
    assert not sync["powersgd"], "a stock peer here does not do that"
    dht = hivemind.DHT(initial_peers=options["peers"], start=True, startup_timeout=60)
    return hivemind.Optimizer(
        dht=dht,
        run_id=options["run_id"],
        target_batch_size=sync["target_batch_size"],
        batch_size_per_step=options["batch"],
        params=model.parameters(),
        optimizer=lambda params: torch.optim.AdamW(
            params, lr=wanted["learning_rate"], betas=tuple(wanted["betas"]), weight_decay=wanted["weight_decay"]
        ),
        scheduler=lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0),
        matchmaking_time=sync["matchmaking_seconds"],
        averaging_timeout=sync["averaging_timeout_seconds"],
        reuse_grad_buffers=sync["reuse_grad_buffers"],
        offload_optimizer=sync["offload_optimizer"],
        average_state_every=sync["average_state_every"],
        delay_optimizer_step=sync["delay_optimizer_step"],
        delay_grad_averaging=sync["delay_grad_averaging"],
        delay_state_averaging=sync["delay_state_averaging"],
        grad_compression=compression(sync["grad_compression"], sync["size_adaptive_threshold"]),
        state_averaging_compression=compression(sync["state_compression"], sync["size_adaptive_threshold"]),
        load_state_compression=compression(sync["load_compression"], sync["size_adaptive_threshold"]),
        grad_averager_factory=ObservedAverager,
    )


def say(**event: Any) -> None:
    # in one piece: rounds are settled in hivemind's threads
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> None:
    multiprocessing.set_start_method("fork", force=True)  # hivemind's averagers cannot be pickled, as others require
    options = json.loads(Path(sys.argv[1]).read_text())
    torch.set_num_threads(1)
    samples = samples_of(options["shard"])
    model = build_model(options["model"])
    optimizer = build_optimizer(options, model)
    optimizer.load_state_from_peers()
    stops: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stops.append(number))
    batch, trained, told, epoch = options["batch"], 0, 0.0, -1
    observed: ObservedAverager = optimizer.grad_averager
    while not stops:
        chosen = samples[torch.randint(len(samples), (batch,))]
        model(input_ids=chosen, labels=chosen).loss.backward()
        observed.epoch = optimizer.local_epoch
        optimizer.step()
        if not sync_reuses(options):
            model.zero_grad()
        trained += batch
        if time.monotonic() - told > REPORT_SECONDS or optimizer.local_epoch != epoch:
            told, epoch = time.monotonic(), optimizer.local_epoch
            say(event="progress", samples=trained, counted=observed.counted, epoch=epoch, seconds=told)
    optimizer.shutdown()
    optimizer.dht.shutdown()
    os._exit(0)  # its threads would delay the interpreter's end by seconds


def sync_reuses(options: dict[str, Any]) -> bool:
    return bool(options["sync"]["reuse_grad_buffers"])


if __name__ == "__main__":
    main()
