"""Measures skep's worker against a stock hivemind loop and a bare PyTorch loop, alternating, in one run.

    python against_stock.py                 about 50 minutes on 2 cores; writes benchmarks/against-stock.json and .md
    python against_stock.py --only memory   measures this anew, and keeps the other rows of this machine

Every peer is a separate process with one thread; stock peers train with stock peers and skep's with skep's, on
loopback, with the same model, data, flags and step batch. Values are medians of `--repeats` with their smallest and
largest. Exits non-zero when a row misses its bound. Each function documents what its rows measure and why.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from machine import machine
from peers import LoopPeer, Peer, SkepPeer, Swarm, is_progress, swarm

HERE = Path(__file__).parent
STEP_BATCH = 8
STATE_BYTES = 12
"""Bytes per parameter: fp32 weights and Adam's two moments, which a newcomer must download."""
NEWCOMER_SECONDS = 60
EVERY_DELAY = {"delay_optimizer_step": True, "delay_grad_averaging": True, "delay_state_averaging": True}
PARAMETERS = {"0.45 M": 446_464, "3.3 M": 3_257_856, "22 M": 22_264_320}


@dataclass
class Row:
    """skep's values beside another's; the bound is on `skep / other`, or on skep's own median if there is no other."""

    name: str
    unit: str
    skep: list[float]
    other: list[float] = field(default_factory=list)
    other_name: str = "stock"
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""
    measure: str = ""
    date: str = ""

    @property
    def judged(self) -> float | None:
        if not self.skep:
            return None
        median = statistics.median(self.skep)
        return median / statistics.median(self.other) if self.other else median

    @property
    def missed(self) -> bool:
        value = self.judged
        if value is None:
            return False
        return (self.at_most is not None and value > self.at_most) or (
            self.at_least is not None and value < self.at_least
        )


def make_skep(shared: Swarm) -> Peer:
    return SkepPeer(shared)


def make_stock(shared: Swarm) -> Peer:
    return LoopPeer("stock_peer.py", shared, STEP_BATCH)


def make_bare(shared: Swarm) -> Peer:
    return LoopPeer("bare_loop.py", shared, STEP_BATCH)


KINDS: dict[str, Callable[[Swarm], Peer]] = {"skep": make_skep, "stock": make_stock}


@contextmanager
def fresh_swarm(model: str, **sync: Any) -> Iterator[Swarm]:
    with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder, swarm(Path(folder), model, **sync) as shared:
        yield shared


@contextmanager
def running(shared: Swarm, *makes: Callable[[Swarm], Peer]) -> Iterator[list[Peer]]:
    """Peers started one after the other, each after the previous one has counted samples."""
    peers: list[Peer] = []
    try:
        for make in makes:
            peers.append(make(shared))
            peers[-1].wait_for(counted if make is not make_bare else is_progress)
        yield peers
    finally:
        for peer in peers:
            peer.kill()


def counted(event: dict[str, Any]) -> bool:
    return bool(event["event"] == "counted")


def at_epoch(epoch: int) -> Callable[[dict[str, Any]], bool]:
    return lambda event: is_progress(event) and event["epoch"] >= epoch


# --- speed


def measure_speed(repeats: int) -> list[Row]:
    """Samples per second of one unthrottled peer, alone in a swarm: from the end of an epoch of 512 samples to the
    next.

    This includes the optimizer's step and skep's measurement of its loss once. The bare loop is measured for 20 s.
    """
    rates: dict[str, list[float]] = {"skep": [], "stock": [], "bare": []}
    for _ in range(repeats):
        for kind, make in {**KINDS, "bare": make_bare}.items():
            with fresh_swarm("3.3 M", target_batch_size=512) as shared, running(shared, make) as (peer,):
                rates[kind].append(peer.rate(20.0) if make is make_bare else rate_of_an_epoch(peer))
    name = "samples per second of one unthrottled peer"
    return [
        Row(name, "samples/s", rates["skep"], rates["stock"], at_least=0.97),
        Row(name, "samples/s", rates["skep"], rates["bare"], other_name="bare PyTorch", at_least=0.90),
    ]


