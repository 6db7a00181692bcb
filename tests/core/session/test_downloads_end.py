"""Downloads end when they are not needed any more: on Leave, on a metered connection, after a failed join."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes import make_index, make_joined, make_project
from skep.core.policy.conditions import Condition, answered
from skep.core.session import effects as e
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.session.step import step
from skep.core.text import Problem, verbatim

NOW = 1_000_000.0
PROJECT, INDEX = make_project(), make_index()
WANTED = m.ShardWanted(INDEX.shards[0].sha256)
JOINING = m.Join(PROJECT), m.IndexArrived(INDEX, PROJECT)
BROKEN = Problem(verbatim("The swarm does not answer."))


class Stay:
    """`fetching` says for each message whether it began or ended downloads, if it did one of them."""

    def __init__(self, *messages: m.Message) -> None:
        self.snapshot, self.fetching = Snapshot(), list[str]()
        self.see(*messages)

    def see(self, *messages: m.Message, now: float = NOW) -> None:
        self.fetching.clear()
        for message in messages:
            self.snapshot, effects = step(self.snapshot, message, now)
            self.fetching += [
                "ended" if isinstance(each, e.StopFetching) else "begun"
                for each in effects
                if isinstance(each, e.FetchIndex | e.FetchShard | e.StopFetching)
            ]


def metered(holds: bool = True) -> m.ConditionsSeen:
    return m.ConditionsSeen({Condition.METERED: answered(holds)})


@pytest.mark.parametrize("training", [(), (make_joined(), m.Tick())])
def test_on_a_metered_connection_they_end_with_the_order_to_the_worker(training: tuple[m.Message, ...]):
    stay = Stay(*JOINING, *training, WANTED)
    stay.see(metered())
    assert stay.fetching == ["ended"]
    stay.see(WANTED, m.WorkerExited(0), m.Tick())
    assert stay.fetching == []


def test_off_it_the_next_worker_fetches_again():
    stay = Stay(*JOINING, WANTED, metered(), m.WorkerExited(0), metered(holds=False))
    for second in range(6):
        stay.see(m.Tick(), now=NOW + second)
    stay.see(WANTED)
    assert stay.fetching == ["begun"]


@pytest.mark.parametrize("leave", [m.Leave(), m.Leave(now=True), m.Quit()])
@pytest.mark.parametrize("before", [JOINING[:1], JOINING, (*JOINING, make_joined(), m.Tick(), WANTED)])
def test_who_leaves_downloads_nothing_more(before: tuple[m.Message, ...], leave: m.Message):
    stay = Stay(*before)
    stay.see(leave)
    assert stay.fetching == ["ended"]
    stay.see(WANTED, m.WorkerExited(0))
    assert stay.fetching == []
    assert stay.snapshot.phase is Phase.IDLE


def test_they_end_with_a_join_that_failed():
    stay = Stay(*JOINING, WANTED)
    stay.see(m.WorkerFailed(BROKEN, retry=False), m.WorkerExited(1))
    assert stay.fetching == ["ended"]
    assert stay.snapshot.phase is Phase.IDLE


def test_a_worker_that_is_started_again_finds_them_going_on():
    stay = Stay(*JOINING, make_joined(), m.Tick(), WANTED)
    stay.see(m.WorkerFailed(BROKEN, retry=True), m.WorkerExited(1))
    assert stay.fetching == []
    assert stay.snapshot.phase is Phase.RECOVERING


@pytest.mark.parametrize("exited", [(), (m.WorkerExited(1),)])
def test_but_not_on_a_metered_connection(exited: tuple[m.Message, ...]):
    stay = Stay(*JOINING, make_joined(), m.Tick(), WANTED)
    stay.see(m.WorkerFailed(BROKEN, retry=True), *exited, metered())
    assert stay.fetching == ["ended"]
    stay.see(WANTED, m.Tick())
    assert stay.fetching == []


def test_a_pause_of_the_user_ends_none():
    stay = Stay(*JOINING, make_joined(), m.Tick(), WANTED)
    stay.see(m.Pause())
    assert stay.fetching == []
    stay.see(m.Resume(), WANTED)
    assert stay.fetching == ["begun"]


def test_a_break_after_many_failures_ends_them():
    stay = Stay(*JOINING, make_joined(), m.Tick(), WANTED)
    stay.snapshot = replace(stay.snapshot, failures=9)
    stay.see(m.WorkerFailed(BROKEN, retry=True), m.WorkerExited(1))
    assert (stay.snapshot.phase, stay.fetching) == (Phase.PAUSED, ["ended"])
