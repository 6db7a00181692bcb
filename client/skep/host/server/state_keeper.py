"""The state keeper: loads a run's state from the swarm every few epochs, saves it, and sends it to newcomers.

It is a peer that contributes no gradients and enters no round: it has no gradient averager, never searches for a group,
and publishes only the progress described at `SwarmRecords`. As a donor it has a lower priority than every trainer of
its epoch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import hivemind
import torch
from hivemind.dht.crypto import RSASignatureValidator
from hivemind.dht.schema import SchemaValidator
from hivemind.optim.progress_tracker import LocalTrainingProgress, TrainingProgressSchema
from hivemind.optim.state_averager import dump_optimizer_state
from hivemind.p2p import PeerID
from hivemind.utils import ValueWithExpiration, get_dht_time
from pydantic.v1 import ValidationError

from skep.core.errors import SkepError, StorageError, SwarmError
from skep.core.project.manifest import Manifest
from skep.core.text import NOTHING, Text
from skep.host.server.peer_process import problem_event
from skep.recipes.contract import NO_FILES, Files
from skep.recipes.registry import open_recipe
from skep.worker.connection.attendance import ANSWER_SECONDS as PRESENCE_SECONDS
from skep.worker.connection.attendance import Attendance, asking
from skep.worker.connection.auth import Membership
from skep.worker.connection.stored import LONGEST_ID
from skep.worker.connection.watch import Part, part_of
from skep.worker.swarm.averaging.averagers import (
    CheckedStateAverager,
    request_timeout,
    state_prefix,
)
from skep.worker.swarm.averaging.codecs import loading_codec
from skep.worker.swarm.claims import reached_by_most, votes
from skep.worker.swarm.experience import Experience
from skep.worker.swarm.optimizers import optimizer_factory, scheduler
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.state.checkpoints import Checkpoint, CheckpointFolder, read
from skep.worker.swarm.state.coming import Loading

PAUSE_SECONDS: Final = 20.0
"""From the end of a download to the next, so that an unusable state is not fetched continuously from the donors."""
BEHIND_TRAINERS: Final = 0.5
"""Our priority as a donor is the epoch less this: trainers, whose priority is their epoch, are asked first."""
JUMP: Final = 10
"""Times the usual epochs between two checkpoints: an epoch so much later may be a false one."""
LOOK_SECONDS: Final = 10.0
"""Between two looks at the swarm's progress during a download, which may wait for busy donors for many epochs."""
BEACON_SECONDS: Final = 10.0
"""Lifetime of our record after it was published last."""
ANSWER_SECONDS: Final = 10.0

Tell = Callable[[dict[str, Any]], None]


