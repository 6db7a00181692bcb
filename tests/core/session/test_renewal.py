"""A worker whose processes have grown ends at the edge of an epoch, and another takes its place at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from english import spoken
from fakes import make_index, make_joined, make_progress, make_project
from skep.core.policy.conditions import Condition, answered
from skep.core.policy.growth import MEASUREMENTS, Use
from skep.core.record.contributions import Tally
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.renewal import AFRESH, APART_SECONDS, EDGE_SECONDS
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import step
from skep.core.text import NOTHING, Problem, verbatim

PROJECT = make_project()
FIRST, MORE = Use(2 * 10**9, 100), Use(9 * 10**9, 100)
RENEW = e.RenewWorker(FIRST, MORE)
TICK_SECONDS = 2.0


class Course:
    """A sequence of snapshots, and all effects since the last call of `told`."""

    def __init__(self) -> None:
        self.snapshot, self.now = Snapshot(), 1_000_000.0
        self.effects: list[e.Effect] = []

    def see(self, *messages: m.Message, after: float = 0.0) -> Course:
        self.now += after
        for message in messages:
            self.snapshot, effects = step(self.snapshot, message, self.now)
            self.effects += effects
        return self

    def joined(self, epoch: int = 3) -> Course:
        return self.see(make_joined(epoch), self.progress(epoch))

    def progress(self, epoch: int) -> m.WorkerProgress:
        return m.WorkerProgress(replace(make_progress(epoch), compute_seconds=self.now))

    def lasts(self, seconds: float, epoch: int = 4) -> Course:
        """Time passes, and the worker goes on computing."""
        for _ in range(round(seconds / TICK_SECONDS)):
            self.see(m.Tick(), self.progress(epoch), after=TICK_SECONDS)
        return self

    def measured(self, use: Use, times: int = MEASUREMENTS) -> Course:
        return self.see(*[m.WorkerMeasured(use)] * times)

    def told(self, *kinds: type) -> list[e.Effect]:
        found = [each for each in self.effects if isinstance(each, kinds)]
        self.effects = []
        return found

    def renewals(self) -> list[e.Effect]:
        return self.told(e.RenewWorker)

    def changes(self) -> list[e.RecordChange]:
        return [each for each in self.effects if isinstance(each, e.RecordChange)]


@pytest.fixture
def training() -> Course:
    """A worker in its second epoch."""
    course = Course().see(m.Join(PROJECT), m.IndexArrived(make_index(), PROJECT)).joined()
    return course.see(course.progress(4))


@pytest.fixture
def asked(training: Course) -> Course:
    """The same, after it was asked to end at the edge of an epoch."""
    assert training.measured(FIRST).measured(MORE).renewals() == [RENEW]
    return training


def test_a_worker_that_has_grown_is_asked_once_and_goes_on_training(asked: Course):
    assert asked.measured(MORE).renewals() == []
    assert (asked.snapshot.phase, asked.snapshot.problem, asked.snapshot.waiting) == (Phase.TRAINING, None, NOTHING)


def test_its_exit_is_no_failure_and_another_starts_at_once(asked: Course):
    asked.see(m.ContributionPending("c1", 4, 16), m.ContributionConfirmed("c1", 4, 16, 2), m.WorkerExited(0))
    assert [type(each) for each in asked.told(e.LosePending, e.StartWorker, e.Notify)] == [e.LosePending, e.StartWorker]
    assert (asked.snapshot.phase, asked.snapshot.problem) == (Phase.JOINING, None)
    assert (asked.snapshot.failures, asked.snapshot.restart_at) == (0, None)
    assert asked.snapshot.totals.confirmed == Tally(1, 16)


def test_the_timeline_says_why_until_the_next_worker_has_joined(asked: Course):
    asked.see(m.WorkerExited(0))
    assert [each.change.reason for each in asked.changes()][-1] == AFRESH
    asked.effects = []
    asked.joined(5)
    assert [each.change.share for each in asked.changes()] == [1.0]
    asked.effects = []
    asked.see(m.WorkerExited(1))
    (change,) = asked.changes()
    assert spoken(change.change.reason) == spoken(verbatim("Reaching the swarm again."))


@pytest.mark.parametrize("code", [1, -9])
def test_a_worker_that_was_asked_and_crashes_has_failed(asked: Course, code: int):
    asked.see(m.WorkerExited(code))
    assert (asked.snapshot.phase, asked.snapshot.failures, asked.snapshot.renewing) == (Phase.RECOVERING, 1, False)


def test_so_has_one_that_reports_an_error(asked: Course):
    asked.see(m.WorkerFailed(Problem(verbatim("The swarm does not answer.")), retry=True), m.WorkerExited(0))
    assert asked.snapshot.phase is Phase.RECOVERING


def test_so_has_the_next_one_that_ends_before_it_has_joined(asked: Course):
    asked.see(m.WorkerExited(0)).see(m.WorkerExited(0))
    assert asked.snapshot.phase is Phase.RECOVERING


def test_without_growth_an_exit_is_unexpected(training: Course):
    assert training.see(m.WorkerExited(0)).snapshot.phase is Phase.RECOVERING


def test_leaving_ends_it_for_good(asked: Course):
    asked.see(m.Leave(), m.WorkerExited(0))
    assert asked.snapshot.phase is Phase.IDLE


def test_what_is_used_before_the_first_round_and_during_a_pause_does_not_count():
    course = Course().see(m.Join(PROJECT), m.IndexArrived(make_index(), PROJECT)).measured(Use(10**6, 1))
    course.joined().measured(Use(10**6, 1)).see(course.progress(4), m.Pause()).measured(Use(10**6, 1))
    course.see(m.Resume()).measured(MORE).measured(MORE)
    assert course.renewals() == []


def test_a_second_renewal_comes_an_hour_later_at_the_earliest(asked: Course):
    asked.see(m.WorkerExited(0)).joined(5).measured(FIRST)
    asked.lasts(2 * TICK_SECONDS, 6).measured(FIRST).measured(MORE)
    assert asked.renewals() == []
    asked.lasts(APART_SECONDS - 4 * TICK_SECONDS, 6)
    assert asked.measured(MORE).renewals() == []
    assert asked.lasts(3 * TICK_SECONDS, 6).measured(MORE).renewals() == [RENEW]


def test_without_an_edge_for_an_hour_it_leaves_after_its_round_or_without(asked: Course):
    assert asked.lasts(EDGE_SECONDS - TICK_SECONDS).told(e.TellWorker) == []
    assert asked.lasts(2 * TICK_SECONDS).told(e.TellWorker) == [e.TellWorker(m.FinishTraining())]
    assert (asked.snapshot.phase, asked.snapshot.waiting) == (Phase.PAUSED, AFRESH)
    assert asked.lasts(70).told(e.TellWorker, e.StopWorker) == [e.StopWorker()]
    asked.see(m.WorkerExited(0))
    assert (asked.snapshot.phase, asked.snapshot.failures, asked.snapshot.waiting) == (Phase.JOINING, 0, NOTHING)


def test_a_worker_that_is_ending_anyway_is_not_asked(training: Course):
    training.measured(FIRST).measured(MORE, MEASUREMENTS - 1)
    training.see(m.WorkerFailed(Problem(verbatim("It broke.")), retry=True)).measured(MORE)
    assert training.renewals() == []


def test_a_renewal_that_writes_a_large_state_is_not_taken_for_silent_and_waited_for_by_a_leave(training: Course):
    training.measured(FIRST).measured(MORE).see(m.WorkerSaving(300.0))
    training.told()
    for _ in range(80):
        training.see(m.Tick(), after=TICK_SECONDS)
    assert training.told(e.EndStuckWorker, e.StopWorker) == []
    training.see(m.Leave(), m.ConditionsSeen({Condition.METERED: answered(value=True)}))
    training.see(m.Tick(), after=TICK_SECONDS)
    assert training.told(e.EndStuckWorker, e.StopWorker, e.TellWorker) == []
    assert training.see(m.WorkerExited(0)).snapshot.phase is Phase.IDLE