def rate_of_an_epoch(peer: Peer) -> float:
    first = peer.wait_for(at_epoch(peer.wait_for(is_progress)["epoch"] + 1))
    last = peer.wait_for(at_epoch(first["epoch"] + 1))
    return float((last["samples"] - first["samples"]) / (last["seconds"] - first["seconds"]))


def measure_epochs(repeats: int) -> list[Row]:
    """Seconds per epoch of two peers with every delay flag on, over four epochs after the first common one."""
    seconds: dict[str, list[float]] = {"skep": [], "stock": []}
    for _ in range(repeats):
        for kind, make in KINDS.items():
            with (
                fresh_swarm("0.45 M", target_batch_size=1024, **EVERY_DELAY) as shared,
                running(shared, make, make) as peers,
            ):
                epoch = peers[1].wait_for(is_progress)["epoch"]
                first = peers[1].wait_for(at_epoch(epoch + 2))
                last = peers[1].wait_for(at_epoch(first["epoch"] + 4))
                seconds[kind].append((last["seconds"] - first["seconds"]) / (last["epoch"] - first["epoch"]))
    return [Row("seconds per epoch of two peers, communication overlapped", "s", **beside(seconds), at_most=1.0)]


# --- joining


def measure_join(repeats: int) -> list[Row]:
    """Process start to first counted sample beside one training peer; and the bytes that a newcomer of ours
    downloads.
    """
    seconds: dict[str, list[float]] = {"skep": [], "stock": []}
    downloaded = []
    for _ in range(repeats):
        for kind, make in KINDS.items():
            with fresh_swarm("22 M", target_batch_size=64) as shared, running(shared, make) as (peer,):
                peer.wait_for(at_epoch(1))
                with running(shared, make) as (newcomer,):
                    seconds[kind].append(time.monotonic() - newcomer.begun)
                    if kind == "skep":
                        progress = newcomer.wait_for(is_progress)
                        downloaded.append(progress["received"] / (STATE_BYTES * PARAMETERS["22 M"]))
    return [
        Row("process start to first counted sample, 22 M parameters", "s", **beside(seconds), at_most=0.7),
        Row("bytes received until then, in states", "states", downloaded, at_most=1.1),
    ]


def measure_newcomers(repeats: int) -> list[Row]:
    """Joins that averaged with the others within 60 s, of `repeats`, at epochs of about 5, 10 and 30 s."""
    with (
        fresh_swarm("3.3 M", target_batch_size=512, matchmaking_seconds=3.5) as shared,
        running(shared, make_skep, make_skep) as peers,
    ):
        rate = sum(peer.rate(10.0) for peer in peers)
    rows = []
    for length in (5, 10, 30):
        with (
            fresh_swarm("3.3 M", target_batch_size=int(rate * length), matchmaking_seconds=3.5) as shared,
            running(shared, make_skep, make_skep) as (first, _),
        ):
            begun = first.wait_for(is_progress)
            took = [seconds_to_average(shared) for _ in range(repeats)]
            ended = first.latest(is_progress)
        epochs = (ended["seconds"] - begun["seconds"]) / max(1, ended["epoch"] - begun["epoch"])
        in_time = sum(seconds <= NEWCOMER_SECONDS for seconds in took)
        rows.append(
            Row(
                f"joins that averaged within 60 s, epochs of about {length} s, of {repeats}",
                "joins",
                [float(in_time)],
                at_least=float(repeats),
                note=f"after {', '.join(f'{seconds:.0f}' for seconds in took)} s; epochs took {epochs:.0f} s meanwhile",
            )
        )
    return rows


def seconds_to_average(shared: Swarm) -> float:
    newcomer = SkepPeer(shared)
    try:
        newcomer.wait_for(lambda event: event["event"] == "confirmed", within=120)
    except TimeoutError:
        return float("inf")
    else:
        return time.monotonic() - newcomer.begun
    finally:
        newcomer.stop()


# --- memory


