"""Contributions that are all lost although other peers are there."""

from __future__ import annotations

import pytest

from english import in_english
from fakes import make_index, make_joined, make_progress, make_project
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import step
from skep.core.text import NOTHING, Text

PROJECT = make_project()
NO_GROUP = Text("round.no_group_was_found_round")
NOBODY = Text("round.no_other_peer")


class Stay:
    """A stay with a worker that computes and reports; `ended` counts the workers that the engine has ended."""

    def __init__(self) -> None:
        self.snapshot, self.now, self.number, self.ended = Snapshot(), 1_000_000.0, 0, 0
        self.see(m.Join(PROJECT), m.IndexArrived(make_index(), PROJECT), make_joined())

    def see(self, *messages: m.Message, after: float = 0.0) -> Stay:
        self.now += after
        for message in messages:
            self.snapshot, effects = step(self.snapshot, message, self.now)
            self.ended += effects.count(e.StopWorker())
        return self

    def lose(self, count: int, reason: Text = NO_GROUP) -> Stay:
        for _ in range(count):
            self.number += 1
            self.see(m.WorkerProgress(make_progress(self.number)), after=1.0)
            self.see(m.ContributionLost(f"c{self.number}", self.number, 16, reason))
        return self

    def again(self) -> Stay:
        """The worker is gone, and the next one joins."""
        self.see(m.WorkerExited(-15))
        assert self.snapshot.restart_at is not None
        return self.see(m.Tick(), make_joined(), after=self.snapshot.restart_at - self.now)

    @property
    def said(self) -> str:
        return str(in_english(self.snapshot.waiting))


@pytest.fixture
def stay() -> Stay:
    return Stay()


def test_a_worker_whose_contributions_are_all_lost_is_started_afresh_and_the_reason_is_shown(stay: Stay):
    assert stay.lose(9).ended == 0
    stay.lose(1)
    assert stay.ended == 1
    problem = stay.snapshot.problem
    assert problem is not None
    assert in_english(problem.title) == (
        "The last contributions of this computer were all lost: no group was found for the round."
    )
    stay.see(m.WorkerExited(-15))
    assert (stay.snapshot.phase, stay.snapshot.failures) == (Phase.RECOVERING, 1)


def test_it_is_started_afresh_once_and_training_is_not_said_before_a_contribution_is_confirmed(stay: Stay):
    stay.lose(10).again().lose(25)
    assert stay.ended == 1
    assert stay.snapshot.problem is None
    assert stay.said == "The last contributions of this computer were all lost: no group was found for the round."
    stay.see(m.ContributionConfirmed("good", 40, 16, 2))
    assert (stay.snapshot.waiting, stay.snapshot.failures) == (NOTHING, 0)
    assert stay.lose(10).ended == 2


def test_only_a_confirmed_contribution_ends_the_row_of_failures(stay: Stay):
    stay.lose(10).again()
    assert stay.snapshot.failures == 1


def test_alone_in_a_swarm_nothing_is_wrong_and_a_row_ends(stay: Stay):
    assert stay.lose(50, NOBODY).ended == 0
    stay.lose(9).lose(1, NOBODY).lose(9)
    assert (stay.ended, stay.snapshot.waiting) == (0, NOTHING)


@pytest.mark.parametrize("own", ["round.computer_was_paused", "round.computer_was_asleep"])
def test_what_the_computer_itself_gave_up_does_not_count(stay: Stay, own: str):
    reason = Text(own)
    assert stay.lose(9).lose(5, reason).ended == 0
    assert stay.lose(1).ended == 1


@pytest.mark.parametrize("command", [m.Leave(), m.Pause()])
def test_a_worker_that_leaves_or_rests_is_not_ended(stay: Stay, command: m.Command):
    assert stay.lose(9).see(command).lose(1).ended == 0
