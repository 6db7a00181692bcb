"""The round helper: an auxiliary averager of gradients, for a run in which no trainer can be dialled.

Such trainers are clients, which make connections and accept none, so that nobody averages their parts. The helper does,
adds nothing to the average, and publishes no progress, so that it counts as no peer. It stays out of rounds in which a
trainer can be dialled: hivemind would have it send zeros there.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final

import hivemind
import torch
from hivemind.averaging.control import StepControl
from hivemind.p2p import PeerID
from hivemind.utils import ValueWithExpiration, get_dht_time

from skep.core.project.manifest import Manifest
from skep.core.text import Text
from skep.worker.connection.auth import Membership
from skep.worker.connection.stored import LONGEST_ID
from skep.worker.connection.watch import Part, part_of
from skep.worker.swarm.averaging.averagers import request_timeout
from skep.worker.swarm.averaging.codecs import round_codec
from skep.worker.swarm.averaging.low_rank import gradient_averager
from skep.worker.swarm.claims import reached_by_most, votes
from skep.worker.swarm.tracker import LiveProgressTracker

LOOK_SECONDS: Final = 0.5
ANSWER_SECONDS: Final = 10.0


class Onlooker(LiveProgressTracker):
    """Reads the trainers' progress and publishes none. Its thread is not started."""

    trains = False

    def see(self) -> bool:
        """Read the trainers' records; whether there are several, and all of clients. Raises TimeoutError."""
        found = self.dht.get(self.training_progress_key, latest=True, return_future=True).result(ANSWER_SECONDS)
        records = found.value if isinstance(found, ValueWithExpiration) and isinstance(found.value, dict) else {}
        # hivemind takes the swarm's epoch from peers that are no clients
        trainers = [each.value for each in records.values() if each.value and len(each.value["peer_id"]) <= LONGEST_ID]
        told = [(str(PeerID(each["peer_id"])), each["epoch"]) for each in trainers]
        self.stand_at(reached_by_most(votes(told, self._there({peer for peer, _ in told}))))
        self.global_progress = swarm = self._parse_swarm_progress_data(records)
        return bool(swarm.num_peers == swarm.num_clients > 1)


class RoundHelper:
    """Helps in the rounds of one run. Create it on the main thread, because hivemind sets signal handlers."""

    def __init__(
        self,
        manifest: Manifest,
        dht: hivemind.DHT,
        parameters: Sequence[torch.nn.Parameter],
        membership: Membership | None = None,
    ) -> None:
        sync = manifest.sync
        self._ahead, self._timeout = sync.matchmaking_seconds, sync.averaging_timeout_seconds
        self._swarm = Onlooker(dht=dht, prefix=manifest.run_id, target_batch_size=sync.target_batch_size, start=False)
        options = {"request_timeout": request_timeout(sync.matchmaking_seconds), "membership": membership}
        self._averager = gradient_averager(sync, options)(
            parameters=parameters,
            dht=dht,
            prefix=f"{manifest.run_id}_grad_averager",
            reuse_grad_buffers=True,
            compression=round_codec(sync.grad_compression, sync.size_adaptive_threshold),
            min_matchmaking_time=sync.matchmaking_seconds,
            allreduce_timeout=sync.averaging_timeout_seconds,
            next_chunk_timeout=sync.silence_seconds,
            auxiliary=True,
            start=True,
        )
        self._round: StepControl | None = None
        self._epoch = -1
        """The last one in whose round this helps."""

    def parts(self) -> Iterator[Part]:
        """Processes of its own, which are to be watched; besides the DHT's."""
        yield part_of(self._averager, Text("watch.gradients"))

    def run(self) -> None:
        """Help, for ever."""
        while True:
            with contextlib.suppress(FutureTimeout):  # the DHT's process is slow; its next answer may come in time
                self.tend()
            time.sleep(LOOK_SECONDS)

    def tend(self) -> None:
        """Look for the group of a round that is due soon, and begin with it when the trainers do. Raises TimeoutError."""
        wanted, swarm = self._swarm.see(), self._swarm
        if self._round is not None and not self._round.triggered and not self._round.done():
            if swarm.global_epoch > self._epoch or swarm.ready_to_update_epoch:
                self._round.allow_allreduce()
        elif wanted and swarm.global_epoch > self._epoch and self._is_near(swarm.estimated_next_update_time):
            self._epoch = swarm.global_epoch
            self._round = self._averager.schedule_step(timeout=self._timeout)

    def _is_near(self, due: float) -> bool:
        return bool(due - get_dht_time() <= self._ahead)
