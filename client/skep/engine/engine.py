"""The engine: one thread that receives messages, passes them to the session, and carries out the effects.

All decisions are made in `core.session`; the engine uses adapters only through ports. The result of an effect is posted
as a message and handled before the next one from outside.

::

    post() ──> inbox ──> step(snapshot, message, now) ──> effects ──> ports ──┐
                 ^                    │                                       │
                 └────────────────────┼──── what the ports post ──────────────┘
                                      └──> observers(message, snapshot)
"""

from __future__ import annotations

import logging
import queue
import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Final

from msgspec import structs

from skep import ports
from skep.core.errors import SkepError
from skep.core.policy.allowance import PauseState
from skep.core.policy.conditions import Conditions
from skep.core.project.data import Project
from skep.core.project.manifest import Manifest, VerifiedProject
from skep.core.record.contributions import Contribution, ContributionState
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session import step, timeline
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem, Remedy, Text
from skep.engine.sensing import Sensing, unread
from skep.engine.unwritten import Row, Unwritten

INBOX: Final = 1000
"""Maximum number of waiting messages. `post` then blocks, so that a worker that sends too many is slowed down."""
TICK_SECONDS: Final = 1.0
CALM_TICK_SECONDS: Final = 2.0
"""Seconds between ticks while idle or training: then only the end of a pause and the deadline of a sensor need them."""
_CALM: Final = (Phase.IDLE, Phase.TRAINING)
ENDED_BEFORE: Final = Text("engine.skep_ended_before_round")
RECORDED_AGAIN: Final = Problem(Text("engine.recorded_again"))
NOT_NEXT_TIME: Final = Text("engine.free_space_before_next_start")
OUR_OWN: Final = Problem(Text("app.skep_met_error_own_goes"), Text("app.log_has_details"), Remedy.REPORT.value)

log = logging.getLogger("skep.engine.engine")