class StateKeeper:
    """One run's state in memory and in files. Create it on the main thread, because hivemind sets signal handlers.

    The state is loaded every `every` epochs. `tell` is called with the events of `skep host`.
    """

    def __init__(
        self,
        manifest: Manifest,
        text: str,
        dht: hivemind.DHT,
        folder: CheckpointFolder,
        *,
        every: int,
        tell: Tell,
        membership: Membership | None = None,
        files: Files = NO_FILES,
    ) -> None:
        self._manifest, self._text, self._folder, self._every, self._tell = manifest, text, folder, every, tell
        model = open_recipe(manifest.recipe, files).build()
        named = [(name, tensor) for name, tensor in model.named_parameters() if tensor.requires_grad]
        self._names = [name for name, _ in named]
        self.parameters = [tensor for _, tensor in named]
        self._averager = _averager(manifest, dht, self.parameters, membership)
        self._total_epochs = manifest.schedule.total_epochs
        self._records = SwarmRecords(dht, manifest.run_id, self._total_epochs, Attendance(asking(dht)))
        self._experience = Experience()
        self._kept = 0
        """The epoch of the state offered to newcomers; 0 while there is none."""
        self._seen: Swarm | None = None
        self._not_before = self._looked_at = 0.0
        self._last_problem = NOTHING

    def parts(self) -> Iterator[Part]:
        """Processes of its own, which are to be watched; besides the DHT's."""
        yield part_of(self._averager, Text("watch.state"))

    def restore(self) -> None:
        """Load the newest readable checkpoint; each unreadable one is reported as a problem."""
        for path in self._folder.paths():
            try:
                since = self._folder.written_at(path)
                self._take_up(read(path))
            except SkepError as error:
                self._report_problem(error)
            else:
                self._experience.had_reached(self._kept, since)
                self._tell({"event": "restored", "epoch": self._kept, "path": str(path)})
                self._report_end(path)
                return

    def tend(self) -> None:
        """Check the swarm's progress, and load or publish as needed. Blocks for as long as a state download takes."""
        try:
            swarm = self._look()
            self._report(swarm)
            if self._is_due(swarm):
                self._load(swarm)
            self._publish_epoch(swarm)
        except SkepError as error:
            self._report_problem(error)
        except FutureTimeout:
            self._report_problem(
                SwarmError(
                    Text("state_keeper.seed_network_process_does_not"), Text("state_keeper.skep_host_tries_again")
                )
            )

    def _is_due(self, swarm: Swarm) -> bool:
        wanted = min(self._kept + (self._every if self._kept else 1), self._total_epochs)
        return self._kept < wanted <= swarm.epoch and time.monotonic() >= self._not_before

    def _publish_epoch(self, swarm: Swarm) -> None:
        """Publish our epoch to newcomers while there is no trainer, and only then."""
        # a trainer may be one epoch behind the state that another has just sent
        carried = swarm.peers > 0 and swarm.claimed >= self._kept - 1
        if self._kept and not carried:
            self._records.publish(self._kept)
        else:
            self._records.withdraw()

    def _load(self, swarm: Swarm) -> None:
        """Load the newest state from the swarm, save it, offer it to newcomers. Raises SkepError."""
        asked_at, self._looked_at = get_dht_time(), time.monotonic()
        try:
            epoch = self._averager.load_checked(swarm.epoch, self._follow)
        finally:
            self._not_before = time.monotonic() + PAUSE_SECONDS
        if epoch is None:
            raise SwarmError(
                Text("state_keeper.no_peer_swarm_hands_over"),
                Text("state_keeper.skep_host_tries_again"),
            )
        if epoch <= self._kept:
            return  # the donor's step is delayed: its state was no newer one yet
        self._experience.loaded(epoch, asked_at)
        path = self._folder.write(self._checkpoint(epoch))
        self._offer(epoch)
        self._last_problem = NOTHING
        self._tell({"event": "checkpoint", "epoch": epoch, "path": str(path)})
        self._report_end(path)

    def _follow(self, _loading: Loading) -> None:
        """Tell the download how far the swarm has come meanwhile, beyond which no state is taken."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        with contextlib.suppress(FutureTimeout):  # a later look may be answered
            self._averager.loading.known = self._look().epoch
        self._looked_at = time.monotonic()

    def _look(self) -> Swarm:
        """Raises concurrent.futures' TimeoutError."""
        return self._records.look(self._kept, self._experience.possible(get_dht_time()))

    def _checkpoint(self, epoch: int) -> Checkpoint:
        parameters = [tensor for group in self._averager.optimizer.param_groups for tensor in group["params"]]
        _, optimizer = dump_optimizer_state(self._averager.optimizer)
        named = dict(zip(self._names, parameters, strict=True))
        return Checkpoint(self._manifest.run_id, epoch, self._text, named, optimizer)

    def _take_up(self, checkpoint: Checkpoint) -> None:
        unfit = StorageError(
            Text("state_keeper.checkpoint_epoch_does_not_fit", epoch=checkpoint.epoch),
            Text("state_keeper.another_run_keep_elsewhere"),
        )
        if checkpoint.run_id != self._manifest.run_id or set(checkpoint.parameters) != set(self._names):
            raise unfit
        tensors = [checkpoint.parameters[name] for name in self._names]
        try:
            self._averager.adopt(checkpoint.epoch, [*tensors, *checkpoint.optimizer])
        except SwarmError:
            raise unfit from None
        self._offer(checkpoint.epoch)

    def _offer(self, epoch: int) -> None:
        self._kept = epoch
        self._averager.state_sharing_priority = epoch - BEHIND_TRAINERS
        self._averager.allow_state_sharing = True

    def _report_end(self, path: Path) -> None:
        if self._kept >= self._total_epochs:
            self._tell({"event": "finished", "epoch": self._kept, "path": str(path)})

    def _report(self, swarm: Swarm) -> None:
        if swarm != self._seen:
            self._seen = swarm
            self._tell({"event": "swarm", "peers": swarm.peers, "epoch": swarm.epoch, "kept_epoch": self._kept})

    def _report_problem(self, error: SkepError) -> None:
        """Report a problem, unless it is the same as the last."""
        if error.title != self._last_problem:
            self._last_problem = error.title
            self._tell(problem_event(error.title, error.hint))


@dataclass(frozen=True)
class Swarm:
    """`peers` train now, as far as they answer, and have reached `epoch`, as `believed`."""

    peers: int = 0
    epoch: int = 0
    claimed: int = field(default=0, compare=False)
    """The latest epoch that any of them claims, believed or not."""


