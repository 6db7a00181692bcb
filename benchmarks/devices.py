"""Several ranks of one worker on the processor: samples per second at equal cores, hand-overs, give-back.

    python benchmarks/devices.py [--pairs 5] [--pauses 40]      about 15 minutes; writes benchmarks/devices.json and .md

One rank with two threads and two ranks with one thread each train in turn, each alone in a swarm; which one begins
alternates. A hand-over is the sum of the gradients of all ranks at rank 0. A reaction is from the order to pause to no
computing, of a worker of two ranks that have a copy of the model each, and of one of two ranks that share it: these are
taken for cards with room for a half. Pauses that had to wait for a round are no reaction. Exit code 1 when a target is
missed, 2 when there is no result.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import torch
from against_stock.running import fresh_swarm
from peers import SkepPeer, described
from report import HERE, UNMEASURED, Row, Unmeasured, finish, in_turn, p95, say

from skep.adapters.process.start import COMMAND
from skep.recipes.registry import open_recipe, parse_manifest
from skep.recipes.tensors.batches import Batch
from skep.worker.process import processes
from skep.worker.ranks.group import GroupTrainer
from skep.worker.ranks.others import fork
from skep.worker.training.device import CPU, TrainingDevice

RATE_MODEL: Final = "3.3 M"
HAND_OVER_MODEL: Final = "22 M"
SIZES: Final = (2, 3, 4)
HAND_OVERS: Final = 10
PEER: Final = "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"
"""The manifest has to name one; nobody dials it."""
WARM_SECONDS: Final = 3.0
SECONDS: Final = 12.0
TRAINING_SECONDS: Final = 0.5
"""Before each pause."""
LEAST_RATIO: Final = 0.95
BEYOND_A_MICRO_BATCH: Final = 0.05
NEEDED_GB: Final = 2
"""What a card needs for a copy of the model, by the manifest: two of CARD_BYTES have to share it."""
CARD_BYTES: Final = 1_200_000_000
COUNTING: Final = HERE.parent / "tests" / "counting_worker.py"
"""A worker that takes the processor's ranks for cards of so many bytes."""


def hand_overs() -> list[Row]:
    """Seconds of a hand-over by the number of ranks. Call it before torch's autograd is used in this process."""
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        shared = described(Path(folder), [PEER], HAND_OVER_MODEL, {})
        manifest = parse_manifest(json.dumps(shared.manifest).encode())
        groups = {size: fork(["cpu"] * (size - 1), manifest) for size in SIZES}
        for size, others in groups.items():
            group = GroupTrainer(manifest, TrainingDevice(CPU, "CPU", "fp32"), others, Path(folder))
            group.begin()
            batch = open_recipe(manifest.recipe).example(size)
            taken = [_hand_over(group, batch) for _ in range(HAND_OVERS)]
            rows.append(Row(f"hand-over of {HAND_OVER_MODEL} parameters, {size} ranks", statistics.median(taken), "s"))
            rows[-1].values = taken
            say(f"{size} ranks: {rows[-1].value:.3g} s")
            for rank in others.ranks:
                rank.process.kill()
    return rows


def _hand_over(group: GroupTrainer, batch: Batch) -> float:
    group.add_gradients(batch, 1.0)
    begun = time.monotonic()
    group.collect()
    return time.monotonic() - begun


def rates(pairs: int) -> list[Row]:
    """Samples per second of one rank with two threads and of two ranks with one, and the ratio."""
    found: dict[str, list[float]] = {"cpu": [], "cpu*2": []}
    for number in range(pairs):
        for device in in_turn(found, number):
            with fresh_swarm(RATE_MODEL, target_batch_size=256) as shared:
                peer = SkepPeer(shared, device=device, threads=2)
                try:
                    peer.rate(WARM_SECONDS)
                    found[device].append(peer.rate(SECONDS))
                finally:
                    peer.kill()
            say(f"{device}: {found[device][-1]:.4g} samples per second")
    one, two = found.values()
    ratios = [b / a for a, b in zip(one, two, strict=True)]
    return [
        Row("samples per second, one rank with two threads", statistics.median(one), "", values=one),
        Row("samples per second, two ranks with one thread each", statistics.median(two), "", values=two),
        Row("the same, as a ratio", statistics.median(ratios), "", values=ratios, least=LEAST_RATIO),
    ]


def give_back(pauses: int, *, sharded: bool) -> Row:
    """The 95th percentile of the reactions of two ranks, which share the model or have a copy each."""
    reactions: list[float] = []
    command = [sys.executable, str(COUNTING), str(CARD_BYTES)] if sharded else COMMAND
    with fresh_swarm(RATE_MODEL, target_batch_size=1_000_000) as shared:
        if sharded:
            shared.manifest["needs"]["vram_gb"] = NEEDED_GB
        peer = SkepPeer(shared, device="cpu*2", threads=2, command=command)
        try:
            peer.wait_for(lambda event: event["event"] == "joined")
            if peer.joined["in_step"] is not sharded:
                raise Unmeasured(f"the ranks {'have a copy of' if sharded else 'share'} the model.")
            rate = peer.rate(WARM_SECONDS)
            micro_batch = peer.joined["micro_batch"] / rate
            while len(reactions) < pauses:
                peer.rate(TRAINING_SECONDS)
                peer.set_share(0.0)
                told = peer.wait_for(lambda event: event["event"] == "paused" and event["share"] == 0.0)
                reactions += [] if told["behind"] else [told["reaction_seconds"]]
                peer.set_share(1.0)
        finally:
            peer.kill()
    bound = round(micro_batch + BEYOND_A_MICRO_BATCH, 3)
    ranks = "two ranks that share the model" if sharded else "two ranks"
    return Row(f"from the order to pause to no computing, {ranks}, p95", p95(reactions), "s", bound, reactions)


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--pairs", type=int, default=5)
    made.add_argument("--pauses", type=int, default=40)
    made.add_argument("--to", type=Path, default=HERE, help="folder of the results")
    arguments = made.parse_args()
    processes.use_fork()
    rows = hand_overs()
    rows = [*rates(arguments.pairs), *rows]
    try:
        rows += [give_back(arguments.pauses, sharded=sharded) for sharded in (False, True)]
    except Unmeasured as error:
        say(str(error))
        return UNMEASURED
    return finish("devices", rows, arguments.to)


if __name__ == "__main__":
    sys.exit(main())
