"""Measures training on a GPU: memory for each parameter, steps beside bare PyTorch, whether a share is kept.

    python benchmarks/gpu.py                            about 15 minutes; writes benchmarks/gpu.json and .md
    python benchmarks/gpu.py --device cpu --seconds 5 --to /tmp     tries all that needs no GPU

Every peer is a real worker, alone in its swarm. A share is measured from outside by the samples computed in a second,
relative to those at full share; measured and asked may differ by 3 points. Without a CUDA device the results say so,
and the exit code is 0.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pynvml
import torch
from against_stock import PARAMETERS, at_epoch, fresh_swarm, running
from peers import LoopPeer, Peer, SkepPeer, Swarm, is_progress
from report import HERE, UNMEASURED, Row, finish, say

COMPARED: Final = ("0.45 M", "22 M")
PRECISIONS: Final = ("fp32", "bf16", "fp16")
SHARES: Final = (10, 25, 50, 75)
POINTS: Final = 3.0
LARGE_EPOCH: Final = 1_000_000
"""Samples in an epoch that does not end during a measurement."""


def on(device: str) -> Callable[[Swarm], Peer]:
    return lambda shared: SkepPeer(shared, device=device)


def memory_rows() -> list[Row]:
    """Bytes of device memory for each parameter while training, the fixed cost (the small model) subtracted."""
    rows = []
    for offload, reuse in ((True, True), (True, False), (False, True), (False, False)):
        used = {}
        for model in COMPARED:
            flags = {"offload_optimizer": offload, "reuse_grad_buffers": reuse, "delay_optimizer_step": offload}
            with fresh_swarm(model, target_batch_size=64, **flags) as shared, running(shared, on("cuda:0")) as (peer,):
                peer.wait_for(at_epoch(2))
                used[model] = device_bytes(peer)
        small, large = COMPARED
        value = (used[large] - used[small]) / (PARAMETERS[large] - PARAMETERS[small])
        words = f"offload {yes_no(offload)}, reused gradient buffers {yes_no(reuse)}"
        rows.append(
            Row(f"device memory, {words}", value, "bytes per parameter", values=list(map(float, used.values())))
        )
        say(f"{rows[-1].name}: {value:.1f}")
    return rows


def device_bytes(peer: Peer) -> int:
    """Memory that NVML counts for a peer's processes. Raises RuntimeError if it does not know them, as in a
    container.
    """
    ours = {process.pid for process in peer.family()}
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    used = sum(
        each.usedGpuMemory or 0 for each in pynvml.nvmlDeviceGetComputeRunningProcesses(card) if each.pid in ours
    )
    if not used:
        raise RuntimeError("the driver does not tell how much memory of the card these processes hold.")
    return used


def step_rows(device: str, seconds: float, repeats: int) -> list[Row]:
    """Samples a second beside a bare loop in the same precision, alternating; the ratio of the medians is judged."""
    rows = []
    for precision in PRECISIONS:
        if not supported(device, precision):
            say(f"{precision}: not on this device")
            continue
        ours, bare = [], []
        for _ in range(repeats):
            with fresh_swarm("22 M", target_batch_size=LARGE_EPOCH) as shared:
                shared.manifest["precision"] = precision
                with running(shared, on(device)) as (peer,):
                    ours.append(peer.rate(seconds))
                bare.append(bare_rate(shared, device, precision, peer.joined["micro_batch"], seconds))
        value = statistics.median(ours) / statistics.median(bare)
        rows.append(
            Row(f"{precision}: samples/s beside bare PyTorch", value, "times", values=[*ours, *bare], least=0.9)
        )
        say(f"{rows[-1].name}: {statistics.median(ours):.1f} and {statistics.median(bare):.1f}")
    return rows


def bare_rate(shared: Swarm, device: str, precision: str, batch: int, seconds: float) -> float:
    """Uses the micro-batch that ours chose, so that only the loops differ."""
    peer = LoopPeer("bare_loop.py", shared, batch, device=device, precision=precision)
    try:
        return peer.rate(seconds)
    finally:
        peer.kill()


def share_rows(device: str, seconds: float) -> list[Row]:
    """Differences in points between samples a second at a share and that share of those at full share."""
    rows = []
    with fresh_swarm("22 M", target_batch_size=LARGE_EPOCH) as shared, running(shared, on(device)) as (peer,):
        full = peer.rate(seconds)
        for asked in SHARES:
            peer.set_share(asked / 100)
            told = peer.wait_for(lambda event, asked=asked: is_progress(event) and event["asked"] == asked / 100)
            seen = 100 * peer.rate_since(told, seconds) / full
            name = f"share {asked} % asked: distance of what is seen from outside"
            rows.append(Row(name, abs(seen - asked), "points", POINTS, [seen]))
            say(f"{name}: {seen:.1f} %")
    return rows


def supported(device: str, precision: str) -> bool:
    if precision == "fp32":
        return True
    if device == "cpu":
        return precision == "bf16"
    return precision == "fp16" or torch.cuda.is_bf16_supported(including_emulation=False)


def yes_no(on: bool) -> str:  # noqa: FBT001 - a word for a flag
    return "on" if on else "off"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda:0", "cpu"), default="cuda:0")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each rate is looked at")
    parser.add_argument("--repeats", type=int, default=5, help="how often steps are compared")
    parser.add_argument("--to", type=Path, default=HERE, help="folder of the results")
    options = parser.parse_args()
    on_gpu = options.device != "cpu"
    if on_gpu and not torch.cuda.is_available():
        return finish("gpu", [Row("CUDA devices on this machine", 0.0, "")], options.to)
    name = "the processor"
    rows = []
    try:
        if on_gpu:
            pynvml.nvmlInit()
            name = torch.cuda.get_device_name(0)
            rows += memory_rows()
        rows += step_rows(options.device, min(15.0, options.seconds), options.repeats)
        rows += share_rows(options.device, options.seconds)
    except (TimeoutError, RuntimeError) as error:
        say(f"given up: {error}")
        return UNMEASURED
    return finish("gpu", rows, options.to, device=name)


if __name__ == "__main__":
    sys.exit(main())
