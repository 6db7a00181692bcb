"""A plain peer for a skep project, in stock hivemind and transformers alone: copy it and put your own data in.

    python stock_peer.py MANIFEST RUN_ID SHARD [--epochs N] [--alike PART]

RUN_ID is what `skep project show MANIFEST --json` calls run_id; SHARD is one safetensors file of the project's data.
After each epoch it downloads the state of the newest other peer and prints, as a JSON line, how far their parameters
differ: {"epoch", "samples", "moved", "difference"}, the last two as the root mean square over all parameters of their
difference to the start, and to the other peer. (Adam's first steps go by a gradient's sign, so single parameters whose
gradient is nearly zero may differ by more than the compression's rounding.) It ends after N epochs, or earlier after one in
which the difference to the other peer is less than PART of the difference to the start.
"""

import argparse
import json
import math
import multiprocessing
import os
import time

import hivemind
import torch
from hivemind.averaging import DecentralizedAverager
from hivemind.compression import Float16Compression, NoCompression
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel


class ClippedAdamW(torch.optim.AdamW):
    """Clips inside the step: in the training loop it would clip the accumulating buffers again and again."""

    clip_norm = float("inf")

    def step(self, closure=None):
        torch.nn.utils.clip_grad_norm_([p for group in self.param_groups for p in group["params"]], self.clip_norm)
        return super().step(closure)


def build_model(recipe):
    torch.manual_seed(recipe["seed"])
    shape = recipe["model"]
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=shape["vocabulary"],
            n_positions=recipe["sequence_length"],
            n_embd=shape["width"],
            n_layer=shape["layers"],
            n_head=shape["heads"],
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
        ),
    )


def build_optimizer(manifest, run_id, model, batch_size):
    wanted, sync = manifest["optimizer"], manifest["sync"]
    ClippedAdamW.clip_norm = wanted["clip_norm"] or float("inf")
    dht = hivemind.DHT(initial_peers=manifest["peers"], start=True, startup_timeout=60)
    compressions = {"none": NoCompression, "float16": Float16Compression}
    warmup = manifest["schedule"]["warmup_epochs"]
    return hivemind.Optimizer(
        dht=dht,
        run_id=run_id,
        target_batch_size=sync["target_batch_size"],
        batch_size_per_step=batch_size,
        params=model.parameters(),
        optimizer=lambda params: ClippedAdamW(
            params, lr=wanted["learning_rate"], betas=tuple(wanted["betas"]), weight_decay=wanted["weight_decay"]
        ),
        # for a schedule of kind "constant"; the others are in skep's documentation of the manifest
        scheduler=lambda opt: torch.optim.lr_scheduler.LambdaLR(
            opt, lambda epoch: min(1.0, (epoch + 1) / (warmup + 1)) if warmup else 1.0
        ),
        matchmaking_time=sync["matchmaking_seconds"],
        averaging_timeout=sync["averaging_timeout_seconds"],
        reuse_grad_buffers=sync["reuse_grad_buffers"],
        offload_optimizer=sync["offload_optimizer"],
        delay_optimizer_step=sync["delay_optimizer_step"],
        delay_grad_averaging=sync["delay_grad_averaging"],
        delay_state_averaging=sync["delay_state_averaging"],
        grad_compression=compressions[sync["grad_compression"]](),
        state_averaging_compression=compressions[sync["state_compression"]](),
        load_state_compression=compressions[sync["load_compression"]](),
    )


def parameters_of(optimizer):
    return [p.detach().clone() for group in optimizer.opt.param_groups for p in group["params"]]


def rms_difference(ours, theirs):
    squares = sum(float(((a - b) ** 2).sum()) for a, b in zip(ours, theirs))
    return math.sqrt(squares / sum(a.numel() for a in ours))


def compare(optimizer):
    """How far our parameters are from those of another peer at the same epoch; None when the swarm is beyond it already."""
    while True:
        loaded = DecentralizedAverager.load_state_from_peers(optimizer.state_averager, timeout=30)
        if loaded is not None and loaded[0]["epoch"] == optimizer.local_epoch:
            ours = parameters_of(optimizer)
            return rms_difference(ours, loaded[1][: len(ours)])
        if loaded is not None and loaded[0]["epoch"] > optimizer.local_epoch:
            return None
        time.sleep(0.2)


def main():
    multiprocessing.set_start_method("fork", force=True)  # hivemind's averagers cannot be pickled, as others require
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manifest")
    parser.add_argument("run_id")
    parser.add_argument("shard")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--alike", type=float, default=0.0)
    parser.add_argument("--batch-size", type=int, default=8)
    arguments = parser.parse_args()
    with open(arguments.manifest, encoding="utf-8") as file:
        manifest = json.load(file)
    samples = load_file(arguments.shard)["tokens"].long()
    model = build_model(manifest["recipe"])
    optimizer = build_optimizer(manifest, arguments.run_id, model, arguments.batch_size)
    start, epoch, done = parameters_of(optimizer), optimizer.local_epoch, 0
    while done < arguments.epochs:
        batch = samples[torch.randint(len(samples), (arguments.batch_size,))]
        model(input_ids=batch, labels=batch).loss.backward()
        accumulated = optimizer.tracker.local_progress.samples_accumulated
        optimizer.step()  # never zero_grad with reuse_grad_buffers: hivemind does it at the end of an epoch
        if optimizer.local_epoch != epoch:
            epoch, difference = optimizer.local_epoch, compare(optimizer)
            if difference is None:
                continue  # while we looked, the others went on without us: the next step loads their state
            done += 1
            moved = rms_difference(parameters_of(optimizer), start)
            result = {"epoch": epoch, "samples": accumulated, "moved": moved, "difference": difference}
            print(json.dumps(result), flush=True)
            if done > 1 and difference < arguments.alike * moved:
                break
    optimizer.shutdown()
    optimizer.dht.shutdown()
    os._exit(0)  # hivemind's threads would hold the interpreter for seconds


if __name__ == "__main__":
    main()
