"""Measures the real samples in the other peers' epochs while one of three is paused, or slowed to a fifth; loopback.

    python benchmarks/swarm_books.py              about 11 minutes; writes benchmarks/swarm-books.json and .md
    python benchmarks/swarm_books.py --kinds skep stock
    python benchmarks/swarm_books.py --cases pause --target 600 --epoch-seconds 8 --undisturbed 2 --after 3

skep's peers are its worker, throttled so that an epoch takes 20 s or more; the stock peers keep the same rate with
hivemind.Optimizer without computing. Step batches of 16 are at most 1 % of the target. The event comes 8 s into an
epoch; that epoch is the first after. What was lost before it reached a round is not counted. Targets: skep's mean of
five within 5 % of the undisturbed mean of the same run, the first within 10 %. Exits with 1 when one is missed, with 2
when this machine is too busy to tell: a peer cannot hold its rate, or an epoch takes four times as long as it should.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from peers import Peer, SkepPeer, Swarm, is_progress, swarm
from report import HERE, UNMEASURED, Row, Unmeasured, finish, say

FIRST_SHARE: Final = 0.3
HIGHEST_SHARE: Final = 0.9
"""A peer that needs more than this to hold its rate leaves no room for this machine's other work."""
RATE_SECONDS: Final = 12.0
"""A peer reports the mean rate of the last ten."""
INTO_EPOCH: Final = 8.0
FIFTH: Final = 0.2
FIRST_BOUND, MEAN_BOUND = 10.0, 5.0
"""Percent."""
LEAST_EPOCH: Final = 20.0
LAST_WORDS_SECONDS: Final = 3.0
STILL_REAL: Final = "part of the round failed"
"""The only loss after which the gradients were applied nevertheless."""


@dataclass(frozen=True)
class Setting:
    """The length of an epoch, in samples and seconds, and how many are measured before and after the event."""

    target: int
    epoch_seconds: float
    undisturbed: int
    after: int

    @property
    def rate(self) -> float:
        """Samples a second of each of the three peers."""
        return self.target / self.epoch_seconds / 3

    @property
    def patience(self) -> float:
        """Timeout of an epoch in seconds."""
        return 4 * self.epoch_seconds


class PacedStockPeer(Peer):
    def __init__(self, shared: Swarm, setting: Setting) -> None:
        options = shared.folder / f"paced-{time.monotonic_ns()}.json"
        body = {"peers": shared.seeds, "run_id": "stock-books", "target": setting.target, "batch": 16}
        options.write_text(json.dumps(body | {"rate": setting.rate}))
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
    """What all peers reported as their part of each epoch's round."""

    def __init__(self, peers: list[Any], patience: float) -> None:
        self.samples: dict[int, int] = defaultdict(int)
        self.begun: dict[int, float] = {}
        self.lost: list[dict[str, Any]] = []
        self._patience = patience
        self._ended = ""
        self._changed = threading.Condition()
        for peer in peers:
            threading.Thread(target=self._follow, args=(peer,), daemon=True).start()

    def _follow(self, peer: Peer) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                try:
                    self._note(peer.wait_for(lambda event: event["event"] in {"contribution", "lost"}))
                except RuntimeError as error:
                    self._end(str(error))
                    return

    def _end(self, why: str) -> None:
        with self._changed:
            self._ended = why
            self._changed.notify_all()

    def _note(self, event: dict[str, Any]) -> None:
        with self._changed:
            if event["event"] == "lost":
                self.lost.append({key: event[key] for key in ("epoch", "samples", "reason")})
                if event["reason"] != STILL_REAL:
                    self.samples[event["epoch"]] -= event["samples"]
                return
            self.samples[event["epoch"]] += event["samples"]
            self.begun.setdefault(event["epoch"] + 1, time.monotonic())
            self._changed.notify_all()

    def wait_for_epoch(self, epoch: int) -> None:
        """Raises Unmeasured if an epoch before it takes too long."""
        while (newest := self.newest) < epoch:
            with self._changed:
                came = self._changed.wait_for(lambda now=newest: self._newest > now or self._ended, self._patience)
                if self._ended:
                    raise Unmeasured(self._ended)
                if not came:
                    raise Unmeasured(f"epoch {newest} did not end within {self._patience:.0f} s.")
                say(
                    f"epoch {newest} is over, {self._took(newest)}; epoch {newest - 1} had {self.samples[newest - 1]} samples"
                )

    def _took(self, epoch: int) -> str:
        known = epoch in self.begun and epoch + 1 in self.begun
        return f"{self.begun[epoch + 1] - self.begun[epoch]:.1f} s" if known else "begun before"

    @property
    def _newest(self) -> int:
        return max(self.begun, default=0)

    @property
    def newest(self) -> int:
        with self._changed:
            return self._newest