class Engine:
    """Runs a session with adapters. Construct, `observe`, `start`, `post`, and after a Quit `join`."""

    def __init__(
        self,
        *,
        clock: ports.Clock,
        make_worker: Callable[[ports.Post], ports.Worker],
        open_ledger: Callable[[], ports.Ledger],
        shards: ports.Shards,
        settings: ports.SettingsStore,
        pauses: ports.Pauses,
        identity: Callable[[Manifest], ports.Identity],
        notify: Callable[[Problem], None] | None = None,
        listen_host: Callable[[e.StartWorker], str] = lambda _: "0.0.0.0",  # noqa: S104 - peers connect from anywhere
        invitations: ports.Invitations | None = None,
        revocations: ports.Revocations | None = None,
        sensors: Sequence[ports.Sensor] = (),
        graphical: bool = False,
        snapshots_folder: str = "",
        known_peers_folder: str = "",
        shards_folder: str = "",
    ) -> None:
        """`open_ledger`, `identity`, `notify` and `listen_host` are called in the engine's thread; only it uses the ledger.

        `listen_host` returns the address for a worker to listen at, before each start; it may raise SkepError.

        Without `invitations` only open projects can be joined, without `revocations` none is revoked. `graphical` says whether this computer has a graphical
        session. Workers keep their state in `snapshots_folder` and the addresses of peers in `known_peers_folder`, or nowhere
        if ""; they read the files that `shards` fetches in `shards_folder`. The sensors are read from `start` to the end.
        """
        self._clock, self._shards, self._settings, self._pauses = clock, shards, settings, pauses
        self._identity, self._notify, self._listen_host = identity, notify, listen_host
        self._open_ledger = open_ledger
        self._invitations, self._invitation, self._revocations = invitations, "", revocations
        self._snapshots_folder, self._known_peers_folder = snapshots_folder, known_peers_folder
        self._shards_folder = shards_folder
        self._sensing = Sensing(sensors, self.post, clock)
        self._unseen = Conditions(graphical=graphical).with_seen(unread(sensors))
        self._worker = make_worker(self.post)
        self._ledger: ports.Ledger
        self._inbox: queue.Queue[m.Message] = queue.Queue(maxsize=INBOX)
        self._follow_ups: deque[m.Message] = deque()
        self._observers: list[ports.Observer] = []
        self._unwritten = Unwritten()
        self._unrecorded: Problem | None = None
        self._snapshot = Snapshot()
        self._ticked = 0.0
        self._started: Future[None] = Future()
        self._ending = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    @property
    def snapshot(self) -> Snapshot:
        """The latest snapshot; may be read from any thread."""
        return self._snapshot

    def observe(self, observer: ports.Observer) -> None:
        """Call `observer` for every message from now on, after its effects, in the engine's thread."""
        self._observers.append(observer)

    def start(self) -> None:
        """Load settings, pause and ledger, then run. Raises SkepError when one of them cannot be loaded."""
        self._thread.start()
        self._started.result()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds. Returns whether the engine has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def post(self, message: m.Message) -> None:
        """Post a message, from any thread. Has no effect after the engine's end."""
        if threading.current_thread() is self._thread:
            self._follow_ups.append(message)  # waiting for room in the inbox would be a deadlock
            return
        while not self._ended.is_set():
            try:
                self._inbox.put(message, timeout=TICK_SECONDS)
            except queue.Full:
                continue
            return

    # --- the thread

    def _run(self) -> None:
        try:
            self._open()
        except BaseException as error:  # noqa: BLE001 - start() raises it in the caller's thread
            self._ended.set()
            self._started.set_exception(error)
            return
        self._started.set_result(None)
        try:
            self._sensing.start()
            while not self._ending:
                self._turn()
        finally:
            self._close()

    def _open(self) -> None:
        paused, until = self._pauses.load()
        pause = PauseState(until) if paused else None
        settings = self._settings.load()
        self._ledger = self._open_ledger()
        try:
            self._snapshot = step.initial(
                settings,
                pause,
                self._clock.wall(),
                zone=self._clock.zone(),
                conditions=self._unseen,
                reactions=self._ledger.reactions(timeline.KEPT),
            )
            self._lose_pending_of_last_run()
            self._close_the_timeline()
        except BaseException:
            self._ledger.close()
            raise
        self._ticked = self._clock.monotonic()

    def _lose_pending_of_last_run(self) -> None:
        # posted as well as written, so that observers learn the result of contributions that were pending
        for project_id in self._ledger.projects():
            for contribution in self._ledger.pending(project_id):
                lost = replace(contribution, state=ContributionState.LOST, reason=ENDED_BEFORE)
                self._perform(e.Record(project_id, lost))
                self._follow_ups.append(_lost(contribution, ENDED_BEFORE))

    def _close_the_timeline(self) -> None:
        now = self._clock.wall()
        last = next(iter(self._ledger.changes(now, now + 1.0)), None)
        if end := timeline.closing(last, self._ledger.alive(), now):
            self._perform(e.RecordChange(end))

    def _turn(self) -> None:
        wait = CALM_TICK_SECONDS if self._snapshot.phase in _CALM else TICK_SECONDS
        try:
            message = self._inbox.get(timeout=wait)
        except queue.Empty:
            self._tick()
            return
        self._handle(message)
        # also checked by the clock, so that a continuous stream of messages does not delay ticks
        if self._clock.monotonic() - self._ticked >= wait:
            self._tick()

    def _tick(self) -> None:
        self._ticked = self._clock.monotonic()
        self._sensing.check()
        self._catch_up()
        self._handle(m.Tick())

    def _handle(self, message: m.Message) -> None:
        self._follow_ups.append(message)
        while self._follow_ups:
            self._take(self._follow_ups.popleft())

    def _take(self, message: m.Message) -> None:
        try:
            self._snapshot, effects = step.step(self._snapshot, message, self._clock.wall(), self._clock.zone())
        except Exception:
            log.exception("no step for %s", type(message).__name__)
            self._report_own_error(message)
            return
        for effect in effects:
            self._perform(effect)
        if isinstance(message, m.WorkerExited) and self._revocations and self._snapshot.worker is None:
            self._revocations.rest()
        self._tell(message)

    def _tell(self, message: m.Message) -> None:
        for observer in self._observers:
            try:
                observer(message, self._snapshot)
            except Exception:
                log.exception("an observer failed at %s", type(message).__name__)
                self._report_own_error(message)

    def _report_own_error(self, message: m.Message) -> None:
        if not isinstance(message, m.ProblemArose):  # else a failing observer would cause an endless loop
            self.post(m.ProblemArose(OUR_OWN))

    def _close(self) -> None:
        self._ended.set()
        if self._revocations:
            self._revocations.close()
        # the worker before the ledger, which another program may hold
        closing = self._sensing.close, self._worker.close, self._shards.close, self._write_the_rest, self._ledger.close
        for close in closing:
            try:
                close()
            except Exception:
                log.exception("a part did not close")

    def _write_the_rest(self) -> None:
        self._unwritten.write_the_rest(self._ledger)
        if unwritten := len([*self._unwritten.settled()]):
            self._tell(m.ProblemArose(Problem(Text("engine.not_recorded", count=unwritten), NOT_NEXT_TIME)))

    # --- effects

    def _perform(self, effect: e.Effect) -> None:
        try:
            self._carry_out(effect)
        except SkepError as error:
            log.warning("%s: %s", type(effect).__name__, error)
            self._effect_failed(effect, error.problem)
        except Exception:
            log.exception("%s failed", type(effect).__name__)
            self._effect_failed(effect, OUR_OWN)

    def _carry_out(self, effect: e.Effect) -> None:  # noqa: C901 - one arm per effect, each a single call
        match effect:
            case e.FetchIndex(project=project):
                # if the project needs an invitation and there is none, nothing is started
                self._invitation = self._invitations.present(project) if self._invitations else ""
                self._shards.fetch_index(project, lambda message: self.post(_of(project, message)))
            case e.StartWorker():
                self._worker.start(self._completed(effect))
            case e.TellWorker(message=message):
                self._worker.tell(message)
            case e.StopWorker(reason=reason):
                self._worker.stop(reason)
            case e.EndStuckWorker():
                self._worker.end_stuck()
            case e.RenewWorker(first=first, now=now):
                log.info("the worker's processes grew from %s to %s: it starts again after this epoch", first, now)
                self._worker.tell(m.FinishTraining(at_edge=True))
            case e.SetAllowance(allowance=allowance, ceilings=ceilings):
                self._worker.tell(m.SetShare(allowance.share, allowance.present, allowance.memory, dict(ceilings)))
            case e.FetchShard(shard=shard, reach=reach):
                self._shards.fetch(shard, reach, self.post)
            case e.StopFetching():
                self._shards.stop()
            case e.LosePending():
                self._lose(effect)
            case _ if isinstance(effect, Row):
                self._unwritten.write(self._ledger, effect)
            case e.SaveSettings(values=values):
                self._settings.save(values)
            case e.SavePause(paused=paused, until=until):
                self._pauses.save(paused=paused, until=until)
            case e.Notify(problem=problem):
                if self._notify:
                    self._notify(problem)
            case e.EndEngine():
                self._ending = True

    def _effect_failed(self, effect: e.Effect, problem: Problem) -> None:
        """Post the message for a failed effect."""
        if isinstance(effect, Row):
            self._unrecorded = problem
        match effect:
            case e.FetchIndex(project=project):
                self.post(_of(project, m.IndexFailed(problem)))
            case e.StartWorker():
                self.post(m.WorkerFailed(problem, retry=True))
                self.post(m.WorkerExited(1))
            case e.FetchShard(shard=shard):
                self.post(m.ShardFailed(shard.sha256, problem))
            case e.Notify():
                pass  # another problem would hide the one that could not be shown
            case (
                e.TellWorker()
                | e.StopWorker()
                | e.EndStuckWorker()
                | e.RenewWorker()
                | e.SetAllowance()
                | e.StopFetching()
                | e.Record()
                | e.LosePending()
                | e.SavePosition()
                | e.SaveEvaluation()
                | e.SaveSettings()
                | e.SavePause()
                | e.RecordChange()
                | e.RecordReaction()
                | e.RecordUsage()
                | e.EndEngine()
            ):
                self.post(m.ProblemArose(problem))

    def _completed(self, wanted: e.StartWorker) -> m.WorkerOptions:
        """The worker's options except its run folder. Raises SkepError."""
        return structs.replace(
            wanted.options,
            identity_path=str(self._identity(wanted.project.manifest).path),
            snapshots_folder=self._snapshots_folder,
            known_peers_folder=self._known_peers_folder,
            shards_folder=self._shards_folder,
            invitation=self._invitation,
            listen_host=self._listen_host(wanted),
            position=self._ledger.position(wanted.project.id),
            revocations=self._listed(wanted.project),  # last: it goes on until the worker ends
        )

    def _listed(self, project: VerifiedProject) -> str:
        return self._revocations.watch(project.manifest, project.reach, self.post) if self._revocations else ""

    def _lose(self, effect: e.LosePending) -> None:
        pending = {each.id: each for each in self._snapshot.account.pending}
        try:
            pending |= {each.id: each for each in self._ledger.pending(effect.project_id)}
        finally:
            for settled in self._unwritten.settled():
                pending.pop(settled, None)
            for each in pending.values():
                self.post(_lost(each, effect.reason))

    def _catch_up(self) -> None:
        try:
            self._unwritten.catch_up(self._ledger)
        except SkepError as error:
            if error.problem != self._unrecorded:  # one is reported when it comes up
                self._unrecorded = error.problem
                self.post(m.ProblemArose(error.problem))
            return
        except Exception:
            log.exception("the ledger cannot catch up")
            return
        if self._unrecorded is not None:
            self.post(m.ProblemArose(RECORDED_AGAIN, over=self._unrecorded))
            self._unrecorded = None


def _of(project: Project, message: m.Message) -> m.Message:
    match message:
        case m.IndexArrived():
            return structs.replace(message, project=project)
        case m.IndexFailed():
            chance = random.random()  # noqa: S311 - spreads tries, protects nothing
            return structs.replace(message, project=project, chance=chance)
        case _:
            return message


def _lost(contribution: Contribution, reason: Text) -> m.ContributionLost:
    return m.ContributionLost(contribution.id, contribution.epoch, contribution.samples, reason)
