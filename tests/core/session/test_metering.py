"""The time and energy of a run, counted by monotonic time and written about once a minute."""

from dataclasses import replace

import pytest

from english import in_english
from fakes import make_index, make_joined, make_progress, make_project, together
from skep.core.policy.allowance import Change
from skep.core.policy.conditions import Condition, answered
from skep.core.record.contributions import ContributionState
from skep.core.record.usage import Proportion, Quarter, Spent
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session import timeline
from skep.core.session.phases import Wait
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import step
from skep.core.text import Problem, verbatim

NOW = 900_000.0
PROJECT, INDEX = make_project(), make_index()


class Stay:
    def __init__(self):
        self.snapshot, self.now, self.effects = Snapshot(), NOW, []
        self.see(m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT), make_joined())

    def see(self, *messages, after=0.0):
        self.now += after
        for message in messages:
            self.snapshot, effects = step(self.snapshot, message, self.now)
            self.effects += effects
        return self

    def ticks(self, seconds):
        for _ in range(seconds):
            self.see(m.Tick(), after=1.0)
        return self

    @property
    def written(self):
        return [each.quarter for each in self.effects if isinstance(each, e.RecordUsage)]

    @property
    def changes(self):
        return [each.change for each in self.effects if isinstance(each, e.RecordChange)]


@pytest.fixture
def stay():
    return Stay()


def power(watts):
    return m.ConditionsSeen({Condition.POWER: answered(watts)})


def progress(seconds):
    return m.WorkerProgress(replace(make_progress(), compute_seconds=seconds))


def test_nothing_is_counted_before_the_swarm_is_reached():
    waiting = Stay.__new__(Stay)
    waiting.snapshot, waiting.now, waiting.effects = Snapshot(), NOW, []
    waiting.see(m.Join(PROJECT)).ticks(200).see(m.Leave())
    assert waiting.written == []


def test_a_minute_of_training_is_written_once_with_its_energy(stay):
    stay.see(power(100.0)).ticks(60)
    assert stay.written == [Quarter(PROJECT.id, NOW, Spent(60.0, 60.0, 0.0, 6_000.0, 60.0))]


def test_without_a_reading_there_is_time_and_no_energy(stay):
    stay.ticks(60)
    assert stay.written[0].spent == Spent(60.0, 60.0)


def test_time_without_a_trained_sample_is_no_training_after_a_minute(stay):
    idle = replace(make_progress(), samples_per_second=0.0)
    for _ in range(300):
        stay.ticks(1).see(m.WorkerProgress(idle, waits_for=Wait.DATA))
    spent = together(each.spent for each in stay.written)
    assert spent.staying == pytest.approx(300.0, abs=2.0)
    assert spent.training == pytest.approx(60.0, abs=2.0)
    waits = stay.changes[-1]
    assert (waits.share, waits.rule) == (0.0, timeline.AGAIN)
    assert in_english(waits.reason) == "Nothing was trained for a minute: waiting for training data."
    stay.see(progress(1.0))
    assert (stay.changes[-1].share, stay.changes[-1].rule) == (1.0, "away")
    assert len(stay.changes) == 3


def test_a_pause_is_time_in_the_project_and_no_training(stay):
    stay.see(power(100.0), m.Pause()).ticks(60)
    assert stay.written[0].spent == Spent(staying=60.0)


def test_what_was_computed_is_the_workers_word_also_after_it_began_anew(stay):
    stay.see(progress(5.0), progress(12.0), progress(3.0), progress(3.0)).ticks(60)
    assert stay.written[0].spent.computing == 15.0


def test_a_leap_of_the_clock_costs_nothing(stay):
    stay.see(m.Tick(), after=86_400.0).see(m.Tick(), after=-86_400.0)
    assert together(each.spent for each in stay.written).staying <= 4.0


def test_what_is_left_is_written_at_the_end_of_the_stay(stay):
    stay.ticks(10).see(m.Leave(now=True), m.WorkerExited(0)).ticks(100)
    assert [each.spent.staying for each in stay.written] == [10.0]


def test_a_new_quarter_of_an_hour_begins_a_new_row(stay):
    for seconds in range(965):
        stay.ticks(1).see(progress(seconds))
    assert {each.begin for each in stay.written} == {NOW, NOW + 900.0}
    first = together(each.spent for each in stay.written if each.begin == NOW)
    assert first.training == pytest.approx(900.0, abs=1.0)


def test_a_confirmed_contribution_is_weighed_against_the_swarms_epoch(stay):
    stay.see(m.ContributionConfirmed("a", 3, 8, 1), progress(1.0), m.ContributionConfirmed("b", 3, 128, 1))
    stay.see(m.ContributionConfirmed("c", 4, 10_000, 1), m.ContributionLost("d", 4, 8, verbatim("no other peer")))
    records = [each.contribution for each in stay.effects if isinstance(each, e.Record)]
    assert [each.swarm for each in records] == [0, 512, 10_000, 0]
    assert records[-1].state is ContributionState.LOST


def test_a_share_is_never_more_than_the_whole():
    assert Proportion(600, 512).share == 1.0
    assert Proportion().share is None


# --- time without skep in the timeline


def test_sleep_is_an_entry_of_its_own(stay):
    stay.ticks(5).see(m.Slept(600.0), after=600.0)
    assert [(each.rule, each.at) for each in stay.changes] == [
        ("away", NOW),
        ("sleep", NOW + 5.0),
        ("away", NOW + 605.0),
    ]


def test_time_without_a_swarm_is_no_training(stay):
    failed = m.WorkerFailed(Problem(verbatim("No peers.")), retry=True)
    stay.ticks(5).see(failed, m.WorkerExited(1)).ticks(13)
    stay.see(make_joined()).ticks(5)
    assert [(each.rule, each.share) for each in stay.changes] == [("away", 1.0), ("again", 0.0), ("away", 1.0)]
    stay.see(m.Leave(now=True), m.WorkerExited(0))
    assert together(each.spent for each in stay.written) == Spent(staying=23.0, training=10.0)


def test_a_pause_stays_the_reason_without_a_swarm(stay):
    stay.see(m.Pause(), m.WorkerFailed(Problem(verbatim("No peers.")), retry=True), m.WorkerExited(1)).ticks(5)
    assert [each.rule for each in stay.changes] == ["away", "paused"]


@pytest.mark.parametrize("seconds", [0.0, 30.0])
def test_a_nap_is_none(stay, seconds):
    stay.see(m.Slept(seconds), after=seconds)
    assert [each.rule for each in stay.changes] == ["away"]


def test_sleep_outside_a_project_is_of_no_interest():
    assert [each for each in step(Snapshot(), m.Slept(600.0), NOW)[1] if isinstance(each, e.RecordChange)] == []


@pytest.mark.parametrize(("alive", "at"), [(None, 100.0), (50.0, 100.0), (160.0, 160.0), (9_000.0, 200.0)])
def test_an_entry_left_open_ends_when_skep_was_last_alive(alive, at):
    last = Change(100.0, "tiny", 1.0, "away", verbatim("Training at full share."))
    end = timeline.closing(last, alive, 200.0)
    assert (end.at, end.project, in_english(end.reason)) == (at, "", "skep was not running.")


def test_what_was_closed_stays_closed():
    assert timeline.closing(None, 1.0, 2.0) is None
    assert timeline.closing(Change(1.0, "", 0.0, "", verbatim("Not in a project.")), 1.0, 2.0) is None
