"""Measures training on a GPU: memory for each parameter, steps beside bare PyTorch, whether a share is kept, and how
soon the card is given back.

    python benchmarks/gpu.py [PART ...]                 about 15 minutes; writes benchmarks/gpu-PART.json and .md
    python benchmarks/gpu.py power --may-change-card    a minute, as root; sets the card's power limit meanwhile
    python benchmarks/gpu.py --device cpu --seconds 10 --repeats 1 --to /tmp steps shares giveback
                                                        tries all that needs no GPU

Every peer is a real worker, alone in its swarm. A share is measured twice: by the samples computed in a second, relative
to those at full share, and by the part of the time in which the card computes, as its driver says, relative to the same
at full share. Measured and asked may differ by 3 points. The card is given back when a second program computes about as
fast as alone; the worker is told to pause while both compute. Exit code 1 when a target is missed, 2 without a result:
there is no CUDA device, say.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Self

import pynvml
import torch
from against_stock.running import at_epoch, fresh_swarm, running
from gpu_power import power_rows
from peers import LoopPeer, Peer, SkepPeer, Swarm, is_progress
from report import HERE, UNMEASURED, Row, finish, p95, say

from skep.core.policy.allowance import GpuMemory

PARTS: Final = ("memory", "steps", "shares", "giveback")
CHANGING: Final = ("power",)
"""Parts that change a setting of the card, and restore it."""
COMPARED: Final = ("0.45 M", "126 M")
"""Few tokens in a sample of the large model, so that activations are a small part of the difference."""
TARGET: Final = 64
"""Samples of an epoch, for which a micro-batch is one sample."""
PRECISIONS: Final = ("fp32", "bf16", "fp16")
SHARES: Final = (10, 25, 50, 75)
TRAINED: Final = {"cuda:0": "22 M", "cpu": "0.45 M"}
"""The model whose steps are timed: a processor's samples are counted in whole step batches of 256 too."""
POINTS: Final = 3.0
LARGE_EPOCH: Final = 1_000_000
"""Samples in an epoch that does not end during a measurement."""
KEPT: Final = 8.5
"""Bytes of device memory per parameter: fp32 parameters and gradients, and half a byte for activations."""
BESIDE_BARE: Final = 0.9
GIVEN_BACK: Final = 0.25
"""Seconds until the card is given back, as on the processor."""
WINDOW_SECONDS: Final = 0.02
"""The card is given back after the last window of this length in which the second program is slower than half-way
between alone and beside training."""
ALONE_SECONDS: Final = 2.0
TRAINING_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 1.5
RELEASED: Final = 1_000_000
"""Bytes by which the card's used memory may differ from what is used in the end."""
LOOK_SECONDS: Final = 0.1
"""The driver's figure is of the last 1/6 s to 1 s, by card."""


def on(device: str) -> Callable[[Swarm], Peer]:
    return lambda shared: SkepPeer(shared, device=device)


def memory_rows() -> list[Row]:
    """Bytes of device memory for each parameter while training, the fixed cost (the small model) subtracted."""
    rows = []
    for offload, reuse in ((True, True), (True, False), (False, True), (False, False)):
        flags = {"offload_optimizer": offload, "reuse_grad_buffers": reuse, "delay_optimizer_step": offload}
        words = f"device memory, offload {yes_no(on=offload)}, reused gradient buffers {yes_no(on=reuse)}"
        rows.append(memory_row(words, partial(memory_of_ours, flags=flags)))
    rows[0].bound = KEPT
    rows.append(memory_row("device memory, bare PyTorch with AdamW", memory_of_bare))
    return rows


def memory_row(name: str, measure: Callable[[str], tuple[int, int]]) -> Row:
    """`measure` returns bytes of device memory and parameters for a model."""
    (small, few), (large, many) = map(measure, COMPARED)
    row = Row(name, (large - small) / (many - few), "bytes per parameter", values=[float(small), float(large)])
    say(f"{name}: {row.value:.1f}")
    return row


def memory_of_ours(model: str, flags: dict[str, bool]) -> tuple[int, int]:
    """Bytes of device memory and parameters. Raises RuntimeError when a micro-batch has more than one sample."""
    before = used_memory()
    with fresh_swarm(model, target_batch_size=TARGET, **flags) as shared:
        shared.manifest["precision"] = "fp32"
        with running(shared, on("cuda:0")) as (peer,):
            if peer.joined["micro_batch"] != 1:
                raise RuntimeError("a micro-batch has more than one sample, whose activations would be measured too")
            peer.wait_for(at_epoch(2))
            return device_bytes(peer, before), shared.parameters


def memory_of_bare(model: str) -> tuple[int, int]:
    before = used_memory()
    with fresh_swarm(model, target_batch_size=TARGET) as shared:
        peer = LoopPeer("bare_loop.py", shared, 1, device="cuda:0", precision="fp32")
        try:
            peer.wait_for(lambda event: is_progress(event) and event["samples"] > TARGET)
            return device_bytes(peer, before), shared.parameters
        finally:
            peer.kill()


