"""A script's part in a swarm: joining it, contributing batches to it, and leaving it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, Self, Unpack

import hivemind
import torch

from skep.adapters.storage.identity import FileIdentity
from skep.adapters.storage.paths import make_run_folder
from skep.core.errors import SwarmError
from skep.core.session.losses import LEFT
from skep.core.session.messages import ContributionConfirmed, ContributionLost, ContributionPending, WorkerNoticed
from skep.core.text import Problem, Text
from skep.training import processes
from skep.training.plan import Plan, check_place, peers_of, plan_of
from skep.training.synchronisation import SyncOptions
from skep.training.words import in_words, refused, say
from skep.worker import self_test
from skep.worker.connection import clocks, lookout, network, relays
from skep.worker.connection.clocks import ClockWatch
from skep.worker.connection.lookout import LinkWatch
from skep.worker.connection.versions import Versions
from skep.worker.connection.watch import Watch, parts_of
from skep.worker.swarm.global_rounds import GlobalRounds, take_part
from skep.worker.swarm.plausible import plausible_norm
from skep.worker.swarm.rounds import Rounds
from skep.worker.swarm.strategy import EpochProgress, Participant
from skep.worker.training.compute_group import total_norm
from skep.worker.training.pace import Throughput

GOODBYE_SECONDS: Final = 0.5
FAILURES: Final = 5
"""As many times in a row the swarm's state may not arrive before an error is raised."""
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - all interfaces: peers connect from other computers

Report = Callable[[str], object]


@dataclass(frozen=True)
class Place:
    """Implements network.Addressed."""

    run_folder: str
    identity_path: str
    listen_host: str
    port: int
    seeds: Sequence[str] = ()
    client_mode: str = "automatic"
    map_port: bool = False


def join(
    model: torch.nn.Module,
    *,
    batch_size: int,
    run_id: str = "",
    target_batch_size: int = 0,
    optimizer: Callable[[Any], torch.optim.Optimizer] | None = None,
    project: str | Path = "",
    initial_peers: str | Iterable[str] = (),
    parameters: Iterable[torch.nn.Parameter] | Iterable[dict[str, Any]] | None = None,
    scheduler: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler] | None = None,
    clip_norm: float | None = None,
    host: str = EVERYWHERE,
    port: int = 0,
    bandwidth: float = 1.0,
    report: Report = print,
    verbose: bool = True,
    **options: Unpack[SyncOptions],
) -> Swarm:
    """Join the swarm of `run_id`, or begin it where there are no `initial_peers`; returns when this peer can train.

    Every peer of a run needs the same `run_id`, model, `target_batch_size`, optimizer, schedule and `options`, and must
    begin with equal parameters: seed torch equally before the model is made. With a `project` (the path or address of a
    signed manifest, or a join link) all of these come from its manifest, and the model from `build_model`.

    `batch_size` samples are contributed at a time. `optimizer` makes the optimizer from what `parameters` are: a list
    of parameters, by default those of the model that require a gradient, or parameter groups. It has to step each
    parameter by itself, and to keep all that it learns in `state`: what it keeps elsewhere no newcomer receives.
    `scheduler` makes its schedule, stepped once per epoch. `clip_norm` bounds the norm of the averaged gradients.
    `initial_peers` are the addresses of any peers, in a list or separated by commas; without them, those of the
    environment's INITIAL_PEERS. This peer listens at the IPv4 address `host` and the TCP `port`, 0 for a free one. The
    less `bandwidth` (0 to 1), the less it averages for others, who have 1. `report` is called with each line for the
    person who started the script, one at each epoch with `verbose`.

    Call it on the main thread, and leave by a `with` statement or `leave`. Raises TrainingError.
    """
    with in_words():
        plan = plan_of(
            model,
            batch_size=batch_size,
            run_id=run_id,
            target_batch_size=target_batch_size,
            optimizer=optimizer,
            project=project,
            parameters=parameters,
            scheduler=scheduler,
            clip_norm=clip_norm,
            options=options,
        )
        check_place(host, port, bandwidth)
        peers = peers_of(initial_peers, os.environ)
        return Swarm(plan, peers, (host, port), bandwidth, report, verbose=verbose)