def run_case(peers: list[Any], event: Callable[[], None], setting: Setting) -> dict[str, Any]:
    books = Books(peers, setting.patience)
    books.wait_for_epoch(1)
    first = books.newest + 2  # the next one starts with all peers in step
    at = first + setting.undisturbed
    books.wait_for_epoch(at)
    time.sleep(min(INTO_EPOCH, setting.epoch_seconds / 3))
    say("now it happens")
    event()
    books.wait_for_epoch(at + setting.after)
    time.sleep(LAST_WORDS_SECONDS)
    return judged(books, range(first, at), range(at, at + setting.after))


def judged(books: Books, before: range, after: range) -> dict[str, Any]:
    moments = [books.begun.get(epoch) for epoch in range(before[0], after[-1] + 2)]
    if None in moments:
        raise Unmeasured("an epoch went by without a word from any peer.")
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


def of_skep(folder: Path, case: str, setting: Setting) -> dict[str, Any]:
    with swarm(folder, "0.45 M", target_batch_size=setting.target) as shared, contextlib.ExitStack() as ending:
        peers: list[SkepPeer] = []
        for _ in range(3):
            # at normal priority: other work of this machine must not change their rates
            peers.append(SkepPeer(shared, share=FIRST_SHARE, nice=0))
            ending.callback(peers[-1].kill)
        for number, peer in enumerate(peers, 1):
            peer.wait_for(is_progress)
            say(f"peer {number} of 3 trains")
        time.sleep(RATE_SECONDS)
        shares = [fitting_share(peer, setting) for peer in peers]
        say(f"shares that make {setting.rate:.1f} samples/s: {', '.join(f'{100 * share:.0f} %' for share in shares)}")
        for peer, share in zip(peers, shares, strict=True):
            peer.set_share(share)
        share = 0.0 if case == "pause" else shares[0] * FIFTH
        return {"shares": shares} | run_case(peers, lambda: peers[0].set_share(share), setting)


def fitting_share(peer: SkepPeer, setting: Setting) -> float:
    """The share at which three such peers fill the target in an epoch's seconds. Raises Unmeasured if there is none."""
    now = time.monotonic()
    rate = peer.wait_for(lambda event: is_progress(event) and event["seconds"] > now)["rate"]
    share = setting.rate * FIRST_SHARE / rate if rate else 1.0
    if share > HIGHEST_SHARE:
        raise Unmeasured(f"a peer cannot hold {setting.rate:.1f} samples/s.")
    return float(share)


def of_stock(folder: Path, case: str, setting: Setting) -> dict[str, Any]:
    with swarm(folder, "0.45 M") as shared, contextlib.ExitStack() as ending:
        peers: list[PacedStockPeer] = []
        for _ in range(3):
            peers.append(PacedStockPeer(shared, setting))
            ending.callback(peers[-1].kill)
        for number, peer in enumerate(peers, 1):
            peer.wait_for(is_progress)
            say(f"peer {number} of 3 trains")
        changed = 0.0 if case == "pause" else setting.rate * FIFTH
        return run_case(peers, lambda: peers[0].set_rate(changed), setting)


def rows(name: str, found: dict[str, Any], setting: Setting) -> list[Row]:
    """Stock rows have no targets. Ours assume epochs of the default length."""
    ours = name.startswith("skep")
    first, mean = 100 * abs(found["first_off"]), 100 * abs(found["mean_off"])
    return [
        Row(f"{name}: first epoch after, off", first, "%", FIRST_BOUND if ours else None, found["after"][:1]),
        Row(f"{name}: mean of {setting.after} after, off", mean, "%", MEAN_BOUND if ours else None, found["after"]),
        Row(f"{name}: undisturbed epoch", found["epoch_seconds"], "s", None, found["undisturbed"], LEAST_EPOCH),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["pause", "slow"], choices=["pause", "slow"])
    parser.add_argument("--kinds", nargs="+", default=["skep"], choices=["skep", "stock"])
    parser.add_argument("--undisturbed", type=int, default=3, help="epochs before (3)")
    parser.add_argument("--after", type=int, default=5, help="epochs after (5)")
    parser.add_argument("--target", type=int, default=1700, help="samples of an epoch (1700)")
    parser.add_argument("--epoch-seconds", type=float, default=23.0, help="(23)")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for swarm-books.json and .md")
    asked = parser.parse_args()
    setting = Setting(asked.target, asked.epoch_seconds, asked.undisturbed, asked.after)
    kinds = {"skep": of_skep, "stock": of_stock}
    made: list[Row] = []
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="skep-bench-") as folder:
        for case in asked.cases:
            for kind in asked.kinds:
                name = f"{kind} {case}"
                say(name)
                results[name] = found = kinds[kind](Path(folder) / name.replace(" ", "-"), case, setting)
                made += rows(name, found, setting)
                for row in made[-3:]:
                    say(f"{row.name}: {row.value:.3g} {row.unit} ({row.target}), {row.values}")
    return finish("swarm-books", made, asked.out, target=setting.target, results=results)


if __name__ == "__main__":
    try:
        code = main()
    except (Unmeasured, TimeoutError, RuntimeError) as error:
        say(f"cannot tell: {error} Is this machine busy with other things?")
        code = UNMEASURED
    sys.exit(code)