def used_memory() -> int:
    return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used)


def device_bytes(peer: Peer, before: int) -> int:
    """The memory that NVML counts for a peer's processes.

    In a container NVML does not know them: then it is what is used of the card since `before`, and nothing else may
    use the card.
    """
    ours = {process.pid for process in peer.family()}
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    counted = sum(
        each.usedGpuMemory or 0 for each in pynvml.nvmlDeviceGetComputeRunningProcesses(card) if each.pid in ours
    )
    return counted or used_memory() - before


def step_rows(device: str, seconds: float, repeats: int) -> list[Row]:
    """Samples a second beside a bare loop in the same precision, alternating; the ratio of the medians is judged."""
    rows = []
    for precision in PRECISIONS:
        if not supported(device, precision):
            say(f"{precision}: not on this device")
            continue
        ours, bare, sizes = [], [], []
        for _ in range(repeats):
            with fresh_swarm(TRAINED[device], target_batch_size=LARGE_EPOCH) as shared:
                shared.manifest["precision"] = precision
                with running(shared, on(device)) as (peer,):
                    ours.append(peer.rate(seconds))
                sizes.append(peer.joined["micro_batch"])
                bare.append(bare_rate(shared, device, precision, sizes[-1], seconds))
        value = statistics.median(ours) / statistics.median(bare)
        name = (
            f"{precision}: samples/s beside bare PyTorch, micro-batches of {' and '.join(map(str, sorted(set(sizes))))}"
        )
        rows.append(Row(name, value, "times", values=[*ours, *bare], least=BESIDE_BARE))
        say(f"{name}: {statistics.median(ours):.1f} and {statistics.median(bare):.1f}")
    return rows


def bare_rate(shared: Swarm, device: str, precision: str, batch: int, seconds: float) -> float:
    """Uses the micro-batch that ours chose, so that only the loops differ."""
    peer = LoopPeer("bare_loop.py", shared, batch, device=device, precision=precision)
    try:
        return peer.rate(seconds)
    finally:
        peer.kill()


def share_rows(device: str, seconds: float) -> list[Row]:
    """Differences in points between a share that is asked for and what is seen of it."""
    rows = []
    with fresh_swarm(TRAINED[device], target_batch_size=LARGE_EPOCH) as shared, running(shared, on(device)) as (peer,):
        with Computing(device) as computing:
            full = peer.rate(seconds)
        if device != "cpu":
            rows.append(Row("the card's time while training at full share", computing.percent, "%"))
        for asked in SHARES:
            peer.set_share(asked / 100)
            told = peer.wait_for(lambda event, asked=asked: is_progress(event) and event["asked"] == asked / 100)
            with Computing(device) as busy:
                seen = {"by samples": 100 * peer.rate_since(told, seconds) / full}
            if device != "cpu":
                seen["by the driver"] = 100 * busy.percent / computing.percent
            for how, percent in seen.items():
                name = f"share {asked} % asked: distance of what is seen {how}"
                rows.append(Row(name, abs(percent - asked), "points", POINTS, [percent]))
                say(f"{name}: {percent:.1f} %")
    return rows


def giveback_rows(device: str, rounds: int) -> list[Row]:
    """Seconds from a request to pause until a second program computes as fast as alone, and until memory is free."""
    probe = Probe(device)
    alone, beside, paused = probe.rate(ALONE_SECONDS), [], []
    with fresh_swarm(TRAINED[device], target_batch_size=LARGE_EPOCH) as shared, running(shared, on(device)) as (peer,):
        assert isinstance(peer, SkepPeer)
        for _ in range(rounds):
            peer.rate(TRAINING_SECONDS)
            beside.append(probe.rate(TRAINING_SECONDS))
            asked = time.monotonic()
            peer.set_share(0.0, present=True)
            half_way = (alone + beside[-1]) / 2
            slow = [end for end, rate in probe.windows(PAUSE_SECONDS) if rate < half_way]
            paused.append(max(slow, default=asked) - asked)
            peer.set_share(1.0)
        rows = [
            Row("a second program's speed while training, of that alone", statistics.median(beside) / alone, "times"),
            Row("given back to a second program, p95", p95(paused), "s", GIVEN_BACK, paused),
        ]
        if device != "cpu":
            rows += released_rows(peer, rounds)
    for row in rows:
        say(f"{row.name}: {row.value:.3g} {row.unit}")
    return rows


