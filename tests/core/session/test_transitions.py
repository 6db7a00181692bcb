"""Leaving the swarm for a while (metered connection, a long pause, sleep) and returning without a loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from english import spoken
from fakes import make_index, make_joined, make_progress, make_project
from skep.core.policy.conditions import Condition, answered
from skep.core.record.contributions import Tally
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.losses import ASLEEP
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import step
from skep.core.text import Problem, verbatim

NOW = 1_000_000.0
PROJECT, INDEX = make_project(), make_index()
FINISH = e.TellWorker(m.FinishTraining())


class Course:
    """A sequence of snapshots; `effects` are those of the last step, without the timeline's entries and the end of
    downloads, of which `test_downloads_end` is.
    """

    def __init__(self) -> None:
        self.snapshot, self.now = Snapshot(), NOW
        self.effects: list[e.Effect] = []

    def see(self, *messages: m.Message, after: float = 0.0) -> Course:
        self.now += after
        for message in messages:
            self.snapshot, effects = step(self.snapshot, message, self.now)
            aside = e.RecordChange | e.RecordUsage | e.SetAllowance | e.StopFetching
            self.effects = [each for each in effects if not isinstance(each, aside)]
        return self

    def ticks(self, seconds: float) -> list[e.Effect]:
        told: list[e.Effect] = []
        for _ in range(round(seconds)):
            told += self.see(m.Tick(), after=1.0).effects
            # a worker that runs reports that it computes
            self.see(m.WorkerProgress(replace(make_progress(), compute_seconds=self.now)))
        return told

    def metered(self, holds: bool = True) -> Course:
        return self.see(m.ConditionsSeen({Condition.METERED: answered(holds)}))

    @property
    def state(self) -> tuple[Phase, bool]:
        return self.snapshot.phase, self.snapshot.worker is not None


@pytest.fixture
def training() -> Course:
    return Course().see(m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT), make_joined(), m.Tick())


def growing(seconds_left: float | None = None) -> m.WorkerProgress:
    shown = replace(make_progress(), seconds_left=seconds_left)
    return m.WorkerProgress(shown, contribution="c1", samples=16, position=16)


def starts(effects: Any) -> list[e.StartWorker]:
    return [effect for effect in effects if isinstance(effect, e.StartWorker)]


def test_on_a_metered_connection_a_worker_with_nothing_to_bring_stops_at_once(training: Course):
    training.metered()
    assert training.effects == [e.StopWorker()]
    assert training.state == (Phase.PAUSED, True)
    training.see(m.WorkerExited(0))
    assert training.state == (Phase.PAUSED, False)
    assert training.snapshot.project == PROJECT
    assert (training.snapshot.failures, training.snapshot.problem) == (0, None)


def test_on_a_metered_connection_what_was_accumulated_still_goes_into_its_round(training: Course):
    training.see(growing()).metered()
    assert training.effects == [FINISH]
    training.see(m.ContributionPending("c1", 3, 16), m.ContributionConfirmed("c1", 3, 16, 2), m.WorkerExited(0))
    assert spoken(training.effects) == spoken(
        [e.LosePending("tiny", verbatim("left before the round")), e.SavePosition("tiny", 16)]
    )
    assert training.snapshot.totals.confirmed == Tally(1, 16)


def test_a_last_round_that_does_not_come_is_given_up_after_a_minute(training: Course):
    training.see(growing()).metered()
    assert training.ticks(59) == []
    assert training.ticks(1) == [e.StopWorker()]
    assert training.ticks(5) == []


def test_a_pause_of_ten_minutes_leaves_after_its_round_as_long_as_the_epoch_takes(training: Course):
    progress = replace(make_progress(), seconds_left=300.0)
    report = m.WorkerProgress(progress, "c1", 16, 16)
    training.see(report, m.Pause())
    told = [effect for _ in range(601) for effect in (*training.see(report).effects, *training.ticks(1))]
    assert FINISH in told
    until = training.snapshot.worker.departing_until if training.snapshot.worker else None
    assert until is not None
    assert until - NOW == pytest.approx(1200, abs=1.0)
    assert training.ticks(until - training.now - 1) == []
    assert training.ticks(1) == [e.StopWorker()]


def test_a_clock_put_back_does_not_prolong_the_last_round(training: Course):
    assert training.see(growing()).metered().see(m.Tick(), after=-3600).effects == [e.StopWorker()]


def test_off_the_metered_connection_a_new_worker_starts_after_the_calm_time(training: Course):
    training.metered().see(m.WorkerExited(0)).metered(holds=False)
    assert starts(training.ticks(4)) == []
    assert len(starts(training.ticks(1))) == 1
    assert training.state == (Phase.JOINING, True)
    training.see(make_joined())
    assert training.state == (Phase.TRAINING, True)
    assert training.snapshot.failures == 0


def test_a_worker_that_still_leaves_is_waited_for_before_the_next(training: Course):
    training.see(growing()).metered().metered(holds=False)
    assert starts(training.ticks(8)) == []
    assert training.snapshot.allowance.share > 0
    assert training.state == (Phase.PAUSED, True)
    training.see(m.WorkerExited(0))
    assert len(starts(training.effects)) == 1


def test_a_joining_worker_stops_and_a_failure_of_it_is_none(training: Course):
    course = Course().see(m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT)).metered()
    assert course.effects == [e.StopWorker()]
    assert course.see(make_joined()).state == (Phase.PAUSED, True)
    course.see(m.WorkerFailed(make_problem(), retry=True))
    assert (course.effects, course.snapshot.problem) == ([e.StopWorker()], None)
    course.see(m.WorkerExited(1))
    assert course.state == (Phase.PAUSED, False)


def make_problem() -> Any:
    return Problem(verbatim("The swarm does not answer."))


def test_an_index_that_comes_on_a_metered_connection_waits(training: Course):
    course = Course().metered().see(m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT))
    assert (course.state, course.effects) == ((Phase.PAUSED, False), [])
    course.metered(holds=False)
    assert len(starts(course.ticks(6))) == 1


def test_a_worker_that_crashed_is_not_started_on_a_metered_connection(training: Course):
    training.see(m.WorkerExited(1)).metered()
    assert starts(training.ticks(10)) == []
    training.metered(holds=False)
    assert len(starts(training.ticks(6))) == 1


def test_a_worker_that_failed_by_itself_is_not_told_to_leave(training: Course):
    training.see(m.WorkerFailed(make_problem(), retry=True)).metered()
    assert training.effects == []
    assert training.see(m.WorkerExited(1)).snapshot.phase is Phase.RECOVERING


def test_a_long_pause_leaves_the_swarm_and_its_end_joins_again(training: Course):
    training.see(m.Pause())
    assert training.ticks(599) == []
    assert training.ticks(1) == [FINISH]
    training.see(m.WorkerExited(0))
    assert training.state == (Phase.PAUSED, False)
    assert training.ticks(60) == []
    training.see(m.Resume())
    assert len(starts(training.effects)) == 1
    assert starts(training.effects)[0].options.share == 1.0


def test_after_sleep_the_worker_begins_anew_and_nothing_counts_as_a_failure(training: Course):
    training.see(growing(), m.AboutToSleep()).see(m.Slept(600.0), after=600)
    assert training.effects == [e.StopWorker(ASLEEP)]
    training.see(m.WorkerExited(0))
    assert training.state == (Phase.JOINING, True)
    assert spoken(training.effects[0]) == spoken(e.LosePending("tiny", verbatim("this computer was asleep")))
    assert len(starts(training.effects)) == 1
    assert (training.snapshot.failures, training.snapshot.position) == (0, 16)


def test_sleep_during_a_last_round_ends_it(training: Course):
    training.see(growing()).metered()
    assert training.see(m.Slept(31.0), after=31).effects == [e.StopWorker(ASLEEP)]
    assert training.see(m.Slept(31.0)).effects == []


@pytest.mark.parametrize("paused", [False, True])
def test_after_a_sleep_shorter_than_the_epoch_the_worker_goes_on(training: Course, paused: bool):
    training.see(growing(seconds_left=601.0))
    if paused:
        training.see(m.Pause())
    assert training.see(m.Slept(600.0), after=600).effects == []
    assert training.snapshot.worker is not None


@pytest.mark.parametrize(
    "grown", [[growing(seconds_left=600.0)], [m.WorkerProgress(replace(make_progress(), seconds_left=601.0))], []]
)
def test_after_a_sleep_in_which_the_round_was_due_or_nothing_waited_for_it_the_worker_begins_anew(
    training: Course, grown: list[m.Message]
):
    training.see(*grown)
    assert training.see(m.Slept(600.0), after=600).effects == [e.StopWorker(ASLEEP)]


def test_a_short_break_is_no_sleep(training: Course):
    assert training.see(m.Slept(30.0), after=30).effects == []


@pytest.mark.parametrize(("pending", "effects"), [(True, []), (False, [e.StopWorker()])])
def test_leaving_while_the_worker_departs(training: Course, pending: bool, effects: list[e.Effect]):
    if pending:
        training.see(growing())
    training.metered().see(m.Leave())
    assert (training.effects, training.snapshot.phase) == (effects, Phase.LEAVING)
    assert (training.snapshot.leaving_until is not None) == pending
    training.see(m.WorkerExited(0))
    assert training.snapshot.phase is Phase.IDLE


def test_a_metered_connection_does_not_disturb_a_worker_that_leaves_for_good(training: Course):
    training.see(growing(), m.Leave()).metered()
    assert (training.effects, training.snapshot.phase) == ([], Phase.LEAVING)


def test_leaving_and_quitting_without_a_worker_is_immediate(training: Course):
    training.metered().see(m.WorkerExited(0))
    assert training.see(m.Quit()).effects == [e.EndEngine()]


def test_a_worker_that_starts_while_somebody_is_there_is_told_so():
    course = Course().see(m.ConditionsSeen({Condition.INPUT: answered(1.0)}), m.Join(PROJECT))
    _, effects = step(course.snapshot, m.IndexArrived(INDEX, PROJECT), course.now)
    assert [start.options.present for start in starts(effects)] == [True]
