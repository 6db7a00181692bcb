"""Joining a swarm in stages: hardware, data, peers, warm-up, state. The result is a loop that is ready to train.

The order matters: the DHT is forked before torch starts threads, and the state is loaded last, because any later step
would make a newcomer late for the next round.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from hivemind import DHT
from hivemind.p2p import PeerID

from skep.core.errors import DataError
from skep.core.project import signed_checkpoint
from skep.core.project.manifest import Manifest
from skep.core.project.signed_checkpoint import FILE, SignedCheckpoint
from skep.core.session.messages import ShardWanted, WorkerJoined, WorkerNoticed, WorkerOptions, WorkerStage
from skep.core.session.phases import Stage
from skep.core.text import Problem, Text
from skep.recipes.contract import Files
from skep.recipes.registry import open_recipe
from skep.signatures import is_valid
from skep.worker import self_test
from skep.worker.connection import clocks, futures, lookout, network, relays, revoked
from skep.worker.connection.auth import Membership
from skep.worker.connection.clocks import ClockWatch
from skep.worker.connection.known_peers import KnownPeers, where
from skep.worker.connection.lookout import LinkWatch
from skep.worker.connection.network import ByteCounters, watch_streams
from skep.worker.connection.rates import Rates
from skep.worker.connection.revoked import RevokedPeers
from skep.worker.connection.versions import Versions, VersionWatch
from skep.worker.connection.watch import Watch, parts_of
from skep.worker.process import stacks
from skep.worker.process.link import Link
from skep.worker.process.memory import MemoryWatch, without_collecting
from skep.worker.process.processes import SessionPriority, lower_training
from skep.worker.ranks import choice
from skep.worker.ranks.group import Building, GroupTrainer
from skep.worker.ranks.others import Others, fork
from skep.worker.ranks.sharded_group import ShardedTrainer
from skep.worker.swarm.division import DataDivision
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.state.coming import Loading
from skep.worker.swarm.state.signed import SignedState
from skep.worker.swarm.state.snapshots import Snapshots
from skep.worker.swarm.strategy import Participant, SyncStrategy, run_of, strategy_of
from skep.worker.training import device
from skep.worker.training.data import Samples, hear_data
from skep.worker.training.device_errors import NoRoom, as_device_error, as_does_not_fit
from skep.worker.training.loop import TrainingLoop
from skep.worker.training.pace import Pace, RequestedLimits
from skep.worker.training.resource_limits import MicroBatches, ResourceLimits
from skep.worker.training.trainer import HELD_OUT_SAMPLES, Trainer, step_batch_for

FIRST_SHARD_SECONDS: Final = 600.0


@dataclass(frozen=True)
class _Hardware:
    """What trains here: rank 0's device, the other ranks, which devices were chosen, and the processor's threads."""

    chosen: device.TrainingDevice
    others: Others
    ranks: choice.Choice
    threads: device.Threads


@dataclass(frozen=True)
class _Reached:
    """The swarm, its membership if it has any, and whether others reach this peer through a relay only."""

    dht: DHT
    membership: Membership | None
    relayed: bool


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
    _verdicts: list[bool | None] = field(default_factory=list)
    """What peers say of whether others can dial this one, the last one of this connection."""

    def run(self) -> TrainingLoop:
        """Join, stage by stage. The loop of a run that is finished computes nothing, and hands over the run's state.

        Call it on the main thread, because hivemind sets signal handlers. Raises SkepError.
        """
        tested = self_test.begin()  # it runs beside what comes until the swarm is reached
        ram, note = MemoryWatch(self.options.leave_ram), self._note_of_checkpoint()
        with self._stage(Stage.HARDWARE):
            hardware = self._hardware()
            membership = self._membership() if self.manifest.by_invitation else None
            samples = self._samples()
        with self._stage(Stage.DATA):
            files = self._await_data(samples, note)
            signed = partial(SignedState, note, files.pop(FILE)) if note else None
        with self._stage(Stage.PEERS):
            traffic = ByteCounters()
            watch_streams(traffic, self.rates)
            futures.install()
            library = without_collecting()(partial(open_recipe, self.manifest.recipe, files))
            dht = self._reach_swarm(membership, tested, library)
            reached = _Reached(dht, membership, relays.is_relayed(dht))
        name = hardware.chosen.name
        with self._stage(Stage.WARM_UP), as_device_error(name), as_does_not_fit(self.manifest.title, name):
            trainer = self._trainer(hardware, files)
            self.pace.stopwatch = trainer.stopwatch
            own = self._participant(reached, trainer, signed(_names(trainer)) if signed else None)
            sync = strategy_of(self.manifest)(own)
            self.introduce(sync.farewell)
            limits = self._warm_up(hardware, trainer, sync, ram)
            sync.ready(network.START_SECONDS)
            self._watch(reached, sync)
        with self._stage(Stage.STATE):
            sync.synchronise()
        if not sync.finished:
            samples.divide(DataDivision(dht, self.manifest))
            self.link.send(self._joined(reached, hardware.chosen, trainer, limits, sync.epoch))
        return TrainingLoop(
            link=self.link,
            pace=self.pace,
            samples=samples,
            trainer=trainer,
            sync=sync,
            rounds=self.rounds,
            traffic=traffic,
            step_batch=self._step_batch,
            limits=limits,
        )

    @property
    def _step_batch(self) -> int:
        return step_batch_for(self.manifest.sync.target_batch_size)

    def _hardware(self) -> _Hardware:
        """Choose the devices, fork the other ranks, and limit this process to its share. Raises DoesNotFit."""
        ranks = choice.devices_of(self.options.device, self.manifest, self._notice)
        first, *more = ranks.names
        if more:
            choice.set_nccl(self.options.nccl)
        # before the device is used, and before hivemind's processes take their locks
        others = fork(more, self.manifest)
        chosen = device.pick(first, self.manifest.precision)
        options = self.options
        chosen.cap_memory(options.leave_gpu_of.get(str(chosen.device), options.leave_gpu))
        on_processor = chosen.device.type == device.CPU.type
        threads = device.Threads(options.threads, ranks=lambda: 1 + len(others.ranks) if on_processor else 1)
        threads.use(present=False)
        return _Hardware(chosen, others, ranks, threads)

    def _samples(self) -> Samples:
        options = self.options
        peer_id = PeerID.from_identity(Path(options.identity_path).read_bytes())

        def ask(sha256: str) -> None:
            self.link.send(ShardWanted(sha256))

        return Samples(options.index, str(peer_id), self.manifest.run_id, options.position, ask)

    def _participant(self, reached: _Reached, trainer: Trainer, signed: SignedState | None) -> Participant:
        return Participant(
            run_of(self.manifest),
            reached.dht,
            trainer.parameters,
            self._step_batch,
            self.rounds,
            self.pace.rate,
            reached.membership,
            self.link.send,
            self._tell_loading,
            self._snapshots(trainer),
            relays.UNDIALLED if reached.relayed else 1.0,
            signed,
        )

    def _warm_up(self, hardware: _Hardware, trainer: Trainer, sync: SyncStrategy, ram: MemoryWatch) -> ResourceLimits:
        """Lower the priority, and train a few micro-batches for nothing, which shows how large they may be.

        Raises DeviceError without the memory for them.
        """
        if self.options.nice:
            # after the network's processes were forked, which keep their priority
            lower_training(self.options.nice)
            self.priority.begin()
        hardware.threads.use(present=self.requested.present)
        trainer.begin()
        sizes = MicroBatches(trainer.dry_run(self._step_batch, ram.enough))
        if not ram.enough():
            raise ram.shortage()
        return ResourceLimits(
            requested=self.requested,
            group=trainer,
            sizes=sizes,
            threads=hardware.threads,
            offload=trainer.offload(lambda: chain(trainer.tensors(), sync.tensors())),
            ram=ram,
        )

    def _trainer(self, hardware: _Hardware, files: Files) -> Trainer:
        """Of copies, or of shards if these are to share the model, or rank 0 has no room for a copy.

        Raises DoesNotFit, DeviceError.
        """
        chosen, others, ranks = hardware.chosen, hardware.others, hardware.ranks
        if not others.ranks:
            return Trainer(self.manifest, chosen, files)
        options = self.options
        building = Building(
            options.leave_gpu, options.leave_gpu_of, options.nice, options.present, offload=ranks.offload
        )

        def build(kind: type[GroupTrainer]) -> GroupTrainer:
            return kind(
                self.manifest,
                chosen,
                others,
                Path(options.run_folder),
                files,
                building=building,
                told=self._notice,
                alarm=self.alarm,
                present=lambda: self.requested.present,
                allowed=lambda device: self.requested.part_of(device, self.pace.share),
            )

        if not ranks.sharded:
            with suppress(NoRoom), as_does_not_fit(self.manifest.title, chosen.name):
                return build(GroupTrainer)
            gc.collect()
            chosen.empty_caches()
        return build(ShardedTrainer)

    def _reach_swarm(
        self, membership: Membership | None, tested: Callable[[], object], meanwhile: Callable[[], object]
    ) -> DHT:
        """Through a seed, or a peer that this one knows, once `tested` has returned; `meanwhile` is called while the DHT starts.

        Raises SwarmError, BadInput.
        """
        tested()
        known = self._known_peers()
        dht = network.reach(
            self.options,
            self.manifest.peers,
            membership,
            known=known.addresses if known else tuple,
            meanwhile=meanwhile,
            told=self._verdicts.append,
        )
        if known:
            self.rounds.met = partial(known.meet, where=where(dht))
        self._versions(dht).check()
        return dht

    def _watch(self, reached: _Reached, sync: SyncStrategy) -> None:
        dht = reached.dht
        parts = [*parts_of(dht), *([relays.part(dht)] if reached.relayed else []), *sync.parts()]
        Watch(parts, self.alarm, stacks.request).start()
        ClockWatch(clocks.asking(dht), self.link.send).start()
        LinkWatch(lookout.connected(dht), self.link.send).start()
        VersionWatch(partial(self._versions(dht).problem, ours=1), self.link.send).start()

    def _versions(self, dht: DHT) -> Versions:
        return Versions(dht, self.manifest.peers, self.manifest.run_id_of)

    def _membership(self) -> Membership:
        """Raises InvitationError."""
        identity = Path(self.options.identity_path)
        listed = Path(self.options.run_folder) / revoked.NAME
        return Membership(self.manifest, self.options.invitation, identity, RevokedPeers(self.manifest, listed))

    def _note_of_checkpoint(self) -> SignedCheckpoint | None:
        """None unless the project demands one. Raises CheckpointError."""
        if not self.manifest.begins_signed:
            return None
        found = signed_checkpoint.read(self.options.index.checkpoint.encode(), is_valid)
        signed_checkpoint.check(found, self.manifest)
        return found

    def _notice(self, problem: Problem) -> None:
        self.link.send(WorkerNoticed(problem))

    def _snapshots(self, trainer: Trainer) -> Snapshots | None:
        options = self.options
        if not options.snapshots_folder:
            return None
        folder, run_id = Path(options.snapshots_folder), self.manifest.run_id
        limit = options.snapshot_bytes_per_day
        return Snapshots(folder, run_id, options.manifest, _names(trainer), limit, tell=self.link.send)

    def _known_peers(self) -> KnownPeers | None:
        folder = self.options.known_peers_folder
        return KnownPeers(Path(folder), self.manifest.run_id) if folder else None

    def _tell_loading(self, loading: Loading) -> None:
        self.link.send(WorkerStage(Stage.STATE, loading.fraction, loading.text))

    def _joined(
        self,
        reached: _Reached,
        chosen: device.TrainingDevice,
        trainer: Trainer,
        limits: ResourceLimits,
        epoch: int,
    ) -> WorkerJoined:
        dht = reached.dht
        return WorkerJoined(
            peer_id=str(dht.peer_id),
            device=chosen.name,
            precision=chosen.precision,
            epoch=epoch,
            step_batch=self._step_batch,
            micro_batch=limits.size,
            addresses=() if dht.client_mode else tuple(map(str, dht.get_visible_maddrs())),
            client_mode=dht.client_mode,
            relayed=reached.relayed,
            verified=self._verdicts[-1:] == [True],
            heavy=limits.heavy,
            devices=tuple(trainer.devices),
            in_step=isinstance(trainer, ShardedTrainer),
        )

    @contextmanager
    def _stage(self, stage: Stage) -> Iterator[None]:
        self.link.send(WorkerStage(stage, 0.0))
        yield
        self.link.send(WorkerStage(stage, 1.0))

    def _await_data(self, samples: Samples, note: SignedCheckpoint | None) -> dict[str, Path]:
        """Wait for the first samples, the recipe's other files and the checkpoint of `note`; return the files by name.

        There is no timeout for files, which may be large: the engine reports when a download fails.
        """
        deadline, files = time.monotonic() + FIRST_SHARD_SECONDS, [*self.manifest.recipe.files]
        if note is not None:
            files.append(signed_checkpoint.file_of(note, self.manifest))
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


def _names(trainer: Trainer) -> list[str]:
    """Of the parameters that are trained, in hivemind's order."""
    return [name for name, parameter in trainer.model.named_parameters() if parameter.requires_grad]
