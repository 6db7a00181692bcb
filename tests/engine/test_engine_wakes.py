"""An engine returns to the swarm after a sleep, whether its worker survived or not; a real ledger loses nothing."""

import time

import pytest

from fakes import FakeClock, FakeIdentity, FakePauses, FakeSettings, FakeShards, FakeWorker, make_joined, make_project
from skep.adapters.sensors.sleep import SleepWatch
from skep.adapters.storage.ledger_sqlite import SqliteLedger
from skep.core.record.contributions import ContributionState
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.engine.engine import Engine

SOON = 20.0
MINUTE, NIGHT = 60.0, 8 * 3600.0


class House:
    """An engine on a real ledger and a stand-in worker, on a computer that can sleep."""

    def __init__(self, home):
        self.home, self.asleep = home, 0.0
        self.seen, self.clock, self.workers = [], FakeClock(), []
        self.engine = Engine(
            clock=self.clock,
            make_worker=self.make_worker,
            open_ledger=lambda: SqliteLedger(home.ledger_file),
            shards=FakeShards(),
            settings=FakeSettings(),
            pauses=FakePauses(),
            identity=lambda _project: FakeIdentity(),
        )
        self.engine.observe(lambda message, _snapshot: self.seen.append(message))
        awake = self.clock.monotonic
        self.watch = SleepWatch(self.engine.post, clocks=(lambda: awake() + self.asleep, awake))

    def make_worker(self, post):
        self.worker = FakeWorker(post, on_start=(make_joined(),))
        return self.worker

    def close_the_lid(self, seconds):
        self.asleep += seconds
        self.clock.wall_now += seconds
        self.watch.read()

    def until(self, condition):
        deadline = time.monotonic() + SOON
        while not condition():
            assert time.monotonic() < deadline, self.engine.snapshot
            time.sleep(0.01)

    def states(self):
        ledger = SqliteLedger(self.home.ledger_file)
        try:
            return {each.id: each.state for each in ledger.contributions()}
        finally:
            ledger.close()


@pytest.fixture
def house(home):
    made = House(home)
    made.engine.start()
    made.engine.post(m.Join(make_project()))
    made.until(lambda: made.engine.snapshot.phase is Phase.TRAINING)
    made.engine.post(m.ContributionPending("c0", 3, 16))
    made.engine.post(m.ContributionConfirmed("c0", 3, 16, peers=1))
    made.engine.post(m.ContributionPending("c1", 4, 16))
    made.watch.read()
    yield made
    made.engine.post(m.Quit())
    assert made.engine.join(SOON)


def test_after_a_night_a_fresh_worker_goes_on_and_the_ledger_says_what_became_of_the_old_ones_work(house):
    house.close_the_lid(NIGHT)
    house.until(lambda: m.Slept(NIGHT) in house.seen)
    house.until(lambda: len(house.worker.starts) == 2 and house.engine.snapshot.phase is Phase.TRAINING)
    assert house.engine.snapshot.failures == 0
    house.until(
        lambda: house.states() == {"c0": ContributionState.CONFIRMED, "c1": ContributionState.LOST},
    )


def test_a_worker_that_did_not_outlive_the_night_is_replaced_all_the_same(house):
    house.worker.running = False
    house.engine.post(m.WorkerExited(1))
    house.until(lambda: house.engine.snapshot.phase is Phase.RECOVERING)
    house.close_the_lid(NIGHT)
    house.until(lambda: len(house.worker.starts) == 2 and house.engine.snapshot.phase is Phase.TRAINING)
    house.until(
        lambda: house.states() == {"c0": ContributionState.CONFIRMED, "c1": ContributionState.LOST},
    )


def test_a_worker_that_reports_nothing_for_a_minute_is_ended_and_replaced(house):
    ticks = 0
    while len(house.worker.starts) == 1:
        house.clock.advance(2.0)
        house.engine.post(m.Tick())
        ticks += 1
        house.until(lambda due=ticks: sum(isinstance(message, m.Tick) for message in house.seen) >= due)
    house.until(lambda: house.engine.snapshot.phase is Phase.TRAINING)
    assert (house.worker.ended_stuck, len(house.worker.starts)) == (1, 2)
    assert 2.0 * ticks > MINUTE