def believed(votes: Sequence[tuple[int, float]], kept: int, possible: float) -> int:
    """The epoch that more than half of the peers beyond the epoch `kept`, and not beyond the `possible` one, have reached.

    `votes` are their epochs and weights. If no peer is there, the highest epoch up to `kept`; 0 without peers. A peer can
    publish any epoch. If the highest were used, one false record would end all checkpoints, because those of the real run
    would count as older; and half of the peers may all be one.
    """
    true = [(epoch, weight) for epoch, weight in votes if epoch <= possible]
    beyond = reached_by_most([(epoch, weight) for epoch, weight in true if epoch > kept])
    return beyond or max((epoch for epoch, _ in true), default=0)


class SwarmRecords:
    """A swarm's progress records in the DHT: those of its trainers are read, and one of our own is written.

    Each trainer publishes its epoch, samples and rate under its run's progress key; hivemind computes the swarm's epoch
    from them. A record of ours would count as a peer, so that a lone trainer would wait for a round without partners:
    it is published only while there is no trainer, with no samples and no rate, and tells newcomers which epoch to
    load. Peers that do not answer, whose records anybody may have written, do not count. Calls block for at most
    ANSWER_SECONDS, and as many as peers have for an answer; one thread only.
    """

    def __init__(self, dht: hivemind.DHT, run_id: str, last_epoch: int, attendance: Attendance) -> None:
        self._dht, self._key, self._last_epoch, self._attendance = dht, f"{run_id}_progress", last_epoch, attendance
        signer = RSASignatureValidator()
        self._own: bytes = signer.local_public_key
        dht.add_validators([SchemaValidator(TrainingProgressSchema, prefix=run_id), signer])
        self._published = False

    def look(self, kept: int, possible: float) -> Swarm:
        """The trainers' records, without our own; a state of the epoch `kept` is there, and none beyond `possible`.

        Raises concurrent.futures' TimeoutError.
        """
        found = self._dht.get(self._key, latest=True, return_future=True).result(ANSWER_SECONDS)
        records = found.value if isinstance(found, ValueWithExpiration) and isinstance(found.value, dict) else {}
        trainers = [record for key, entry in records.items() if key != self._own and (record := _record(entry.value))]
        told = [(str(PeerID(each.peer_id)), min(each.epoch, self._last_epoch)) for each in trainers]
        there = self._there({peer for peer, _ in told})
        voting = votes(told, there)
        return Swarm(
            sum(part == 1.0 for part in there.values()),
            believed(voting, kept, possible),
            claimed=max((epoch for epoch, _ in voting), default=0),
        )

    def _there(self, peers: Collection[str]) -> Mapping[str, float]:
        """How far each counts; waits for the answers of those that have not been asked yet."""
        self._attendance.of(peers)
        self._attendance.wait(2 * PRESENCE_SECONDS)
        return self._attendance.of(peers)

    def publish(self, epoch: int) -> None:
        """Publish `epoch` as the run's epoch for the next BEACON_SECONDS."""
        standing = LocalTrainingProgress(
            peer_id=self._dht.peer_id.to_bytes(),
            epoch=epoch,
            samples_accumulated=0,
            samples_per_second=0.0,
            time=get_dht_time(),
            client_mode=False,
        )
        self._store(standing.dict())
        self._published = True

    def withdraw(self) -> None:
        """Withdraw our record, if there is one."""
        if self._published:
            self._store(None)
            self._published = False

    def _store(self, value: dict[str, Any] | None) -> None:
        self._dht.store(
            self._key,
            subkey=self._own,
            value=value,
            expiration_time=get_dht_time() + BEACON_SECONDS,
            return_future=True,
        ).result(ANSWER_SECONDS)


def _record(value: Any) -> LocalTrainingProgress | None:
    """None for a withdrawn or invalid record."""
    try:
        record = None if value is None else LocalTrainingProgress.parse_obj(value)
    except ValidationError:
        return None
    return record if record and len(record.peer_id) <= LONGEST_ID else None


def _averager(
    manifest: Manifest, dht: hivemind.DHT, parameters: list[torch.nn.Parameter], membership: Membership | None
) -> CheckedStateAverager:
    """A state averager of the run with the same tensors as every trainer's, which never requests a round."""
    sync = manifest.sync
    silent = Rounds("keeper", lambda _: None)
    return CheckedStateAverager(
        dht=dht,
        prefix=state_prefix(manifest.run_id),
        params=parameters,
        optimizer=optimizer_factory(manifest.optimizer, silent),
        scheduler=partial(scheduler, schedule=manifest.schedule),
        reuse_tensors=True,
        state_compression=loading_codec(sync.load_compression, sync.size_adaptive_threshold),
        min_matchmaking_time=sync.matchmaking_seconds,
        request_timeout=request_timeout(sync.matchmaking_seconds),
        next_chunk_timeout=sync.silence_seconds,
        allow_state_sharing=False,
        membership=membership,
        start=True,
    )