def measure_memory(repeats: int) -> list[Row]:
    """Bytes per parameter of the whole process tree, the fixed cost (the 0.45 M model) subtracted.

    The peak is the largest of a peer that trains and sends its state, and of the newcomer that loads it.
    """
    after: dict[str, list[float]] = {"skep": [], "stock": []}
    peak: dict[str, list[float]] = {"skep": [], "stock": []}
    for _ in range(repeats):
        for kind, make in KINDS.items():
            small, large = memory_of(make, "0.45 M"), memory_of(make, "22 M")
            more = PARAMETERS["22 M"] - PARAMETERS["0.45 M"]
            after[kind].append((large[0] - small[0]) / more)
            peak[kind].append((large[1] - small[1]) / more)
    return [
        Row("memory after the start, whole process tree", "bytes per parameter", **beside(after), at_most=0.8),
        Row("peak while loading and serving a state", "bytes per parameter", **beside(peak), at_most=0.8),
    ]


def memory_of(make: Callable[[Swarm], Peer], model: str) -> tuple[int, int]:
    with fresh_swarm(model, target_batch_size=64) as shared, running(shared, make) as (first,):
        first.wait_for(at_epoch(1))
        after = first.memory()
        with Peak(first) as served, running(shared, make) as (second,), Peak(second) as loaded:
            second.wait_for(at_epoch(3))
    return after, max(served.bytes, loaded.bytes)


class Peak:
    """The largest memory of a peer's process tree, sampled ten times a second."""

    def __init__(self, peer: Peer) -> None:
        self._peer, self._over = peer, threading.Event()
        self.bytes = 0

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.1) and self._peer.process.poll() is None:
            self.bytes = max(self.bytes, self._peer.memory())


# --- stopping


def measure_stop(repeats: int) -> list[Row]:
    """Time from the order to stop until no process is left, every delay flag on, a second after an epoch ended."""
    seconds: dict[str, list[float]] = {"skep": [], "stock": []}
    for _ in range(repeats):
        for kind, make in KINDS.items():
            with (
                fresh_swarm("3.3 M", target_batch_size=512, **EVERY_DELAY) as shared,
                running(shared, make, make) as peers,
            ):
                epoch = peers[1].wait_for(is_progress)["epoch"]
                peers[1].wait_for(at_epoch(epoch + 2))
                seconds[kind].append(peers[1].stop())
    own = Row("stop with every delay flag on", "s", seconds["skep"], at_most=2.0)
    own.note = f"stock: {words(seconds['stock'])} s"
    return [own]


# --- the wire


def measure_wire(_repeats: int) -> list[Row]:
    """Bytes each way and epoch of one of two peers, and the loss, for each compression; each once.

    The loss is the mean of what one peer reported in the last four of nine epochs of 512 samples. The relative error is
    that of a real gradient, as `rounding.py` finds it.
    """
    rows, errors = [], rounding_errors()
    for name in ("none", "float16", "scaled-float16", "uniform-8bit", "size-adaptive"):
        sync = {"grad_compression": name, "state_compression": name, "target_batch_size": 512}
        with fresh_swarm("0.45 M", **sync) as shared, running(shared, make_skep, make_skep) as peers:
            epoch = peers[1].wait_for(is_progress)["epoch"]
            first = peers[1].wait_for(at_epoch(epoch + 1))
            peers[1].wait_for(at_epoch(first["epoch"] + 4))
            losses, last = losses_until(peers[1], first["epoch"] + 8)
            count = last["epoch"] - first["epoch"]
            sent = (last["sent"] - first["sent"]) / count / 1e6
            note = f"relative error {errors[name]:.2g}, loss {statistics.mean(losses):.2f} after {512 * (count + 1)} common samples"
            rows.append(Row(f"sent per epoch, {name}, 0.45 M parameters", "MB", [sent], note=note))
    return rows


def losses_until(peer: Peer, epoch: int) -> tuple[list[float], dict[str, Any]]:
    """The losses that a peer reports from now on, and its first report of that epoch."""
    losses: list[float] = []
    while True:
        event = peer.wait_for(is_progress)
        losses += [event["loss"]] if event["loss"] is not None else []
        if event["epoch"] >= epoch:
            return losses, event


