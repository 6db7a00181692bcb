"""What each compression sends, and what it does to the loss."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from peers import SkepPeer, Swarm, is_progress
from report import Unmeasured

from against_stock.rows import Row, valid_runs, words
from against_stock.running import at_epoch, check_step_batch, fresh_swarm, missing_rounds, wait_for_rounds
from skep.core.project.data import Shapes, values
from skep.core.project.manifest import PowerSGD

SCRIPT = Path(__file__).parents[1] / "rounding.py"
MODEL = "0.52 M"
"""With tensors of both sides of hivemind's threshold for size-adaptive compression, 65,537 values."""
TARGET = 512
EPOCHS = range(1, 9)
LOSS_EPOCHS = range(5, 9)
WHOLE = 0.95
"""Least part of what the rounds have to send; one round of 16 that was missed is more than the rest."""
CODEC_BYTES = {"none": 4, "float16": 2, "scaled-float16": 2, "uniform-8bit": 1}
WIRES: dict[str, dict[str, Any]] = {
    name: {"grad_compression": name, "state_compression": name} for name in (*CODEC_BYTES, "size-adaptive")
} | {
    "powersgd": {
        "grad_compression": "float16",
        "state_compression": "float16",
        "powersgd": {"rank": 4, "min_compression_ratio": 0.5},
    }
}


def measure_wire(repeats: int, *, name: str) -> list[Row]:
    """Bytes that one of two peers sends per epoch with a compression, and the loss.

    Every run begins with both peers at epoch 0 and the same parameters; a run in which a peer missed a round, or sent
    less than the rounds need, is rejected and repeated. The loss is the mean of what both report in LOSS_EPOCHS. The
    relative error is that of a real gradient, as `rounding.py` finds it.
    """
    results, rejected = valid_runs(partial(wire_run, name), repeats)
    sent, losses = [each[0] for each in results], [each[1] for each in results]
    samples = TARGET * LOSS_EPOCHS.start
    with fresh_swarm(MODEL, **WIRES[name]) as shared:
        note = (
            f"relative error {rounding_error(shared, name):.2g}, loss {words(losses)} from {samples} common samples on"
        )
        if name == "size-adaptive":
            note += f"; {100 * eight_bits_part(shared):.0f} % of the values are sent in 8 bits"
        needed = must_send(shared.shapes, shared.manifest["sync"]) / 1e6
        note += f"; {statistics.median(sent) / needed:.2f} of the least that the rounds must send"
    note += "".join(f"; a run was rejected: {each}" for each in rejected)
    return [Row(f"sent per epoch, {name}, {MODEL} parameters", "MB", sent, note=note)]


def wire_run(name: str) -> tuple[float, float]:
    """Megabytes per epoch, and the loss. Raises Unmeasured when a round did not happen."""
    with fresh_swarm(MODEL, target_batch_size=TARGET, **WIRES[name]) as shared, together(shared) as peers:
        first = peers[1].wait_for(at_epoch(EPOCHS.start))
        last = peers[1].wait_for(at_epoch(EPOCHS.stop))
        wait_for_rounds(list(peers), EPOCHS)
        missing = missing_rounds(list(peers), range(EPOCHS.stop))
        if missing:
            raise Unmeasured(f"{name}: not every peer averaged in epochs {missing}")
        sent = (last["sent"] - first["sent"]) / len(EPOCHS)
        needed = must_send(shared.shapes, shared.manifest["sync"])
        if sent < WHOLE * needed:
            raise Unmeasured(f"{name}: {sent / needed:.2f} of what the rounds must send were sent")
        losses = [
            event["loss"]
            for peer in peers
            for event in filter(is_progress, peer.history)
            if event["epoch"] in LOSS_EPOCHS and event["loss"] is not None
        ]
        return sent / 1e6, statistics.mean(losses)


@contextmanager
def together(shared: Swarm) -> Iterator[list[SkepPeer]]:
    """Two peers that begin with the first sample at the same time, when both are in the swarm."""
    peers: list[SkepPeer] = []
    try:
        for _ in range(2):
            peers.append(SkepPeer(shared, share=0.0))
            peers[-1].wait_for(lambda event: event["event"] == "joined")
            check_step_batch(peers[-1], shared)
        for peer in peers:
            peer.set_share(1.0)
        yield peers
    finally:
        for peer in peers:
            peer.kill()


def must_send(shapes: Shapes, sync: dict[str, Any]) -> float:
    """The least bytes that one of two peers sends in an epoch.

    It reduces a part of each tensor: it sends the rest to the other peer, and the averaged part back.
    """
    low_rank = PowerSGD(**sync["powersgd"]) if sync["powersgd"] else None
    gradients = 0
    for shape, number in shapes.items():
        if low_rank and low_rank.applies_to(shape):
            rows, columns = shape
            # P is not compressed, Q is
            gradients += number * low_rank.rank * (4 * rows + value_bytes(sync["grad_compression"], sync, 0) * columns)
        else:
            gradients += number * tensor_bytes(shape, sync["grad_compression"], sync)
    parameters = sum(number * tensor_bytes(shape, sync["state_compression"], sync) for shape, number in shapes.items())
    return gradients + parameters / float(sync["average_state_every"])


def tensor_bytes(shape: tuple[int, ...], codec: str, sync: dict[str, Any]) -> int:
    count = values(Shapes([shape]))
    return count * value_bytes(codec, sync, count)


def value_bytes(codec: str, sync: dict[str, Any], count: int) -> int:
    """Bytes of a value in a tensor of `count`."""
    if codec == "size-adaptive":
        codec = "uniform-8bit" if count >= sync["size_adaptive_threshold"] else "float16"
    return CODEC_BYTES[codec]


def eight_bits_part(shared: Swarm) -> float:
    """The part of the values for which size-adaptive compression takes 8 bits."""
    threshold, shapes = shared.manifest["sync"]["size_adaptive_threshold"], shared.shapes
    large = Shapes({shape: number for shape, number in shapes.items() if values(Shapes([shape])) >= threshold})
    return values(large) / shared.parameters


def rounding_error(shared: Swarm, name: str) -> float:
    options = shared.folder / "options.json"
    options.write_text(json.dumps(shared.options))
    done = subprocess.run([sys.executable, SCRIPT, options], capture_output=True, check=True)
    return float(json.loads(done.stdout)[name])