class Swarm:
    """This script's part in a swarm, made by `join`. Use it on the main thread.

    Samples are `confirmed` when another peer's data was averaged with theirs and the optimizer used the result, and
    `lost` otherwise; both are counts since joining. `addresses` are the multiaddresses, with the peer id, at which others
    reached this peer when it joined; none if it cannot be dialled.
    """

    confirmed = 0
    lost = 0
    peer_id: str
    addresses: tuple[str, ...]
    _present: ClassVar[Swarm | None] = None
    """The one that this process is in."""

    def __init__(
        self,
        plan: Plan,
        peers: Sequence[str],
        address: tuple[str, int],
        bandwidth: float,
        report: Report,
        *,
        verbose: bool,
    ) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise refused(Text("script.not_main_thread"), Text("script.join_on_main_thread"))
        if Swarm._present is not None:
            raise refused(Text("script.already_in_swarm"), Text("script.leave_first"))
        self._plan, self._report, self._verbose = plan, report, verbose
        self._rounds = Rounds(secrets.token_hex(4), self._hear)
        self._throughput, self._failures = Throughput(), 0
        self._broken: Problem | None = None
        self._notices = deque[WorkerNoticed]()
        self._process, self._left = os.getpid(), ExitStack()
        Swarm._present = self
        self._left.callback(self._forget)
        try:
            self._enter(peers, address, bandwidth)
        except BaseException:
            self._left.close()
            raise
        self._free_at = time.monotonic()

    def _forget(self) -> None:
        Swarm._present = None

    def _enter(self, peers: Sequence[str], address: tuple[str, int], bandwidth: float) -> None:
        plan = self._plan
        processes.prepare(_leave_present)
        self_test.run()
        folder = make_run_folder()
        self._left.callback(shutil.rmtree, folder, ignore_errors=True)
        self._left.enter_context(processes.ending_on_sigterm())
        place = Place(str(folder), str(FileIdentity(folder / "identity.key").path), *address)
        self._left.callback(processes.end)
        with processes.forking(folder):
            seeds = [*plan.seeds, *peers]
            self._dht: hivemind.DHT = network.reach(place, seeds) if seeds else network.begin(place)
            Versions(self._dht, plan.seeds).check()
            relayed = relays.is_relayed(self._dht)
            own = Participant(
                plan.run,
                self._dht,
                list(plan.parameters),
                plan.batch_size,
                self._rounds,
                self._rate,
                notice=lambda noticed: self._report(say(noticed.problem.title)),
                bandwidth=relays.UNDIALLED if relayed else bandwidth,
                groups=plan.groups,
            )
            self._sync: GlobalRounds = take_part(own)
            self._left.callback(self._say_goodbye)
        self._sync.ready(network.START_SECONDS)
        relay = [relays.part(self._dht)] if relayed else []
        watch = Watch([*parts_of(self._dht), *relay, *self._sync.parts()], self._alarm)
        watch.start()
        self._left.callback(watch.end)
        for look in (
            ClockWatch(clocks.asking(self._dht), self._notices.append),
            LinkWatch(lookout.connected(self._dht), self._notices.append),
        ):
            look.start()
            self._left.callback(look.end)
        if plan.run.sync.reuse_grad_buffers:
            self._left.enter_context(plan.keeping_gradients())
        if not self._sync.finished:
            self._sync.synchronise()
        self._epoch = self._sync.epoch
        self.peer_id = str(self._dht.peer_id)
        self.addresses = () if self._dht.client_mode else tuple(map(str, self._dht.get_visible_maddrs()))
        self._tell_how_to_join()

    def _tell_how_to_join(self) -> None:
        self._report(say(Text("script.joined", run_id=self._plan.run.run_id, peer_id=self.peer_id, epoch=self.epoch)))
        if self.addresses:
            self._report(say(Text("script.others_join", addresses=",".join(self.addresses))))

    # --- what the script reads

    @property
    def epoch(self) -> int:
        """The epoch of this peer's parameters: one optimizer step of the whole swarm each."""
        return self._sync.epoch

    @property
    def peers(self) -> int:
        """The other peers that train in the swarm, as last seen."""
        return int(self._sync.tracker.others)

    @property
    def progress(self) -> EpochProgress:
        """The samples that the swarm has accumulated for this epoch, and the number at which it ends."""
        return self._sync.progress

    @property
    def accumulated(self) -> int:
        """This peer's samples that wait for the round at the end of the epoch."""
        return self._sync.accumulated

    @property
    def finished(self) -> bool:
        """Whether the last epoch of a project has ended; the run of a script has no end."""
        return self._sync.finished

    # --- what the script calls

    def contribute(self, samples: int | None = None, *, scaled: bool = False) -> bool:
        """Count `samples` (by default `batch_size`), the gradient of whose mean loss was added to `.grad`.

        Then take part in what is due, as `tend`. Gradients that are not finite are dropped. Unless `reuse_grad_buffers`
        is set, `.grad` is zero afterwards. Fewer samples than `batch_size` are weighted accordingly; `scaled` says that
        the loss was multiplied by samples / batch_size already, which `reuse_grad_buffers` needs then.

        Returns whether the epoch changed. Raises TrainingError.
        """
        with in_words():
            self._check()
            count = self._plan.batch_size if samples is None else samples
            self._weigh(count, scaled=scaled)
            spent = time.monotonic() - self._free_at
            self._throughput.turn(count, spent, spent)
            if plausible_norm(self._norm()):
                self._rounds.grow(self.epoch, count)
                self._sync.contribute(count)
            elif self._plan.run.sync.reuse_grad_buffers:
                self._rounds.grow(self.epoch, count)
                self._sync.discard(Text("training.gradients_unusable"))
            else:
                self._drop_batch(count)
            return self._tend()

    def tend(self) -> bool:
        """Take part in a round that is due, load the swarm's state if this peer has fallen behind.

        Call it where nothing is contributed for seconds, such as between the batches of an evaluation. Blocks for as long
        as a round or a state download takes. Returns whether the epoch changed. Raises TrainingError, also if `.grad` holds
        a batch that was not contributed, which a round would drop; with `reuse_grad_buffers` that cannot be seen.
        """
        with in_words():
            self._check()
            if not self._plan.run.sync.reuse_grad_buffers and self._norm() != 0.0:
                raise refused(Text("script.gradients_wait"), Text("script.contribute_first"))
            return self._tend()

    def leave(self) -> None:
        """Leave the swarm within 2 s: what is not averaged yet is lost, and no process of the swarm remains.

        In a fork of the script, which is not in the swarm, nothing happens.
        """
        if os.getpid() == self._process:
            self._left.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    # --- the parts

    def _check(self) -> None:
        if Swarm._present is not self:
            raise refused(Text("script.has_left"), Text("script.join_again"))
        if self._broken is not None:
            raise SwarmError(self._broken.title, Text("script.start_again"))

    def _norm(self) -> float:
        """Of the gradients in `.grad`."""
        return float(total_norm(p.grad for p in self._plan.parameters if p.grad is not None))

    def _drop_batch(self, samples: int) -> None:
        """Drop the gradients in `.grad`, which are those of one batch; the others have been accumulated elsewhere."""
        self.lost += samples
        for parameter in self._plan.parameters:
            if parameter.grad is not None:
                parameter.grad.zero_()

    def _weigh(self, samples: int, *, scaled: bool) -> None:
        whole, reused = self._plan.batch_size, self._plan.run.sync.reuse_grad_buffers
        if not 0 < samples <= whole:
            raise refused(
                Text("script.samples_out_of_range", samples=samples, most=whole), Text("script.give_batch_size")
            )
        if samples == whole or scaled:
            return
        if reused:
            raise refused(Text("script.partial_batch", samples=samples, whole=whole), Text("script.scale_loss"))
        for parameter in self._plan.parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(samples / whole)

    def _tend(self) -> bool:
        try:
            # a state that is loaded in a script's inference mode could not be trained further
            with torch.inference_mode(mode=False):
                self._sync.tend(_nothing)
            self._failures = 0
        except SwarmError as error:
            self._failures += 1
            if self._failures >= FAILURES:
                raise
            self._report(say(error.title))
        if self._sync.finished and self._rounds.grown:
            self._sync.discard(Text("round.run_is_finished"))
        while self._notices:  # of another thread
            self._report(say(self._notices.popleft().problem.title))
        self._free_at = time.monotonic()
        moved_on, self._epoch = self.epoch != self._epoch, self.epoch
        if moved_on and self._verbose:
            counts = {"confirmed": self.confirmed, "lost": self.lost}
            self._report(say(Text("script.epoch", epoch=self.epoch, peers=self.peers, **counts)))
        return moved_on

    def _rate(self) -> float | None:
        return self._throughput.rate(1.0)

    def _hear(self, message: ContributionPending | ContributionConfirmed | ContributionLost) -> None:
        match message:
            case ContributionConfirmed(samples=samples):
                self.confirmed += samples
            case ContributionLost(samples=samples):
                self.lost += samples
            case ContributionPending():
                pass

    def _alarm(self, problem: Problem) -> None:
        self._broken = problem

    def _say_goodbye(self) -> None:
        with contextlib.suppress(Exception):  # whatever is broken, it is left
            self._sync.apply_arrived()  # a delayed step or average that is there, and that the model has not yet
        self._rounds.end(LEFT)
        processes.end_trackers()  # before the farewell, whose answer comes after theirs
        self._sync.farewell(GOODBYE_SECONDS)
        self._sync.state_averager.step_executor.shutdown(wait=False, cancel_futures=True)


def is_in_swarm() -> bool:
    """Whether this process has joined one that it has not left."""
    return Swarm._present is not None  # noqa: SLF001 - this module's own class


def _nothing() -> None:
    """No samples are computed that are not contributed."""


def _leave_present() -> None:
    if Swarm._present is not None:  # noqa: SLF001 - this module's own class
        Swarm._present.leave()  # noqa: SLF001 - as above
