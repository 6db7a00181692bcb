"""The upper bound: a plain PyTorch loop with AdamW on the same model and data, and no other peers.

    python bare_loop.py OPTIONS.json

Prints {"event": "progress", "samples", "seconds"} about twice a second until it is ended.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel

REPORT_SECONDS = 0.5
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""The dtype of autocast; fp32 without it."""


def samples_of(shard: str) -> torch.Tensor:
    """int64 [samples, sequence_length]."""
    return load_file(shard)["tokens"].long()


def build_model(fields: dict[str, Any]) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=fields["vocabulary"],
            n_positions=fields["sequence_length"],
            n_embd=fields["width"],
            n_layer=fields["layers"],
            n_head=fields["heads"],
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def main() -> None:
    options = json.loads(Path(sys.argv[1]).read_text())
    torch.set_num_threads(1)
    device, precision = torch.device(options.get("device", "cpu")), options.get("precision", "fp32")
    samples, model = samples_of(options["shard"]).to(device), build_model(options["model"]).to(device)
    autocast = torch.autocast(device.type, DTYPES.get(precision), enabled=precision in DTYPES)
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
    wanted = options["optimizer"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=wanted["learning_rate"], weight_decay=wanted["weight_decay"])
    batch, per_epoch = options["batch"], options["sync"]["target_batch_size"]
    trained, told = 0, 0.0
    while True:
        chosen = samples[torch.randint(len(samples), (batch,))]
        with autocast:
            loss = model(input_ids=chosen, labels=chosen).loss * batch / per_epoch
        scaler.scale(loss).backward()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        trained += batch
        if trained % per_epoch < batch:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        if time.monotonic() - told > REPORT_SECONDS:
            told = time.monotonic()
            print(json.dumps({"event": "progress", "samples": trained, "seconds": told}), flush=True)


if __name__ == "__main__":
    main()
