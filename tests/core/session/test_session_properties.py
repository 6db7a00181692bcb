"""Invariants of the session for any messages in any order.

The state machine below simulates the engine: it carries out effects on a small model of worker and ledger, and posts
the messages of the real engine. Workers send any message at any time; only their exit comes exactly once.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fakes import make_index, make_joined, make_progress, make_project
from skep.core.policy.allowance import PauseState
from skep.core.policy.conditions import Condition, answered
from skep.core.policy.growth import MEASUREMENTS, Use
from skep.core.record.contributions import Contribution, ContributionState, Evaluation, Tally
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.phases import Phase, Stage
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import initial, step
from skep.core.session.transitions import MOST_FAILURES
from skep.core.text import Problem, verbatim

PROJECTS = [make_project("one"), make_project("two")]
INDEX = make_index()
SHARDS = ["f" * 64, INDEX.shards[0].sha256, "0" * 64]
SHARES = [0.05, 0.5, 1.0]
PROBLEM = Problem(verbatim("Something went wrong."))
STATES = list(ContributionState)


class Shell(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.running = False
        self.stopped = False
        """Whether the running worker was told to stop, however often."""
        self.ended = False
        self.worker_share = 0.0
        self.stay = 0
        self.fetching: list[e.FetchIndex] = []
        self.ledger: dict[str, tuple[str, Contribution]] = {}
        self.snapshot = Snapshot()

    @initialize(paused=st.booleans(), share=st.sampled_from(SHARES))
    def begin(self, *, paused: bool, share: float) -> None:
        pause = PauseState(None) if paused else None
        self.snapshot = initial({"compute.share_away": share}, pause, self.now)

    # --- the engine

    def give(self, message: m.Message) -> None:
        if self.ended:
            return
        before = self.snapshot.phase
        self.snapshot, effects = step(self.snapshot, message, self.now)
        if isinstance(message, m.Join) and before is Phase.IDLE and self.snapshot.phase is Phase.JOINING:
            self.stay += 1
        follow_ups: list[m.Message] = []
        for effect in effects:
            follow_ups.extend(self.carry_out(effect))
        for follow_up in follow_ups:
            self.give(follow_up)
        self.ended = self.ended or e.EndEngine() in effects

    def carry_out(self, effect: e.Effect) -> list[m.Message]:
        match effect:
            case e.StartWorker(options=m.WorkerOptions(share=share)):
                assert not self.running, "two workers at a time"
                self.running, self.worker_share, self.stopped = True, share, False
            case e.SetAllowance(allowance=allowance):
                self.worker_share = allowance.share
            case e.FetchIndex():
                self.fetching.append(effect)
            case e.TellWorker(message=message):
                assert self.running, "nobody to tell"
                assert not isinstance(message, m.FinishTraining) or not self.stopped, "told to finish after its stop"
            case e.RenewWorker():
                assert self.running, "nobody to renew"
                assert not self.stopped, "renewed after its stop"
            case e.StopWorker() | e.EndStuckWorker():
                assert self.running, "nobody to stop"
                self.stopped = True
            case e.Record(project_id=project_id, contribution=contribution):
                self.record(project_id, contribution)
            case e.LosePending(project_id=project_id, reason=reason):
                return self.lose(project_id, reason)
            case e.EndEngine():
                assert not self.running, "the engine ended before its worker"
            case _:
                pass
        return []

    def record(self, project_id: str, contribution: Contribution) -> None:
        before = self.ledger.get(contribution.id)
        assert before is None or before[1].state is ContributionState.PENDING, "a settled contribution changed"
        assert before is None or before[0] == project_id
        self.ledger[contribution.id] = (project_id, contribution)

    def lose(self, project_id: str, reason: str) -> list[m.Message]:
        return [
            m.ContributionLost(row.id, row.epoch, row.samples, reason)
            for project, row in self.ledger.values()
            if project == project_id and row.state is ContributionState.PENDING
        ]

    # --- the user

    @rule(project=st.sampled_from(PROJECTS), resumed=st.booleans())
    def join(self, project, *, resumed: bool) -> None:
        self.give(m.Join(project, resumed=resumed))

    @precondition(lambda self: self.snapshot.phase is Phase.IDLE)
    @rule(project=st.sampled_from(PROJECTS))
    def join_at_once(self, project) -> None:
        self.give(m.Join(project))
        self.give(m.IndexArrived(INDEX, project))
        self.give(make_joined(1))

    @rule(now=st.booleans())
    def leave(self, *, now: bool) -> None:
        self.give(m.Leave(now=now))

    @rule(seconds=st.none() | st.sampled_from([-1.0, 0.0, 5.0, 100.0, float("nan")]))
    def pause(self, seconds: float | None) -> None:
        self.give(m.Pause(None if seconds is None else self.now + seconds))

    @rule()
    def resume(self) -> None:
        self.give(m.Resume())

    @rule(share=st.sampled_from(SHARES))
    def change_share(self, share: float) -> None:
        self.give(m.ChangeSettings({"compute.share_away": share}))

    @precondition(lambda self: self.stay > 1)
    @rule()
    def quit(self) -> None:
        self.give(m.Quit())

    # --- environment

    @rule(seconds=st.sampled_from([0.0, 0.25, 3.0, 70.0, 400.0, -30.0]))
    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.give(m.Tick())
        until, longest = self.snapshot.leaving_until, self.snapshot.last_round_seconds
        assert until is None or self.now < until <= self.now + longest, "a wait longer than it was said"

    @rule(condition=st.sampled_from([Condition.METERED, Condition.BATTERY]), holds=st.booleans())
    def conditions(self, condition: Condition, *, holds: bool) -> None:
        self.give(m.ConditionsSeen({condition: answered(holds)}))

    @rule(arrives=st.booleans(), which=st.integers(0, 5))
    def index(self, *, arrives: bool, which: int) -> None:
        if self.fetching:
            project = self.fetching[which % len(self.fetching)].project
            self.give(m.IndexArrived(INDEX, project) if arrives else m.IndexFailed(PROBLEM, project))

    @rule()
    def trouble(self) -> None:
        self.give(m.ProblemArose(PROBLEM))

    # --- the worker, also when there is none

    @rule(epoch=st.integers(0, 5))
    def joined(self, epoch: int) -> None:
        self.give(make_joined(epoch))

    @rule(which=st.integers(0, 4), samples=st.integers(0, 50), epoch=st.integers(0, 9), position=st.integers(0, 99))
    def progress(self, which: int, samples: int, epoch: int, position: int) -> None:
        self.give(m.WorkerProgress(make_progress(epoch), f"{self.stay}-{which}" if which else "", samples, position))

    @rule(which=st.integers(1, 4), samples=st.integers(1, 50), state=st.sampled_from(STATES))
    def contribution(self, which: int, samples: int, state: ContributionState) -> None:
        id_ = f"{self.stay}-{which}"
        match state:
            case ContributionState.PENDING:
                self.give(m.ContributionPending(id_, 1, samples))
            case ContributionState.CONFIRMED:
                self.give(m.ContributionConfirmed(id_, 1, samples, 2))
            case ContributionState.LOST:
                self.give(m.ContributionLost(id_, 1, samples, verbatim("no other peer")))

    @rule(sha256=st.sampled_from(SHARDS), kind=st.sampled_from(["wanted", "arrived", "failed", "progress"]))
    def shard(self, sha256: str, kind: str) -> None:
        answers: dict[str, m.Message] = {
            "wanted": m.ShardWanted(sha256),
            "arrived": m.ShardArrived(sha256, "/shards/x"),
            "failed": m.ShardFailed(sha256, PROBLEM),
            "progress": m.ShardProgress(sha256, 1, 2),
        }
        self.give(answers[kind])

    @rule(which=st.integers(0, 2))
    def chatter(self, which: int) -> None:
        said = (m.WorkerStage(Stage.STATE, 0.5), m.WorkerEvaluated(Evaluation(1, 2.0)), m.WorkerPaused(0.0, 0.1))
        self.give(said[which])

    @rule(memory=st.sampled_from([10**9, 10**10]))
    def measured(self, memory: int) -> None:
        for _ in range(MEASUREMENTS):
            self.give(m.WorkerMeasured(Use(memory, 100)))

    @rule(retry=st.booleans())
    def failed(self, *, retry: bool) -> None:
        self.give(m.WorkerFailed(PROBLEM, retry=retry))

    @rule(seconds=st.sampled_from([-1.0, 0.0, 50.0, 1e9]))
    def saving(self, seconds: float) -> None:
        self.give(m.WorkerSaving(seconds))

    @rule()
    def finished(self) -> None:
        self.give(m.WorkerFinished())

    @precondition(lambda self: self.running)
    @rule(code=st.sampled_from([0, 1, -9]))
    def exited(self, code: int) -> None:
        self.running = False
        self.give(m.WorkerExited(code))

    # --- invariants

    @invariant()
    def a_pause_means_no_computing(self) -> None:
        if self.snapshot.pause:
            assert self.snapshot.allowance.share == 0.0

    @invariant()
    def the_worker_runs_at_the_share_that_is_shown(self) -> None:
        if self.running:
            assert self.worker_share == self.snapshot.allowance.share

    @invariant()
    def the_phase_agrees_with_the_share(self) -> None:
        worker = self.snapshot.worker
        if self.snapshot.phase in (Phase.TRAINING, Phase.PAUSED):
            away = worker is None or worker.departing
            assert (self.snapshot.phase is Phase.PAUSED) == (self.snapshot.allowance.share == 0.0 or away)

    @invariant()
    def without_a_network_the_worker_goes_and_none_comes(self) -> None:
        worker = self.snapshot.worker
        if not self.snapshot.allowance.network and worker is not None and self.snapshot.phase is not Phase.LEAVING:
            assert worker.departing or worker.failed
        if self.snapshot.phase is Phase.PAUSED and worker is None:
            waits = self.snapshot.restart_at is not None
            assert waits or not self.snapshot.allowance.network, "nothing keeps a worker from starting"

    @invariant()
    def the_snapshot_knows_whether_a_worker_runs(self) -> None:
        assert (self.snapshot.worker is not None) == self.running
        with_worker = (Phase.TRAINING, Phase.LEAVING)
        without = (Phase.IDLE, Phase.RECOVERING)
        assert self.running or self.snapshot.phase not in with_worker
        assert not self.running or self.snapshot.phase not in without

    @invariant()
    def a_project_is_known_exactly_while_not_idle(self) -> None:
        assert (self.snapshot.project is None) == (self.snapshot.phase is Phase.IDLE)

    @invariant()
    def nothing_stays_pending_without_a_worker(self) -> None:
        if not self.running:
            assert all(row.state is not ContributionState.PENDING for _, row in self.ledger.values())

    @invariant()
    def the_totals_agree_with_the_ledger(self) -> None:
        rows = [row for _, row in self.ledger.values() if row.id.startswith(f"{self.stay}-")]
        for state in ContributionState:
            samples = [row.samples for row in rows if row.state is state]
            assert getattr(self.snapshot.totals, state.value) == Tally(len(samples), sum(samples))

    @invariant()
    def quitting_ends_with_the_worker(self) -> None:
        assert self.ended == (self.snapshot.quitting and not self.running)

    @invariant()
    def leaving_waits_for_a_worker_or_has_stopped_it(self) -> None:
        if self.snapshot.leaving_until is not None:
            assert self.snapshot.phase is Phase.LEAVING
            assert not self.snapshot.quitting or self.snapshot.saving, "a quit that waits for a round"
        elif self.snapshot.phase is Phase.LEAVING:
            assert self.stopped, "leaving, and nobody stops the worker"
        if self.snapshot.saving:
            assert self.running, "nobody writes"

    @invariant()
    def a_restart_is_due_exactly_while_recovering_or_on_a_break(self) -> None:
        waits = self.snapshot.phase is Phase.RECOVERING or self.snapshot.on_a_break
        assert (self.snapshot.restart_at is not None) == waits
        if self.snapshot.on_a_break:
            assert self.snapshot.worker is None
            assert self.snapshot.failures >= MOST_FAILURES


TestShell = Shell.TestCase
TestShell.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
