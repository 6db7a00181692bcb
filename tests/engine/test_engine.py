"""The engine's thread on stand-ins: effects reach the ports, answers come back, failures become problems."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from english import in_english, raises
from fakes import (
    FakeClock,
    FakeIdentity,
    FakeInvitations,
    FakeLedger,
    FakePauses,
    FakeRevocations,
    FakeSensor,
    FakeSettings,
    FakeShards,
    FakeWorker,
    make_index,
    make_joined,
    make_progress,
    make_project,
)
from manifests import raw
from skep.core.errors import InvitationError, SettingsError, SkepError, StorageError
from skep.core.policy.allowance import Change, PauseState, Reaction
from skep.core.policy.conditions import Condition, answered
from skep.core.policy.growth import MEASUREMENTS, Use
from skep.core.project.manifest import VerifiedProject
from skep.core.record.contributions import Contribution, ContributionState, Evaluation, Tally
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem, verbatim
from skep.engine.engine import INBOX, OUR_OWN, RECORDED_AGAIN, Engine
from skep.ports import Post

PROJECT = make_project()
INVITED = make_project(manifest=raw(membership="invited"))
FULL = StorageError(verbatim("The disk is full."), verbatim("Free some space."))
SOON = 30.0
"""Seconds after which a wait fails; no behaviour is measured by it."""


@dataclass
class House:
    """An engine on fakes, and the calls of its observer."""

    clock: FakeClock = field(default_factory=FakeClock)
    ledger: FakeLedger = field(default_factory=FakeLedger)
    shards: FakeShards = field(default_factory=FakeShards)
    settings: FakeSettings = field(default_factory=FakeSettings)
    pauses: FakePauses = field(default_factory=FakePauses)
    invitations: FakeInvitations = field(default_factory=FakeInvitations)
    revocations: FakeRevocations = field(default_factory=FakeRevocations)
    sensors: tuple[FakeSensor, ...] = ()
    on_start: tuple[m.Message, ...] = (make_joined(),)
    told: list[tuple[m.Message, Snapshot]] = field(default_factory=list)
    notified: list[Problem] = field(default_factory=list)
    ledger_threads: set[str] = field(default_factory=set)
    observing: Callable[[m.Message, Snapshot], None] = lambda *_: None

    def __post_init__(self) -> None:
        self.engine = Engine(
            clock=self.clock,
            make_worker=self.make_worker,
            open_ledger=self.open_ledger,
            shards=self.shards,
            settings=self.settings,
            pauses=self.pauses,
            identity=lambda project: FakeIdentity(Path(f"/home/someone/{project.id}.key")),
            notify=self.notified.append,
            invitations=self.invitations,
            revocations=self.revocations,
            sensors=self.sensors,
            graphical=bool(self.sensors),
        )
        self.engine.observe(self.observe)

    def make_worker(self, post: Post) -> FakeWorker:
        self.worker = FakeWorker(post, on_start=self.on_start)
        return self.worker

    def open_ledger(self) -> FakeLedger:
        self.ledger_threads.add(threading.current_thread().name)
        return self.ledger

    def observe(self, message: m.Message, snapshot: Snapshot) -> None:
        self.told.append((message, snapshot))
        self.observing(message, snapshot)

    def saw(self, kind: type[Any]) -> list[Any]:
        return [message for message, _ in list(self.told) if isinstance(message, kind)]

    def wait(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + SOON
        while not condition():
            assert time.monotonic() < deadline, f"it did not come to that: {self.engine.snapshot}"
            time.sleep(0.005)

    def wait_phase(self, phase: Phase) -> None:
        self.wait(lambda: self.engine.snapshot.phase is phase)

    def train(self, project: VerifiedProject = PROJECT) -> None:
        self.engine.start()
        self.wait(lambda: self.engine.snapshot.allowance.share == 1.0)  # the sensors have answered
        self.engine.post(m.Join(project))
        self.wait_phase(Phase.TRAINING)
        self.wait(lambda: self.saw(m.WorkerJoined))  # observers are told after the effects

    def quit(self) -> None:
        self.engine.post(m.Quit())
        assert self.engine.join(SOON)


@pytest.fixture
def make_house() -> Iterator[Callable[..., House]]:
    houses: list[House] = []

    def make(**parts: Any) -> House:
        houses.append(House(**parts))
        return houses[-1]

    yield make
    for house in houses:
        house.quit()


@pytest.fixture
def house(make_house: Callable[..., House]) -> House:
    return make_house()


def test_constructing_starts_nothing(house: House):
    assert not house.ledger_threads
    assert "engine" not in {thread.name for thread in threading.enumerate()}
    house.engine.start()


def test_a_join_goes_from_the_index_to_the_worker(house: House):
    house.ledger.positions["tiny"] = 77
    house.train()
    (start,) = house.worker.starts
    assert start.index == make_index()
    assert (start.identity_path, start.position) == (f"/home/someone/{PROJECT.manifest.id}.key", 77)
    assert (start.listen_host, start.port) == ("0.0.0.0", 0)
    assert [type(message).__name__ for message in (*house.saw(m.Join), *house.saw(m.IndexArrived))] == [
        "Join",
        "IndexArrived",
    ]


def test_observers_are_told_after_the_effects(house: House):
    seen_rows: list[int] = []
    house.observing = lambda message, _: (
        seen_rows.append(len(house.ledger.rows)) if isinstance(message, m.ContributionConfirmed) else None
    )
    house.train()
    house.engine.post(m.ContributionConfirmed("c1", 3, 8, 2))
    house.wait(lambda: seen_rows)
    assert seen_rows == [1]


def test_the_ledger_is_opened_in_the_engines_thread_and_closed_at_the_end(house: House):
    house.train()
    assert house.ledger_threads == {"engine"}
    house.quit()
    assert house.ledger.closed
    assert house.shards.closed
    assert house.worker.closed


def test_commands_reach_the_ports(house: House):
    house.train()
    house.engine.post(m.Pause())
    house.wait(lambda: house.worker.told == [m.SetShare(0.0)])
    assert house.pauses.paused
    house.engine.post(m.Resume())
    house.wait(lambda: house.worker.told[-1] == m.SetShare(1.0))
    assert not house.pauses.paused
    house.engine.post(m.ChangeSettings({"compute.share_away": 0.5}))
    house.wait(lambda: house.worker.told[-1] == m.SetShare(0.5))
    assert house.settings.values["compute.share_away"] == 0.5


def test_progress_and_evaluations_are_saved(house: House):
    house.train()
    house.engine.post(m.WorkerProgress(make_progress(), "c1", 16, position=99))
    house.engine.post(m.WorkerEvaluated(Evaluation(3, 4.5)))
    house.wait(lambda: house.ledger.measured)
    assert house.ledger.positions == {"tiny": 99}
    assert house.ledger.pending("tiny") == [Contribution("c1", 3, 16, ContributionState.PENDING)]


def test_a_shard_is_fetched_and_handed_to_the_worker(house: House):
    house.train()
    wanted = make_index().shards[0].sha256
    house.engine.post(m.ShardWanted(wanted))
    house.wait(lambda: house.worker.told)
    assert house.worker.told == [m.ShardArrived(wanted, f"/shards/{wanted}")]


def test_what_is_pending_when_the_worker_goes_is_told_as_lost(house: House):
    house.train()
    house.engine.post(m.WorkerProgress(make_progress(), "c1", 16))
    house.quit()
    (row,) = house.ledger.contributions("tiny")
    assert (row.state, in_english(row.reason)) == (ContributionState.LOST, "left before the round")
    assert [lost.id for lost in house.saw(m.ContributionLost)] == ["c1"]
    assert house.told[-1][1].totals.lost == Tally(1, 16)


def test_what_an_earlier_life_left_pending_is_lost_at_the_start(house: House):
    house.ledger.record("tiny", Contribution("old", 1, 8, ContributionState.PENDING))
    house.ledger.record("tiny", Contribution("done", 1, 8, ContributionState.CONFIRMED))
    house.engine.start()
    house.wait(lambda: house.saw(m.ContributionLost))
    assert in_english(house.ledger.rows["old"][1].reason) == "skep ended before the round"
    assert house.ledger.rows["done"][1].state is ContributionState.CONFIRMED
    assert house.engine.snapshot.totals.lost == Tally()


def test_the_wall_clock_moves_the_session_by_itself(house: House):
    house.pauses.save(paused=True, until=house.clock.wall_now + 60)
    house.engine.start()
    assert house.engine.snapshot.pause == PauseState(house.clock.wall_now + 60)
    house.clock.advance(61)
    house.wait(lambda: house.engine.snapshot.pause is None)
    house.wait(lambda: not house.pauses.paused)


def test_a_worker_that_dies_comes_back(house: House):
    house.train()
    house.worker.exit(-11)
    house.wait_phase(Phase.RECOVERING)
    house.clock.advance(2)
    house.wait_phase(Phase.TRAINING)
    assert len(house.worker.starts) == 2


def test_a_worker_that_has_grown_ends_at_an_edge_and_comes_back_and_the_log_says_so(
    house: House, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "skep.engine.engine")
    house.train()
    house.engine.post(m.WorkerProgress(make_progress(epoch=4)))
    for use in [Use(10**9, 100)] * MEASUREMENTS + [Use(10**10, 101)] * MEASUREMENTS:
        house.engine.post(m.WorkerMeasured(use))
    house.wait(lambda: len(house.worker.starts) == 2)
    house.wait_phase(Phase.TRAINING)
    assert m.FinishTraining(at_edge=True) in house.worker.told
    assert [line for line in caplog.messages if "memory=1000000000," in line and "memory=10000000000," in line]
    assert not house.notified


def test_leave_then_join_another_project_ignores_the_late_index(house: House):
    house.shards.hold = True
    house.engine.start()
    house.engine.post(m.Join(PROJECT))
    house.wait(lambda: house.shards.held)
    (late,) = house.shards.held
    house.engine.post(m.Leave())
    house.engine.post(m.Join(make_project("other")))
    house.wait(lambda: house.shards.stopped and house.shards.held)
    late()
    house.wait(lambda: house.saw(m.IndexArrived))
    assert not house.worker.starts
    house.shards.held[0]()
    house.wait(lambda: house.worker.starts)


# --- sensors


def test_what_the_sensors_see_reaches_the_worker_and_the_timeline(make_house: Callable[..., House]):
    sensor = FakeSensor({Condition.INPUT: answered(9999.0)})
    house = make_house(sensors=(sensor,))
    house.train()
    sensor.seen = {Condition.INPUT: answered(0.0)}
    sensor.happen()
    house.wait(lambda: m.SetShare(0.2, present=True) in house.worker.told)
    house.engine.post(m.WorkerPaused(0.2, 0.01))
    house.wait(lambda: house.ledger.reacted)
    assert [change.rule for change in house.ledger.timeline][-1] == "input"
    assert house.ledger.reacted[0].rule == "input"


def test_until_the_sensors_answered_somebody_may_be_there(make_house: Callable[..., House]):
    gate = threading.Event()
    house = make_house(sensors=(FakeSensor({Condition.INPUT: answered(9999.0)}, hanging=gate),))
    house.engine.start()
    assert house.engine.snapshot.allowance.share == 0.2
    gate.set()
    house.wait(lambda: house.engine.snapshot.allowance.share == 1.0)


def test_a_sensor_that_hangs_while_it_runs_caps_the_share(make_house: Callable[..., House]):
    gate = threading.Event()
    sensor = FakeSensor({Condition.INPUT: answered(9999.0)})
    house = make_house(sensors=(sensor,))
    house.train()
    sensor.hanging = gate
    reads = sensor.reads
    sensor.happen()
    house.wait(lambda: sensor.reads > reads)
    house.clock.advance(5)
    house.wait(lambda: house.engine.snapshot.allowance.share == 0.2)
    assert "until it answers again" in in_english(house.engine.snapshot.allowance.reason)
    gate.set()
    house.wait(lambda: house.engine.snapshot.conditions[Condition.INPUT].value is not None)


def test_the_sensors_end_with_the_engine(make_house: Callable[..., House]):
    sensor = FakeSensor({Condition.INPUT: answered(9999.0)})
    house = make_house(sensors=(sensor,))
    house.engine.start()
    house.wait(lambda: sensor.reads)
    house.quit()
    # the engine waits for them only so long
    house.wait(lambda: sensor.closed)
    house.wait(lambda: not [each.name for each in threading.enumerate() if each.name.startswith("sensor")])


def test_reactions_are_kept_from_the_last_time(make_house: Callable[..., House]):
    house = make_house()
    house.ledger.reacted = [Reaction(float(number), "input", 0.2, 0.1) for number in range(30)]
    house.engine.start()
    assert [each.at for each in house.engine.snapshot.reactions] == [float(number) for number in range(10, 30)]


def test_what_a_stay_costs_is_added_to_the_ledger(house: House):
    house.train()
    house.clock.advance(2.0)
    house.wait(lambda: house.engine.snapshot.meter.spent.staying == 2.0)
    house.quit()
    assert house.ledger.spent("tiny").training == 2.0


@pytest.mark.parametrize(("alive", "ends"), [(None, 500.0), (800.0, 800.0)])
def test_the_timeline_of_a_life_that_broke_off_is_closed(
    make_house: Callable[..., House], alive: float | None, ends: float
):
    house = make_house()
    house.ledger.record_change(Change(500.0, "tiny", 1.0, "away", verbatim("Training at full share.")))
    house.ledger.added_at = alive
    house.engine.start()
    last = house.ledger.timeline[-1]
    assert (last.at, last.project, in_english(last.reason)) == (ends, "", "skep was not running.")


# --- failures


def test_settings_that_cannot_be_read_are_told_by_start(make_house: Callable[..., House]):
    house = make_house(settings=FakeSettings(failing=SettingsError(verbatim("The settings file is damaged."))))
    with raises(SettingsError, match="damaged"):
        house.engine.start()
    assert house.engine.join(SOON)


def test_a_ledger_that_cannot_be_written_at_the_start_is_told_and_written_later(make_house: Callable[..., House]):
    house = make_house()
    house.ledger.record("tiny", Contribution("old", 1, 8, ContributionState.PENDING))
    house.ledger.failing = FULL
    house.engine.start()
    house.wait(lambda: house.notified == [FULL.problem])
    house.ledger.failing = None
    house.wait(lambda: not house.ledger.pending("tiny"))
    house.quit()


class UnreadableLedger(FakeLedger):
    def projects(self) -> Sequence[str]:
        raise FULL


def test_a_ledger_that_cannot_be_read_at_the_start_is_told_and_closed(make_house: Callable[..., House]):
    house = make_house(ledger=UnreadableLedger())
    with pytest.raises(StorageError):
        house.engine.start()
    assert house.ledger.closed


def test_what_was_never_recorded_is_told_at_the_end(house: House):
    house.train()
    house.ledger.failing = FULL
    for name in ("c1", "c2"):
        house.engine.post(m.ContributionConfirmed(name, 3, 8, 2))
    house.quit()
    told = house.saw(m.ProblemArose)[-1].problem
    assert in_english(told.title).startswith("2 contributions could not be recorded")


def test_a_worker_that_cannot_start_is_a_problem(house: House):
    house.worker.cannot_start = SkepError(verbatim("The training process could not be started."))
    house.engine.start()
    house.engine.post(m.Join(PROJECT))
    house.wait(lambda: house.notified)
    house.wait_phase(Phase.IDLE)
    assert house.notified == [house.worker.cannot_start.problem]


def test_a_full_disk_is_told_once_and_its_rows_are_written_later(house: House):
    house.train()
    house.ledger.failing = FULL
    house.engine.post(m.ContributionConfirmed("c1", 3, 8, 2))
    house.engine.post(m.ContributionConfirmed("c2", 4, 8, 2))
    house.wait(lambda: len(house.saw(m.ContributionConfirmed)) == 2)
    house.wait(lambda: house.notified == [FULL.problem])
    assert len(house.saw(m.ProblemArose)) == 1
    assert house.engine.snapshot.phase is Phase.TRAINING
    house.ledger.failing = None
    house.wait(lambda: len(house.ledger.rows) == 2)
    assert house.ledger.totals("tiny").confirmed == Tally(2, 16)
    house.wait(lambda: len(house.notified) == 2)
    assert house.notified == [FULL.problem, RECORDED_AGAIN]
    assert house.engine.snapshot.problem is None
    # the next one is told again
    house.ledger.failing = FULL
    house.engine.post(m.ContributionConfirmed("c3", 5, 8, 2))
    house.wait(lambda: house.notified[2:] == [FULL.problem])


def test_a_ledger_that_another_program_holds_does_not_delay_the_give_back(make_house: Callable[..., House]):
    class Held(FakeLedger):
        held = False

        def record(self, project_id: str, contribution: Contribution) -> None:
            if self.held:
                time.sleep(0.3)  # the ledger's patience with another program
                raise FULL
            super().record(project_id, contribution)

    sensor = FakeSensor({Condition.INPUT: answered(9999.0)})
    house = make_house(sensors=(sensor,), ledger=Held())
    house.train()
    house.ledger.held = True
    begun = time.monotonic()
    for number in range(20):
        house.engine.post(m.ContributionConfirmed(f"c{number}", number, 8, 2))
    sensor.seen = {Condition.INPUT: answered(0.0)}
    sensor.happen()
    house.wait(lambda: m.SetShare(0.2, present=True) in house.worker.told)
    assert time.monotonic() - begun < 3
    house.ledger.held = False
    house.wait(lambda: len(house.ledger.rows) == 20)


def test_rows_a_full_disk_refused_are_not_lost_with_the_worker(house: House):
    house.train()
    house.engine.post(m.ContributionPending("c1", 3, 8))
    house.wait(lambda: house.ledger.rows)
    house.ledger.failing = FULL
    house.engine.post(m.ContributionConfirmed("c1", 3, 8, 2))
    house.wait(lambda: house.saw(m.ProblemArose))
    house.worker.exit(-11)
    house.wait_phase(Phase.RECOVERING)
    house.ledger.failing = None
    house.quit()
    assert house.ledger.rows["c1"][1].state is ContributionState.CONFIRMED
    assert not house.saw(m.ContributionLost)


def test_a_row_a_full_disk_refused_does_not_come_after_a_later_one(house: House):
    house.train()
    house.ledger.failing = FULL
    house.engine.post(m.WorkerProgress(make_progress(), "c1", 16))
    house.wait(lambda: house.saw(m.ProblemArose))
    house.ledger.failing = None
    house.engine.post(m.WorkerProgress(make_progress(), "c1", 24))
    ticks = len(house.saw(m.Tick))
    house.wait(lambda: len(house.saw(m.Tick)) > ticks + 1)
    assert [row.samples for row in house.ledger.pending("tiny")] == [24]


def test_what_is_pending_is_told_as_lost_even_when_the_ledger_refuses(house: House):
    house.train()
    house.ledger.failing = FULL
    house.engine.post(m.ContributionPending("c1", 3, 8))
    house.quit()
    assert [lost.id for lost in house.saw(m.ContributionLost)] == ["c1"]


def test_an_invitation_goes_to_the_worker(make_house: Callable[..., House]):
    house = make_house(invitations=FakeInvitations("{signed}"))
    house.train(INVITED)
    assert house.worker.starts[0].invitation == "{signed}"


def test_a_worker_gets_the_revocations_that_are_known_and_those_that_come_while_it_runs(
    make_house: Callable[..., House],
):
    house = make_house(invitations=FakeInvitations("{signed}"), revocations=FakeRevocations("{known}"))
    house.train(INVITED)
    assert house.worker.starts[0].revocations == "{known}"
    (post,) = house.revocations.posts
    post(m.RevocationsArrived("{new}"))
    house.wait(lambda: m.RevocationsArrived("{new}") in house.worker.told)
    house.engine.post(m.Leave(now=True))
    house.wait_phase(Phase.IDLE)
    house.wait(lambda: house.revocations.posts == [])


def test_without_an_invitation_nothing_is_attempted(make_house: Callable[..., House]):
    missing = InvitationError(verbatim("This computer has no invitation."), verbatim("Ask for one."))
    house = make_house(invitations=FakeInvitations(failing=missing))
    house.engine.start()
    house.engine.post(m.Join(INVITED))
    house.wait(lambda: house.saw(m.IndexFailed))
    house.wait_phase(Phase.IDLE)
    assert house.notified == [missing.problem]
    assert house.shards.held == []
    assert house.worker.starts == []


def test_an_index_that_cannot_be_asked_for_is_a_failed_join(make_house: Callable[..., House]):
    class Refusing(FakeShards):
        def fetch_index(self, project: object, post: Post) -> None:
            raise FULL

    house = make_house(shards=Refusing())
    house.engine.start()
    house.engine.post(m.Join(PROJECT))
    house.wait(lambda: house.notified == [FULL.problem])
    house.wait_phase(Phase.IDLE)


def test_a_shard_that_cannot_be_asked_for_is_told_to_the_worker(make_house: Callable[..., House]):
    class Refusing(FakeShards):
        def fetch(self, shard: object, reach: object, post: Post) -> None:
            raise FULL

    house = make_house(shards=Refusing())
    house.train()
    house.engine.post(m.ShardWanted(make_index().shards[0].sha256))
    house.wait(lambda: house.worker.told)
    assert house.worker.told == [m.ShardFailed(make_index().shards[0].sha256, FULL.problem)]


def test_settings_that_cannot_be_saved_are_in_force_and_told(house: House):
    house.train()
    house.settings.failing = FULL
    house.engine.post(m.ChangeSettings({"compute.share_away": 0.5}))
    house.wait(lambda: house.notified)
    assert house.engine.snapshot.allowance.share == 0.5


def test_the_loop_survives_a_part_with_a_bug(make_house: Callable[..., House]):
    class Broken(FakeLedger):
        def save_position(self, project_id: str, position: int) -> None:
            raise ZeroDivisionError

    house = make_house(ledger=Broken())
    house.train()
    house.engine.post(m.WorkerProgress(make_progress(), position=1))
    house.wait(lambda: house.notified == [OUR_OWN])
    house.engine.post(m.Pause())
    house.wait_phase(Phase.PAUSED)


def test_the_loop_survives_an_observer_with_a_bug(house: House):
    def broken(message: m.Message, snapshot: Snapshot) -> None:
        raise ZeroDivisionError

    house.engine.observe(broken)
    house.train()
    house.wait(lambda: OUR_OWN in house.notified)
    house.wait(lambda: house.saw(m.WorkerJoined))


def test_the_loop_survives_a_notifier_with_a_bug(make_house: Callable[..., House]):
    class Broken(list[Problem]):
        def append(self, problem: Problem) -> None:
            raise ZeroDivisionError

    house = make_house(notified=Broken())
    house.train()
    house.engine.post(m.ProblemArose(FULL.problem))
    house.engine.post(m.Pause())
    house.wait_phase(Phase.PAUSED)
    assert house.engine.snapshot.problem == FULL.problem


def test_the_loop_survives_a_message_without_a_step(house: House):
    house.train()
    house.engine.post("nonsense")  # type: ignore[arg-type] # an invalid type is the test
    house.wait(lambda: house.engine.snapshot.problem == OUR_OWN)


# --- the queue


def test_an_observer_may_post(house: House):
    house.observing = lambda message, _: house.engine.post(m.Leave()) if isinstance(message, m.WorkerJoined) else None
    house.engine.start()
    house.engine.post(m.Join(PROJECT))
    house.wait(lambda: house.saw(m.WorkerExited))
    assert house.engine.snapshot.phase is Phase.IDLE


def test_a_flood_slows_its_sender_and_not_the_rest(house: House):
    gate = threading.Event()
    house.observing = lambda message, _: gate.wait(SOON) if isinstance(message, m.Resume) else None
    house.train()
    house.engine.post(m.Resume())
    flood = threading.Thread(target=lambda: [house.engine.post(m.WorkerPaused(1.0, 0.1)) for _ in range(3 * INBOX)])
    flood.start()
    flood.join(0.5)
    assert flood.is_alive(), "more was taken than there is room for"
    gate.set()
    flood.join(SOON)
    house.wait(lambda: len(house.saw(m.WorkerPaused)) == 3 * INBOX)


def test_a_stream_of_messages_does_not_hold_up_the_clock(house: House):
    house.engine.start()
    stop = time.monotonic() + SOON
    while time.monotonic() < stop and not house.saw(m.Tick):
        house.engine.post(m.WorkerPaused(1.0, 0.1))
        house.clock.advance(0.01)
        time.sleep(0.001)
    assert house.saw(m.Tick)


def test_posting_after_the_end_is_harmless(house: House):
    house.train()
    house.quit()
    for _ in range(2 * INBOX):
        house.engine.post(m.Leave())


def test_a_poster_that_waits_for_room_is_let_go_at_the_end(house: House):
    gate = threading.Event()
    house.observing = lambda message, _: gate.wait(SOON) if isinstance(message, m.Quit) else None
    house.engine.start()
    house.engine.post(m.Quit())
    flood = threading.Thread(target=lambda: [house.engine.post(m.Resume()) for _ in range(3 * INBOX)])
    flood.start()
    flood.join(0.3)
    gate.set()
    flood.join(SOON)
    assert not flood.is_alive()