def rounding_errors() -> dict[str, float]:
    with fresh_swarm("0.45 M") as shared:
        options = shared.folder / "options.json"
        options.write_text(json.dumps(shared.options))
        done = subprocess.run([sys.executable, HERE / "rounding.py", options], capture_output=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


# --- other programs


def measure_lightning(_repeats: int) -> list[Row]:
    """Whether what lightning-hivemind 0.1.0 needs installs here, in a separate environment.

    It wants hivemind 1.1.10.post2 or older, which has no wheel and downloads p2pd while it is built.
    """
    with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder:
        venv.create(folder, with_pip=True)
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("setuptools<70\n")  # its build needs pkg_resources
        done = subprocess.run(
            [Path(folder) / "bin" / "python", "-m", "pip", "install", "--no-deps", "hivemind==1.1.10.post2"],
            env=os.environ | {"PIP_CONSTRAINT": str(constraints)},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    reasons = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip().startswith("error:")]
    note = (
        "its hivemind installs here, but is not measured"
        if done.returncode == 0
        else f"cannot be installed here ({reasons[-1]})"
    )
    return [Row("lightning-hivemind 0.1.0", "", [], note=note)]


def measure_gpu(_repeats: int) -> list[Row]:
    import torch  # noqa: PLC0415 - the peers need it, this process does not

    note = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device on this machine"
    return [Row("rows that need a CUDA device", "", [], note=note)]


MEASURES: dict[str, Callable[[int], list[Row]]] = {
    "speed": measure_speed,
    "epochs": measure_epochs,
    "join": measure_join,
    "newcomers": measure_newcomers,
    "memory": measure_memory,
    "stop": measure_stop,
    "wire": measure_wire,
    "lightning": measure_lightning,
    "gpu": measure_gpu,
}


def beside(values: dict[str, list[float]]) -> dict[str, list[float]]:
    return {"skep": values["skep"], "other": values["stock"]}


def words(values: list[float]) -> str:
    """Median and range as text."""
    if not values:
        return ""
    median = f"{statistics.median(values):.3g}"
    return median if len(values) == 1 else f"{median} ({min(values):.3g} to {max(values):.3g})"


def bound_of(row: Row) -> str:
    times = f" of {row.other_name}" if row.other else f" {row.unit}"
    if row.at_most is not None:
        return f"≤ {row.at_most:g}{times}"
    return f"≥ {row.at_least:g}{times}" if row.at_least is not None else ""


def table(rows: list[Row]) -> str:
    days = " to ".join(sorted({min(row.date for row in rows), max(row.date for row in rows)}))
    lines = [f"`python benchmarks/against_stock.py` on {machine()}, {days}.", ""]
    lines += ["| what | skep | beside it | judged | bound | |", "|---|---|---|---|---|---|"]
    for row in rows:
        other = f"{row.other_name} {words(row.other)}" if row.other else ""
        judged = "" if row.judged is None else f"{row.judged:.2f}"
        missed = "**missed**" if row.missed else ""
        notes = "; ".join(part for part in (missed, row.note) if part)
        lines.append(
            f"| {row.name} ({row.unit}) | {words(row.skep)} | {other} | {judged} | {bound_of(row)} | {notes} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES), help="some of the measures")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--to", type=Path, default=HERE / "against-stock", help="written there, as .json and .md")
    options = parser.parse_args()
    rows = kept(options.to.with_suffix(".json"), leaving_out=options.only)
    for name in options.only:
        for row in MEASURES[name](options.repeats):
            row.measure, row.date = name, f"{datetime.now(UTC):%Y-%m-%d}"
            rows.append(row)
            sys.stderr.write(f"{row.name}: {words(row.skep)} | {words(row.other)} {row.note}\n")
        rows.sort(key=lambda row: list(MEASURES).index(row.measure))
        write(rows, options.to)
    sys.stdout.write(table(rows))
    return int(any(row.missed for row in rows))


def kept(path: Path, leaving_out: list[str]) -> list[Row]:
    """The rows of an earlier run on this machine that are not measured again."""
    if not path.exists():
        return []
    body = json.loads(path.read_text())
    if body["machine"] != machine():
        return []
    return [row for row in (Row(**fields) for fields in body["rows"]) if row.measure not in leaving_out]


def write(rows: list[Row], to: Path) -> None:
    body = {"machine": machine(), "rows": [vars(row) for row in rows]}
    to.with_suffix(".json").write_text(json.dumps(body, indent=1) + "\n")
    to.with_suffix(".md").write_text(table(rows))


if __name__ == "__main__":
    sys.exit(main())
