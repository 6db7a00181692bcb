"""The staged join: hardware, data, peers, warm-up, state, and then a loop that is ready to train.

The order matters: the DHT is forked before torch is busy, and the state comes last, because whatever follows it makes
a newcomer late for the next round. It must not train, nor end the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import hivemind
from hivemind.p2p import PeerID

from skep.core.errors import DataError
from skep.core.manifest import Manifest, parse
from skep.core.messages import ShardWanted, StartTraining, WorkerJoined, WorkerStage
from skep.core.model import Stage
from skep.worker import device, network
from skep.worker.data import Samples
from skep.worker.examiner import HELD_OUT_SAMPLES
from skep.worker.faults import said_in_words, within_memory
from skep.worker.link import Link
from skep.worker.loading import without_collecting
from skep.worker.loop import TrainingLoop, hear_data
from skep.worker.manners import Manners
from skep.worker.membership import membership_of
from skep.worker.optimizer import SwarmOptimizer
from skep.worker.orders import Orders
from skep.worker.pace import Pace
from skep.worker.priority import Standing, lower_training
from skep.worker.ram import RamWatch
from skep.worker.recipes import Files, open_recipe
from skep.worker.residence import Residence
from skep.worker.rounds import Rounds
from skep.worker.sizes import MicroBatches
from skep.worker.traffic import Traffic, watch_streams
from skep.worker.trainer import Trainer, step_batch_for

FIRST_SHARD_SECONDS: Final = 600.0


class Joining:
    """One join. `introduce` is handed the way to take our record off the swarm's books, as soon as there is one."""

    def __init__(
        self,
        start: StartTraining,
        link: Link,
        rounds: Rounds,
        pace: Pace,
        *,
        orders: Orders,
        standing: Standing,
        introduce: Callable[[Callable[[float], None]], None],
    ) -> None:
        self._start, self._link, self._rounds, self._pace = start, link, rounds, pace
        self._orders, self._standing, self._introduce = orders, standing, introduce
        self._ram = RamWatch(start.leave_ram)
        self._manifest: Manifest = parse(start.manifest.encode())

    def run(self) -> TrainingLoop:
        """Join, stage by stage. On the main thread, because hivemind sets signal handlers. Raises SkepError."""
        with self._stage(Stage.HARDWARE):
            chosen = device.pick(self._start.device, self._manifest.precision)
            self._pace.stopwatch = chosen.stopwatch
            chosen.cap_memory(self._start.leave_gpu)
            threads = device.Threads(self._start.threads)
            threads.use(present=False)
            membership = membership_of(self._start, self._manifest)
            peer_id = PeerID.from_identity(Path(self._start.identity_path).read_bytes())
            samples = self._open_data(str(peer_id))
        with self._stage(Stage.DATA):
            self._await_data(samples)
            files = self._await_files(samples)
        with self._stage(Stage.PEERS):
            traffic = Traffic.fresh()
            watch_streams(traffic)
            library = partial(self._open_recipe, files)
            dht = network.reach(self._start, self._manifest.peers, membership, meanwhile=library)
        title = self._manifest.title
        with self._stage(Stage.WARM_UP), said_in_words(chosen.name), within_memory(title, chosen.name):
            step_batch = step_batch_for(self._manifest.sync.target_batch_size)
            trainer = Trainer(self._manifest, chosen, files)
            optimizer = SwarmOptimizer(
                self._manifest, dht, trainer.parameters, step_batch, self._rounds, membership=membership
            )
            self._introduce(optimizer.tracker.withdraw)
            optimizer.ask_for_state()
            if self._start.nice:
                lower_training(self._start.nice)  # after the network's processes were forked: they must stay quick
                self._standing.begin()
            threads.use(present=self._orders.present)
            sizes = MicroBatches(trainer.dry_run(step_batch, self._ram.enough))
            if not self._ram.enough():
                raise self._ram.shortage()
            optimizer.wait_until_ready(network.START_SECONDS)
            optimizer.grad_averager.reset_accumulated_grads_()
        manners = Manners(
            orders=self._orders,
            trainer=trainer,
            sizes=sizes,
            threads=threads,
            residence=Residence(chosen.device, lambda: chain(trainer.tensors(), optimizer.tensors())),
            ram=self._ram,
        )
        with self._stage(Stage.STATE):
            optimizer.synchronise()
        self._link.send(
            WorkerJoined(
                peer_id=str(dht.peer_id),
                device=chosen.name,
                precision=chosen.precision,
                epoch=optimizer.local_epoch,
                step_batch=step_batch,
                micro_batch=manners.size,
                addresses=() if dht.client_mode else addresses_of(dht),
                client_mode=dht.client_mode,
                heavy=manners.heavy,
            )
        )
        return TrainingLoop(
            link=self._link,
            pace=self._pace,
            samples=samples,
            trainer=trainer,
            optimizer=optimizer,
            rounds=self._rounds,
            traffic=traffic,
            step_batch=step_batch,
            manners=manners,
        )

    @contextmanager
    def _stage(self, stage: Stage) -> Iterator[None]:
        self._link.send(WorkerStage(stage, 0.0))
        yield
        self._link.send(WorkerStage(stage, 1.0))

    def _open_data(self, peer_id: str) -> Samples:
        return Samples(
            self._start.index,
            peer_id,
            self._manifest.run_id,
            self._start.position,
            lambda sha256: self._link.send(ShardWanted(sha256)),
        )

    def _open_recipe(self, files: Files) -> None:
        with without_collecting():
            open_recipe(self._manifest.recipe, files)

    def _await_data(self, samples: Samples) -> None:
        deadline = time.monotonic() + FIRST_SHARD_SECONDS
        for file in self._manifest.recipe.files:
            samples.file(file)  # asked for now, and waited for when there are samples
        samples.held_out(HELD_OUT_SAMPLES)  # asked for now, so that the first loss can be measured at once
        while not samples.ready(1):
            hear_data(self._link, samples)
            if time.monotonic() > deadline:
                raise DataError(
                    "The first part of the training data did not arrive within 10 minutes.",
                    "The project's server may be slow; skep tries again later.",
                )
            time.sleep(0.02)

    def _await_files(self, samples: Samples) -> dict[str, Path]:
        """What the recipe needs beside samples, by name. However large it is, the engine says when it fails."""
        found: dict[str, Path] = {}
        for file in self._manifest.recipe.files:
            while (path := samples.file(file)) is None:
                hear_data(self._link, samples)
                time.sleep(0.02)
            found[file.name] = path
        return found


def addresses_of(dht: hivemind.DHT) -> tuple[str, ...]:
    return tuple(str(address) for address in dht.get_visible_maddrs())
