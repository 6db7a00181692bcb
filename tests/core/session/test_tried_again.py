"""Joins that are tried again although no worker has joined: of a project that skep was in, or with a part of the state."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from english import in_english
from fakes import make_index, make_joined, make_project
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.phases import Phase, Stage
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import step
from skep.core.session.transitions import MOST_FAILURES
from skep.core.text import Problem, verbatim

PROJECT, INDEX = make_project(), make_index()
UNREACHABLE = Problem(verbatim("The shard server does not answer."))
FAILED = m.WorkerFailed(Problem(verbatim("The swarm does not answer.")), retry=True)


@dataclass
class Course:
    """`effects` are those of the last message."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    now: float = 1_000_000.0
    effects: tuple[e.Effect, ...] = ()

    def see(self, *messages: m.Message, after: float = 0.0) -> Course:
        self.now += after
        for message in messages:
            self.snapshot, self.effects = step(self.snapshot, message, self.now)
        return self

    def tick(self) -> Course:
        """Go on to the next try."""
        assert self.snapshot.restart_at is not None
        return self.see(m.Tick(), after=self.snapshot.restart_at - self.now)

    @property
    def wait(self) -> float | None:
        return None if self.snapshot.restart_at is None else self.snapshot.restart_at - self.now

    def without_index(self, chance: float = 1.0) -> Course:
        return self.see(m.IndexFailed(UNREACHABLE, PROJECT, chance))


@pytest.fixture
def resumed() -> Course:
    return Course().see(m.Join(PROJECT, resumed=True))


def test_the_index_of_a_resumed_project_is_fetched_again_and_the_reason_is_shown(resumed: Course):
    resumed.without_index()
    assert (resumed.snapshot.phase, resumed.wait, resumed.snapshot.problem) == (Phase.RECOVERING, 1.0, UNREACHABLE)
    assert e.Notify(UNREACHABLE) in resumed.effects
    assert e.FetchIndex(PROJECT) in resumed.tick().effects
    assert (resumed.snapshot.phase, resumed.snapshot.problem) == (Phase.JOINING, UNREACHABLE)
    resumed.without_index(chance=0.0)
    assert resumed.wait == 1.0  # half of two seconds
    assert e.Notify(UNREACHABLE) not in resumed.effects
    resumed.tick().see(m.IndexArrived(INDEX, PROJECT), make_joined())
    assert (resumed.snapshot.phase, resumed.snapshot.problem) == (Phase.TRAINING, None)


def test_a_resumed_project_whose_seeds_are_down_is_joined_when_they_are_back(resumed: Course):
    resumed.see(m.IndexArrived(INDEX, PROJECT), FAILED, m.WorkerExited(1))
    assert (resumed.snapshot.phase, resumed.snapshot.problem) == (Phase.RECOVERING, FAILED.problem)
    resumed.tick()
    assert [type(each) for each in resumed.effects if isinstance(each, e.StartWorker | e.FetchIndex)] == [e.StartWorker]
    assert resumed.see(make_joined()).snapshot.phase is Phase.TRAINING


def test_after_ten_tries_there_is_a_break_that_ends_by_itself(resumed: Course):
    for _ in range(MOST_FAILURES - 1):
        resumed.without_index().tick()
    resumed.without_index()
    assert resumed.snapshot.on_a_break
    problem = resumed.snapshot.problem
    assert problem is not None
    assert in_english(problem.title) == "The project is paused: joining it failed 10 times in a row."
    assert in_english(problem.hint).startswith("The shard server does not answer. skep tries again in 30")
    assert e.FetchIndex(PROJECT) in resumed.tick().effects
    resumed.without_index().see(m.Resume())
    assert e.FetchIndex(PROJECT) in resumed.effects


def test_what_no_try_can_mend_ends_a_resumed_join_too(resumed: Course):
    hopeless = m.WorkerFailed(Problem(verbatim("The model is too big.")), retry=False)
    resumed.see(m.IndexArrived(INDEX, PROJECT), hopeless, m.WorkerExited(1))
    assert (resumed.snapshot.phase, resumed.snapshot.problem) == (Phase.IDLE, hopeless.problem)


@pytest.mark.parametrize("now", [False, True])
def test_who_leaves_meanwhile_has_decided_and_nothing_has_failed(resumed: Course, now: bool):
    resumed.without_index().see(m.Leave(now=now))
    assert (resumed.snapshot.phase, resumed.snapshot.problem) == (Phase.IDLE, None)


def test_the_wait_is_in_the_timeline(resumed: Course):
    resumed.without_index()
    assert resumed.snapshot.change is not None
    assert in_english(resumed.snapshot.change.reason) == "Reaching the swarm again."


@pytest.mark.parametrize(("fraction", "phase"), [(0.0, Phase.IDLE), (0.01, Phase.RECOVERING)])
def test_a_first_join_that_has_loaded_a_part_of_the_state_is_tried_again(fraction: float, phase: Phase):
    course = Course().see(m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT), m.WorkerStage(Stage.STATE, fraction))
    course.see(FAILED, m.WorkerExited(1))
    assert course.snapshot.phase is phase


def test_it_is_tried_again_where_the_next_try_comes_less_far():
    course = Course().see(m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT), m.WorkerStage(Stage.STATE, 0.5))
    course.see(FAILED, m.WorkerExited(1)).tick().see(m.WorkerStage(Stage.PEERS, 0.0), FAILED, m.WorkerExited(1))
    assert (course.snapshot.phase, course.wait) == (Phase.RECOVERING, 2.0)


def test_the_stage_that_failed_is_on_show_until_the_next_try(resumed: Course):
    resumed.see(m.IndexArrived(INDEX, PROJECT), m.WorkerStage(Stage.PEERS, 0.0), FAILED, m.WorkerExited(1))
    assert resumed.snapshot.stage is not None
    assert resumed.snapshot.stage.stage is Stage.PEERS
    assert resumed.tick().snapshot.stage is None
