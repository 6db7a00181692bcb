"""A worker that has left the swarm may write its state to the disk; who insists does not wait for that."""

from __future__ import annotations

import pytest

from english import in_english
from fakes import make_index, make_joined, make_project
from skep.core.policy.conditions import Condition, answered
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session import phases
from skep.core.session.deadlines import SILENT_SECONDS
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import step
from skep.core.session.transitions import LONGEST_SAVING_SECONDS
from skep.core.text import Problem, verbatim

NOW = 1_000_000.0
PROJECT = make_project()
SAVING = m.WorkerSaving(100.0)


class Stay:
    """A stay with a worker that trains; `effects` are those of the last message, without entries for the ledger."""

    def __init__(self) -> None:
        self.snapshot, self.now = Snapshot(), NOW
        self.effects: list[e.Effect] = []
        self.see(m.Join(PROJECT), m.IndexArrived(make_index(), PROJECT), make_joined())

    def see(self, *messages: m.Message, after: float = 0.0) -> Stay:
        self.now += after
        for message in messages:
            self.snapshot, effects = step(self.snapshot, message, self.now)
            self.effects = [each for each in effects if isinstance(each, e.WorkerEffect | e.EndEngine)]
        return self

    @property
    def said(self) -> str:
        until, saving = self.snapshot.leaving_until, self.snapshot.saving
        return str(in_english(phases.leaving(until, self.now, saving=saving)))


@pytest.fixture
def stay() -> Stay:
    return Stay()


def test_a_worker_that_another_program_has_told_to_go_saves_as_long_as_it_asked_for(stay: Stay):
    stay.see(SAVING)
    assert stay.snapshot.phase is Phase.TRAINING
    for _ in range(int(SAVING.seconds + SILENT_SECONDS) - 1):
        assert stay.see(m.Tick(), after=1.0).effects == []
        assert in_english(stay.snapshot.waiting).startswith("Saving the model")
    stay.see(m.Tick(), after=2.0)
    assert stay.effects == [e.EndStuckWorker()]


@pytest.mark.parametrize("command", [m.Leave(now=True), m.Leave(), m.Quit()])
def test_a_worker_that_was_told_to_go_is_waited_for_while_it_saves(stay: Stay, command: m.Command):
    stay.see(command, SAVING)
    assert stay.said.startswith("Saving the model, so that the next start needs no download")
    for _ in range(99):
        assert stay.see(m.Tick(), after=1.0).effects == []
    assert stay.see(m.Tick(), after=2.0).effects == [e.StopWorker()]
    stay.see(m.WorkerExited(0))
    assert (stay.snapshot.phase, stay.snapshot.saving) == (Phase.IDLE, False)


def test_a_second_quit_does_not_wait_and_a_first_one_does(stay: Stay):
    assert stay.see(m.Leave(now=True), SAVING, m.Quit()).effects == []
    assert stay.snapshot.quitting
    assert stay.see(m.Quit()).effects == [e.StopWorker()]
    assert stay.see(m.Quit(), SAVING).effects == []
    assert stay.see(m.WorkerExited(-9)).effects == [e.EndEngine()]


def test_leave_now_does_not_wait_for_the_disk(stay: Stay):
    stay.see(m.Leave(), SAVING)
    assert stay.see(m.Leave()).effects == []
    assert stay.see(m.Leave(now=True)).effects == [e.StopWorker()]


def test_a_worker_that_was_ended_from_outside_has_its_time_though_the_front_end_quits_after_it(stay: Stay):
    """As at a shutdown: both get the signal, and the worker is first."""
    assert stay.see(SAVING, m.Quit()).effects == []
    assert (stay.snapshot.phase, stay.snapshot.leaving_until) == (Phase.LEAVING, NOW + 100)
    assert stay.see(m.WorkerExited(0)).effects == [e.EndEngine()]


def test_a_worker_that_departs_for_a_while_saves_too(stay: Stay):
    stay.see(m.ConditionsSeen({Condition.METERED: answered(value=True)}), SAVING)
    assert stay.snapshot.phase is Phase.PAUSED
    assert stay.see(m.Tick(), after=99.0).effects == []
    assert stay.see(m.Slept(40.0)).effects == []
    assert stay.see(m.Tick(), after=2.0).effects == [e.StopWorker()]


@pytest.mark.parametrize(("seconds", "wait"), [(-5.0, 0.0), (1e12, LONGEST_SAVING_SECONDS)])
def test_a_worker_cannot_ask_for_ever(stay: Stay, seconds: float, wait: float):
    stay.see(m.Leave(now=True), m.WorkerSaving(seconds), m.WorkerSaving(9e9))
    assert stay.snapshot.leaving_until == NOW + wait


def test_a_worker_that_failed_has_no_time(stay: Stay):
    assert not stay.see(m.WorkerFailed(Problem(verbatim("Gone.")), retry=True), SAVING).snapshot.saving


def test_what_goes_wrong_after_a_leave_is_said_and_known_to_come_after_it(stay: Stay):
    full = m.WorkerNoticed(Problem(verbatim("The disk is full.")))
    stay.see(m.Leave(now=True), SAVING, full)
    assert (stay.snapshot.left, stay.snapshot.problem) == (True, full.problem)
    stay.see(m.WorkerExited(0))
    assert not stay.see(m.Join(PROJECT)).snapshot.left
