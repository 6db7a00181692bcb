"""Joining a swarm in stages: hardware, data, peers, warm-up, state. The result is a loop that is ready to train.

The order matters: the DHT is forked before torch starts threads, and the state is loaded last, because any later step
would make a newcomer late for the next round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from hivemind import DHT
from hivemind.p2p import PeerID

from skep.core.errors import DataError
from skep.core.project.manifest import Manifest
from skep.core.session.messages import ShardWanted, WorkerJoined, WorkerNoticed, WorkerOptions, WorkerStage
from skep.core.session.phases import Stage
from skep.core.text import Problem, Text
from skep.recipes.registry import open_recipe
from skep.worker import self_test
from skep.worker.connection import clocks, network, relays, revoked, versions
from skep.worker.connection.auth import Membership
from skep.worker.connection.clocks import ClockWatch
from skep.worker.connection.known_peers import KnownPeers, where
from skep.worker.connection.network import ByteCounters, watch_streams
from skep.worker.connection.rates import Rates
from skep.worker.connection.revoked import RevokedPeers
from skep.worker.connection.watch import Watch, bound_waits, parts_of
from skep.worker.process.link import Link
from skep.worker.process.memory import MemoryWatch, without_collecting
from skep.worker.process.processes import SessionPriority, lower_training
from skep.worker.swarm.division import DataDivision
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.state.coming import Loading
from skep.worker.swarm.state.snapshots import Snapshots
from skep.worker.swarm.strategy import Participant, strategy_of
from skep.worker.training import device
from skep.worker.training.data import Samples, hear_data
from skep.worker.training.device_errors import as_device_error, as_does_not_fit
from skep.worker.training.loop import TrainingLoop
from skep.worker.training.pace import Pace, RequestedLimits
from skep.worker.training.resource_limits import MicroBatches, ModelOffload, ResourceLimits
from skep.worker.training.trainer import HELD_OUT_SAMPLES, Trainer, step_batch_for

FIRST_SHARD_SECONDS: Final = 600.0


@dataclass(frozen=True)
class Joining:
    """One join. `introduce` is called with the function that removes our record from the DHT, once there is one.

    `alarm` is called from another thread if later a process that this worker needs has ended or hangs.
    """

    options: WorkerOptions
    manifest: Manifest
    link: Link
    rounds: Rounds
    pace: Pace
    requested: RequestedLimits
    priority: SessionPriority
    rates: Rates
    introduce: Callable[[Callable[[float], None]], None]
    alarm: Callable[[Problem], object]

    def run(self) -> TrainingLoop | None:
        """Join, stage by stage; None if the run is finished.

        Call it on the main thread, because hivemind sets signal handlers. Raises SkepError.
        """
        ram = MemoryWatch(self.options.leave_ram)
        with self._stage(Stage.HARDWARE):
            chosen = device.pick(self.options.device, self.manifest.precision)
            self.pace.stopwatch = chosen.stopwatch
            chosen.cap_memory(self.options.leave_gpu)
            threads = device.Threads(self.options.threads)
            threads.use(present=False)
            identity = Path(self.options.identity_path)
            membership = self._membership(identity) if self.manifest.by_invitation else None
            peer_id = PeerID.from_identity(identity.read_bytes())
            position, ask = self.options.position, lambda sha256: self.link.send(ShardWanted(sha256))
            samples = Samples(self.options.index, str(peer_id), self.manifest.run_id, position, ask)
        with self._stage(Stage.DATA):
            files = self._await_data(samples)
        with self._stage(Stage.PEERS):
            traffic = ByteCounters()
            watch_streams(traffic, self.rates)
            bound_waits()
            library = without_collecting()(partial(open_recipe, self.manifest.recipe, files))
            dht = self._reach_swarm(membership, library)
            relayed = relays.is_relayed(dht)
        title = self.manifest.title
        with self._stage(Stage.WARM_UP), as_device_error(chosen.name), as_does_not_fit(title, chosen.name):
            step_batch = step_batch_for(self.manifest.sync.target_batch_size)
            trainer = Trainer(self.manifest, [chosen], files)
            own = Participant(
                self.manifest,
                dht,
                trainer.parameters,
                step_batch,
                self.rounds,
                self.pace.rate,
                membership,
                self._notice,
                self._tell_loading,
                self._snapshots(trainer),
                relays.UNDIALLED if relayed else 1.0,
            )
            sync = strategy_of(self.manifest)(own)
            self.introduce(sync.farewell)
            if self.options.nice:
                # after the network's processes were forked, which keep their priority
                lower_training(self.options.nice)
                self.priority.begin()
            threads.use(present=self.requested.present)
            sizes = MicroBatches(trainer.dry_run(step_batch, ram.enough))
            if not ram.enough():
                raise ram.shortage()
            sync.ready(network.START_SECONDS)
            relay = [relays.part(dht)] if relayed else []
            Watch([*parts_of(dht), *relay, *sync.parts()], self.alarm).start()
            ClockWatch(clocks.asking(dht), self.link.send).start()
        limits = ResourceLimits(
            requested=self.requested,
            group=trainer,
            sizes=sizes,
            threads=threads,
            offload=ModelOffload(chosen.device, lambda: chain(trainer.tensors(), sync.tensors())),
            ram=ram,
        )
        with self._stage(Stage.STATE):
            if not sync.finished:
                sync.synchronise()
            if sync.finished:
                return None
        samples.divide(DataDivision(dht, self.manifest))
        self.link.send(self._joined(dht, chosen, limits, relayed=relayed, epoch=sync.epoch, step_batch=step_batch))
        return TrainingLoop(
            link=self.link,
            pace=self.pace,
            samples=samples,
            trainer=trainer,
            sync=sync,
            rounds=self.rounds,
            traffic=traffic,
            step_batch=step_batch,
            limits=limits,
        )

    def _reach_swarm(self, membership: Membership | None, meanwhile: Callable[[], object]) -> DHT:
        """Through a seed, or a peer that this one knows; `meanwhile` is called while the DHT starts. Raises SwarmError."""
        self_test.run()
        known = self._known_peers()
        dht = network.reach(
            self.options,
            self.manifest.peers,
            membership,
            known=known.addresses if known else tuple,
            meanwhile=meanwhile,
        )
        if known:
            self.rounds.met = partial(known.meet, where=where(dht))
        versions.check(dht, self.manifest.peers)
        return dht

    def _membership(self, identity: Path) -> Membership:
        """Raises InvitationError."""
        listed = Path(self.options.run_folder) / revoked.NAME
        return Membership(self.manifest, self.options.invitation, identity, RevokedPeers(self.manifest, listed))

    def _notice(self, problem: Problem) -> None:
        self.link.send(WorkerNoticed(problem))

    def _snapshots(self, trainer: Trainer) -> Snapshots | None:
        options = self.options
        if not options.snapshots_folder:
            return None
        names = [name for name, parameter in trainer.model.named_parameters() if parameter.requires_grad]
        folder, run_id = Path(options.snapshots_folder), self.manifest.run_id
        limit = options.snapshot_bytes_per_day
        return Snapshots(folder, run_id, options.manifest, names, limit, tell=self._notice)

    def _known_peers(self) -> KnownPeers | None:
        folder = self.options.known_peers_folder
        return KnownPeers(Path(folder), self.manifest.run_id) if folder else None

    def _tell_loading(self, loading: Loading) -> None:
        self.link.send(WorkerStage(Stage.STATE, loading.fraction, loading.text))

    def _joined(
        self,
        dht: DHT,
        chosen: device.TrainingDevice,
        limits: ResourceLimits,
        *,
        relayed: bool,
        epoch: int,
        step_batch: int,
    ) -> WorkerJoined:
        return WorkerJoined(
            peer_id=str(dht.peer_id),
            device=chosen.name,
            precision=chosen.precision,
            epoch=epoch,
            step_batch=step_batch,
            micro_batch=limits.size,
            addresses=() if dht.client_mode else tuple(map(str, dht.get_visible_maddrs())),
            client_mode=dht.client_mode,
            relayed=relayed,
            heavy=limits.heavy,
        )

    @contextmanager
    def _stage(self, stage: Stage) -> Iterator[None]:
        self.link.send(WorkerStage(stage, 0.0))
        yield
        self.link.send(WorkerStage(stage, 1.0))

    def _await_data(self, samples: Samples) -> dict[str, Path]:
        """Wait for the first samples and the recipe's other files; return the files by name.

        There is no timeout for files, which may be large: the engine reports when a download fails.
        """
        deadline, files = time.monotonic() + FIRST_SHARD_SECONDS, self.manifest.recipe.files
        for file in files:
            samples.file(file)  # asked for now, and waited for when there are samples
        samples.held_out(HELD_OUT_SAMPLES)  # asked for now, so that the first loss can be measured at once
        while not samples.ready(1):
            self._hear(samples)
            if time.monotonic() > deadline:
                raise DataError(
                    Text("joining.first_part_training_data_did"), Text("joining.project_server_may_slow_skep")
                )
        while not all(map(samples.file, files)):
            self._hear(samples)
        return {file.name: path for file in files if (path := samples.file(file))}

    def _hear(self, samples: Samples) -> None:
        hear_data(self.link, samples)
        time.sleep(0.02)
