"""The error of each compression on a real gradient: of the bare loop's model, after one batch of real samples.

    python rounding.py OPTIONS.json

Prints {compression: relative error}, the error being |sent - received| / |sent| over all parameters together.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from bare_loop import build_model, samples_of
from hivemind.compression import CompressionInfo

from skep.worker.swarm.averagers import CODECS, round_codec

SAMPLES = 64


def main() -> None:
    options = json.loads(Path(sys.argv[1]).read_text())
    torch.set_num_threads(1)
    model, chosen = build_model(options["model"]), samples_of(options["shard"])[:SAMPLES]
    model(input_ids=chosen, labels=chosen).loss.backward()
    threshold = options["sync"]["size_adaptive_threshold"]
    errors = {name: relative_error(model, name, threshold) for name in (*CODECS, "size-adaptive")}
    print(json.dumps(errors))


def relative_error(model: torch.nn.Module, name: str, threshold: int) -> float:
    codec, lost, whole = round_codec(name, threshold), 0.0, 0.0
    for place, parameter in enumerate(model.parameters()):
        assert parameter.grad is not None
        sent = parameter.grad
        received = codec.extract(codec.compress(sent.clone(), CompressionInfo.from_tensor(sent, key=place)))
        lost += float((sent - received).double().square().sum())
        whole += float(sent.double().square().sum())
    return (lost / whole) ** 0.5


if __name__ == "__main__":
    main()
