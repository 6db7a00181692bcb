"""The error of each compression on a real gradient: of the bare loop's model, after one batch of real samples.

    python rounding.py OPTIONS.json

Prints {compression: relative error}, the error being |sent - received| / |sent| over all parameters together. That of
"powersgd" is of a first round, before anything has been fed back; the options name its rank.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from bare_loop import build_model, samples_of
from hivemind.compression import CompressionBase, CompressionInfo

from skep.core.project.manifest import PowerSGD
from skep.worker.swarm.averaging.codecs import CODECS, round_codec
from skep.worker.swarm.averaging.low_rank import orthonormalise_

SAMPLES = 64


def main() -> None:
    options = json.loads(Path(sys.argv[1]).read_text())
    torch.set_num_threads(1)
    model, chosen = build_model(options["model"]), samples_of(options["shard"])[:SAMPLES]
    model(input_ids=chosen, labels=chosen).loss.backward()
    threshold = options["sync"]["size_adaptive_threshold"]
    errors = {name: relative_error(model, coded(round_codec(name, threshold))) for name in (*CODECS, "size-adaptive")}
    if wanted := options["sync"]["powersgd"]:
        errors["powersgd"] = relative_error(model, low_rank(PowerSGD(**wanted)))
    print(json.dumps(errors))


Sending = Callable[[torch.Tensor], torch.Tensor]
"""What arrives of a tensor that is sent."""


def coded(codec: CompressionBase) -> Sending:
    def send(sent: torch.Tensor) -> torch.Tensor:
        received = codec.extract(codec.compress(sent.clone(), CompressionInfo.from_tensor(sent, key=0)))
        assert isinstance(received, torch.Tensor)
        return received

    return send


def low_rank(powersgd: PowerSGD) -> Sending:
    def send(sent: torch.Tensor) -> torch.Tensor:
        if not powersgd.applies_to(tuple(sent.shape)):
            return sent
        basis = sent @ torch.randn(sent.shape[1], powersgd.rank, generator=torch.Generator().manual_seed(0))
        orthonormalise_(basis)
        return basis @ (basis.t() @ sent)

    return send


def relative_error(model: torch.nn.Module, send: Sending) -> float:
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    lost = sum(float((sent - send(sent)).double().square().sum()) for sent in gradients)
    return (lost / sum(float(sent.double().square().sum()) for sent in gradients)) ** 0.5


if __name__ == "__main__":
    main()
