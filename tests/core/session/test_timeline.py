"""The timeline: changes of the allowance, and the reaction times."""

from __future__ import annotations

from typing import Any

import pytest

from english import in_english
from fakes import make_index, make_joined, make_project
from skep.core.policy.allowance import Reaction
from skep.core.policy.conditions import Condition, answered
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session import timeline
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import step

NOW = 1_000_000.0
PROJECT, INDEX = make_project(), make_index()


class Course:
    def __init__(self) -> None:
        self.snapshot, self.now = Snapshot(), NOW
        self.changes: list[Any] = []
        self.reactions: list[Reaction] = []

    def see(self, *messages: m.Message, after: float = 0.0) -> Course:
        self.now += after
        for message in messages:
            self.snapshot, effects = step(self.snapshot, message, self.now)
            self.changes += [each.change for each in effects if isinstance(each, e.RecordChange)]
            self.reactions += [each.reaction for each in effects if isinstance(each, e.RecordReaction)]
        return self

    def ticks(self, seconds: int) -> Course:
        for _ in range(seconds):
            self.see(m.Tick(), after=1.0)
        return self

    @property
    def rules(self) -> list[str]:
        return [change.rule for change in self.changes]


@pytest.fixture
def training() -> Course:
    return Course().see(m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT), make_joined())


def test_nothing_is_told_before_the_first_project():
    assert Course().see(m.Pause(), m.Resume(), m.Tick()).changes == []


def test_each_change_is_told_once_with_its_reason_and_a_ramp_is_one(training: Course):
    training.see(m.ConditionsSeen({Condition.BATTERY: answered(value=True)})).ticks(3)
    training.see(m.ConditionsSeen({Condition.BATTERY: answered(value=False)})).ticks(30)
    assert training.rules == ["away", "battery", "battery", "ramp", "away"]
    assert [in_english(change.reason) for change in training.changes] == [
        "Training at full share.",
        "On battery.",
        "On battery a moment ago.",
        "The share rises to 100 %.",
        "Training at full share.",
    ]
    assert [change.share for change in training.changes][:3] == [1.0, 0.0, 0.0]
    assert all(change.project == "tiny" for change in training.changes)


def test_leaving_is_told_and_then_nothing(training: Course):
    training.see(m.Leave(now=True), m.WorkerExited(0)).see(m.Pause(), m.Tick())
    assert (training.changes[-1].project, in_english(training.changes[-1].reason)) == ("", "Not in a project.")
    assert len(training.changes) == 2


def test_slight_changes_of_the_heat_loop_are_not_told_one_by_one(training: Course):
    training.see(m.ConditionsSeen({Condition.TEMPERATURE: answered(80.0)})).ticks(2)
    assert training.rules.count("heat") >= 1
    told = len(training.changes)
    training.see(m.ChangeSettings({"disk.cache_gb": 3.0}))
    assert len(training.changes) == told


# --- reactions


def test_a_reaction_goes_from_the_input_itself_to_the_workers_word(training: Course):
    training.see(m.ConditionsSeen({Condition.INPUT: answered(0.05)}, at=NOW - 0.01))
    training.see(m.WorkerPaused(0.2, 0.03), after=0.04)
    (reaction,) = training.reactions
    assert (reaction.rule, reaction.share) == ("input", 0.2)
    assert reaction.seconds == pytest.approx(0.05 + 0.01 + 0.04)
    assert training.snapshot.reactions == (reaction,)


def test_of_a_command_it_goes_from_the_command(training: Course):
    training.see(m.Pause()).see(m.WorkerPaused(0.0, 0.03), after=0.04)
    assert training.reactions[0].seconds == pytest.approx(0.04)


@pytest.mark.parametrize("behind", ["round", "state", "joining"])
def test_what_had_to_end_more_than_a_micro_batch_first_is_no_reaction(training: Course, behind: str):
    training.see(m.Pause()).see(m.WorkerPaused(0.0, 3.0, behind), after=3.0)
    assert (training.reactions, training.snapshot.falling) == ([], None)


def test_of_another_condition_it_goes_from_its_reading(training: Course):
    seen = {Condition.INPUT: answered(0.5), Condition.BATTERY: answered(value=True)}
    training.see(m.ConditionsSeen(seen)).see(m.WorkerPaused(0.0, 0.03), after=0.04)
    assert training.reactions[0].seconds == pytest.approx(0.04)


def test_only_the_word_about_this_share_counts(training: Course):
    training.see(m.Pause())
    training.see(m.WorkerPaused(1.0, 0.0), after=0.01)
    assert training.reactions == []
    training.see(m.WorkerPaused(0.0, 0.0), m.WorkerPaused(0.0, 0.0), after=0.01)
    assert len(training.reactions) == 1


def test_what_was_taken_back_before_the_word_came_is_no_reaction(training: Course):
    training.see(m.Pause(), m.Resume(), m.WorkerPaused(0.0, 0.0))
    assert training.reactions == []


def test_without_a_worker_in_the_swarm_nothing_is_given_back():
    course = Course().see(m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT), m.Pause())
    assert course.snapshot.falling is None


def test_the_heat_loop_gives_nothing_back_to_anybody(training: Course):
    training.see(m.ConditionsSeen({Condition.TEMPERATURE: answered(85.0)}), m.WorkerPaused(0.5, 0.0))
    assert (training.reactions, training.snapshot.allowance.rule) == ([], "heat")


@pytest.mark.parametrize("seconds", [-50.0, 10_000.0])
def test_a_clock_that_was_put_right_meanwhile_makes_no_reaction(training: Course, seconds: float):
    training.see(m.Pause()).see(m.WorkerPaused(0.0, 0.0), after=seconds)
    assert (training.reactions, training.snapshot.falling) == ([], None)


def test_the_last_twenty_are_kept_and_told(training: Course):
    for number in range(25):
        training.see(m.Pause()).see(m.WorkerPaused(0.0, 0.0), after=(number // 2) / 100).see(m.Resume())
    assert len(training.snapshot.reactions) == 20
    assert in_english(timeline.sentence(training.snapshot.reactions)) == "Gave your computer back in 0.07 s (last 20)."
    assert not timeline.sentence(())


def test_a_join_that_comes_to_nothing_leaves_no_entry():
    joining = Course().see(m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT), m.Tick())
    assert joining.snapshot.change is None
    assert joining.see(m.Leave()).snapshot.change is None