def released_rows(peer: SkepPeer, rounds: int) -> list[Row]:
    """Seconds from a request to release the card's memory until NVML counts no more than in the end."""
    took, left, before = [], [], []
    for _ in range(rounds):
        peer.rate(TRAINING_SECONDS)
        before.append(used_memory())
        asked = time.monotonic()
        peer.set_share(0.0, memory=GpuMemory.RELEASE)
        seen = []
        while time.monotonic() - asked < PAUSE_SECONDS:
            seen.append((time.monotonic() - asked, used_memory()))
            time.sleep(0.005)
        left.append(seen[-1][1])
        took.append(next(when for when, used in seen if used <= left[-1] + RELEASED))
        peer.set_share(1.0)
    freed = [float(held - kept) / 1e6 for held, kept in zip(before, left, strict=True)]
    return [
        Row("the card's memory released when idle", statistics.median(freed), "MB", values=freed),
        Row("until it was free, p95", p95(took), "s", GIVEN_BACK, took),
    ]


def limited_rows(device: str, seconds: float) -> list[Row]:
    with fresh_swarm(TRAINED[device], target_batch_size=LARGE_EPOCH) as shared, running(shared, on(device)) as (peer,):
        return power_rows(peer, seconds)


class Probe:
    """A second program's computing on the device: products of matrices, one after the other."""

    def __init__(self, device: str) -> None:
        size = 256 if device == "cpu" else 2048
        self._matrix = torch.randn(size, size, device=device)

    def rate(self, seconds: float) -> float:
        """Products in a second."""
        return statistics.fmean(rate for _, rate in self.windows(seconds))

    def windows(self, seconds: float) -> list[tuple[float, float]]:
        """For each window of WINDOW_SECONDS: its end in monotonic time, and products in a second."""
        found, over = [], time.monotonic() + seconds
        while (begun := time.monotonic()) < over:
            count = 0
            while (now := time.monotonic()) < begun + WINDOW_SECONDS:
                float((self._matrix @ self._matrix)[0, 0])  # waits for the device
                count += 1
            found.append((now, count / (now - begun)))
        return found


class Computing:
    """The part of the time, in percent, in which the card computes anything, as its driver says; 0 for no card."""

    def __init__(self, device: str) -> None:
        self._card = None if device == "cpu" else pynvml.nvmlDeviceGetHandleByIndex(0)
        self._seen: list[int] = []
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    @property
    def percent(self) -> float:
        return statistics.fmean(self._seen) if self._seen else 0.0

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()

    def _look(self) -> None:
        while self._card is not None and not self._over.wait(LOOK_SECONDS):
            self._seen.append(pynvml.nvmlDeviceGetUtilizationRates(self._card).gpu)


def supported(device: str, precision: str) -> bool:
    if precision == "fp32":
        return True
    if device == "cpu":
        return precision == "bf16"
    return precision == "fp16" or torch.cuda.is_bf16_supported(including_emulation=False)


def yes_no(*, on: bool) -> str:
    return "on" if on else "off"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "part", nargs="*", default=PARTS, help=f"{', '.join(PARTS)}, all without one; {', '.join(CHANGING)} if named"
    )
    parser.add_argument("--may-change-card", action="store_true", help=f"allow {', '.join(CHANGING)}")
    parser.add_argument("--device", choices=("cuda:0", "cpu"), default="cuda:0")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each rate is looked at")
    parser.add_argument("--repeats", type=int, default=3, help="how often steps are compared")
    parser.add_argument("--rounds", type=int, default=20, help="how often the card is given back")
    parser.add_argument("--to", type=Path, default=HERE, help="folder of the results")
    options = parser.parse_args()
    on_gpu = options.device != "cpu"
    if on_gpu and not torch.cuda.is_available():
        say("given up: PyTorch finds no CUDA device.")
        return UNMEASURED
    if unknown := set(options.part) - {*PARTS, *CHANGING}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    if not on_gpu and "memory" in options.part:
        parser.error("memory is measured on a CUDA device only")
    changing = set(options.part) & set(CHANGING)
    if changing and not options.may_change_card:
        parser.error(f"{', '.join(changing)} changes settings of the card: allow it with --may-change-card")
    if on_gpu or changing:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            say(f"given up: NVIDIA's library says: {error}")
            return UNMEASURED
    name = torch.cuda.get_device_name(0) if on_gpu else "the processor"
    measures: dict[str, Callable[[], list[Row]]] = {
        "memory": memory_rows,
        "steps": lambda: step_rows(options.device, options.seconds, options.repeats),
        "shares": lambda: share_rows(options.device, options.seconds),
        "giveback": lambda: giveback_rows(options.device, options.rounds),
        "power": lambda: limited_rows(options.device, options.seconds),
    }
    codes = []
    for part in options.part:
        try:
            rows = measures[part]()
        except (TimeoutError, RuntimeError) as error:
            say(f"{part} given up: {error}")
            codes.append(UNMEASURED)
        else:
            codes.append(finish(f"gpu-{part}", rows, options.to, device=name, torch=torch.__version__))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
