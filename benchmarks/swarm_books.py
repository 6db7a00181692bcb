"""Other peers' epochs while one of three is paused, or slowed to a fifth: real samples in each, real peers, loopback.

    python benchmarks/swarm_books.py              about 20 minutes; writes benchmarks/swarm-books.json
    python benchmarks/swarm_books.py --cases pause --undisturbed 3

skep's peers are its worker, throttled so that an epoch takes 20 s or more; the stock peers hold the same rate with hivemind.Optimizer
and no computing. Step batches are at most 1 % of the target. The event comes 8 s into an epoch; that epoch is the first after.
Exits non-zero when skep's mean of five is not within 5 % of the undisturbed mean of the same run, or the first not within 10 %.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from machine import machine
from peers import PATIENCE, Peer, SkepPeer, Swarm, is_progress, swarm

HERE = Path(__file__).parent
TARGET = 1700
"""With step batches of 16."""
EPOCH_SECONDS = 25.0
FIRST_SHARE = 0.3
AFTER = 5
INTO_EPOCH = 8.0
FIFTH = 0.2
FIRST_BOUND, MEAN_BOUND = 0.1, 0.05


class PacedStockPeer(Peer):
    def __init__(self, shared: Swarm, rate: float) -> None:
        options = shared.folder / f"paced-{time.monotonic_ns()}.json"
        body = {"peers": shared.seeds, "run_id": "stock-books", "target": TARGET, "batch": 16, "rate": rate}
        options.write_text(json.dumps(body))
        with (shared.folder / "stock.log").open("ab") as log:
            super().__init__(
                subprocess.Popen(
                    [sys.executable, HERE / "paced_stock_peer.py", options],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    start_new_session=True,
                )
            )

    def set_rate(self, rate: float) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{rate}\n".encode())


class Books:
    """What all peers said they put into the round of each epoch."""

    def __init__(self, peers: list[Any]) -> None:
        self.samples: dict[int, int] = defaultdict(int)
        self.begun: dict[int, float] = {}
        self.lost: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        for peer in peers:
            threading.Thread(target=self._follow, args=(peer,), daemon=True).start()

    def _follow(self, peer: Peer) -> None:
        with contextlib.suppress(RuntimeError, TimeoutError):
            while True:
                self._note(peer.wait_for(lambda event: event["event"] in {"contribution", "lost"}, 10 * PATIENCE))

    def _note(self, event: dict[str, Any]) -> None:
        with self._changed:
            if event["event"] == "lost":
                self.lost.append({key: event[key] for key in ("epoch", "samples", "reason")})
                return
            self.samples[event["epoch"]] += event["samples"]
            self.begun.setdefault(event["epoch"] + 1, time.monotonic())
            self._changed.notify_all()

    def wait_for_epoch(self, epoch: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: max(self.begun, default=0) >= epoch, 20 * EPOCH_SECONDS):
                raise TimeoutError(f"epoch {epoch} does not begin")

    @property
    def newest(self) -> int:
        with self._changed:
            return max(self.begun, default=0)


def run_case(peers: list[Any], event: Callable[[], None], undisturbed: int) -> dict[str, Any]:
    books = Books(peers)
    books.wait_for_epoch(1)
    first = books.newest + 2  # the next one begins with everybody in step
    at = first + undisturbed
    books.wait_for_epoch(at)
    time.sleep(INTO_EPOCH)
    event()
    books.wait_for_epoch(at + AFTER)
    time.sleep(3.0)  # the last word of every peer
    return judged(books, range(first, at), range(at, at + AFTER))


def judged(books: Books, before: range, after: range) -> dict[str, Any]:
    plain = statistics.mean(books.samples[epoch] for epoch in before)
    seconds = [books.begun[epoch + 1] - books.begun[epoch] for epoch in before]
    samples = [books.samples[epoch] for epoch in after]
    return {
        "undisturbed": [books.samples[epoch] for epoch in before],
        "epoch_seconds": round(statistics.median(seconds), 1),
        "after": samples,
        "lost": [each for each in books.lost if each["epoch"] >= before[0]],
        "first_off": samples[0] / plain - 1,
        "mean_off": statistics.mean(samples) / plain - 1,
    }


def of_skep(folder: Path, case: str, undisturbed: int) -> dict[str, Any]:
    with swarm(folder, "0.45 M", target_batch_size=TARGET) as shared:
        # at normal priority: what else this machine does must not change their rates
        peers = [SkepPeer(shared, share=FIRST_SHARE, nice=0) for _ in range(3)]
        try:
            for peer in peers:
                peer.wait_for(is_progress)
            time.sleep(12.0)  # the rate is that of the last ten seconds
            shares = [fitting_share(peer) for peer in peers]
            for peer, share in zip(peers, shares, strict=True):
                peer.set_share(share)
            share = 0.0 if case == "pause" else shares[0] * FIFTH
            return {"shares": shares} | run_case(peers, lambda: peers[0].set_share(share), undisturbed)
        finally:
            for peer in peers:
                peer.kill()


def fitting_share(peer: SkepPeer) -> float:
    """The share at which three such peers fill the target in EPOCH_SECONDS."""
    now = time.monotonic()
    rate = peer.wait_for(lambda event: is_progress(event) and event["seconds"] > now)["rate"]
    return float(min(1.0, TARGET / EPOCH_SECONDS / 3 * FIRST_SHARE / rate))


def of_stock(folder: Path, case: str, undisturbed: int) -> dict[str, Any]:
    rate = TARGET / EPOCH_SECONDS / 3
    with swarm(folder, "0.45 M") as shared:
        peers = [PacedStockPeer(shared, rate) for _ in range(3)]
        try:
            for peer in peers:
                peer.wait_for(is_progress)
            changed = 0.0 if case == "pause" else rate * FIFTH
            return run_case(peers, lambda: peers[0].set_rate(changed), undisturbed)
        finally:
            for peer in peers:
                peer.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["pause", "slow"], choices=["pause", "slow"])
    parser.add_argument("--kinds", nargs="+", default=["skep", "stock"], choices=["skep", "stock"])
    parser.add_argument("--undisturbed", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "swarm-books.json")
    asked = parser.parse_args()
    kinds = {"skep": of_skep, "stock": of_stock}
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder:
        for case in asked.cases:
            for kind in asked.kinds:
                found = kinds[kind](Path(folder) / f"{kind}-{case}", case, asked.undisturbed)
                results[f"{kind} {case}"] = found
                sys.stdout.write(f"{kind} {case}: {found}\n")
    command = " ".join(["swarm_books.py", *sys.argv[1:]])
    body = {"machine": machine(), "date": datetime.now(UTC).strftime("%Y-%m-%d"), "command": command}
    asked.out.write_text(json.dumps(body | {"target": TARGET, "results": results}, indent=1) + "\n")
    ours = [found for name, found in results.items() if name.startswith("skep")]
    return int(any(abs(found["first_off"]) > FIRST_BOUND or abs(found["mean_off"]) > MEAN_BOUND for found in ours))


if __name__ == "__main__":
    sys.exit(main())
