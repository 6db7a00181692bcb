"""Sensors in separate threads: changes are posted; one that hangs or fails is silent and recovers; all threads end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contracts.sensor_contract import SensorContract
from english import in_english
from fakes import FakeSensor
from skep.adapters.clock import SystemClock
from skep.core.policy.conditions import Condition, Source, answered, missing
from skep.core.session import messages as m
from skep.core.text import verbatim
from skep.engine.sensing import Sensing, look, unread
from skep.ports import Sensor

pytestmark = pytest.mark.alone

SOON = 5.0
BATTERY = {Condition.BATTERY: answered(value=False)}


class TestFake(SensorContract):
    @pytest.fixture
    def sensor(self) -> FakeSensor:
        return FakeSensor(
            {Condition.BATTERY: answered(value=True), Condition.METERED: missing(verbatim("No such service."))}
        )


class Room:
    """A supervisor with its sensors; records what it posts."""

    def __init__(self, deadline: float = 0.2) -> None:
        self.told: list[m.ConditionsSeen] = []
        self.deadline = deadline
        self.sensing: Sensing | None = None

    def watch(self, *sensors: Sensor) -> Room:
        self.sensing = Sensing(sensors, self.post, SystemClock(), self.deadline)
        self.sensing.start()
        return self

    def post(self, message: m.Message) -> None:
        assert isinstance(message, m.ConditionsSeen)
        self.told.append(message)

    def last(self, condition: Condition) -> Any:
        found = [each.seen[condition] for each in list(self.told) if condition in each.seen]
        return found[-1] if found else None

    def wait(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + SOON
        while not condition():
            assert self.sensing is not None
            self.sensing.check()
            assert time.monotonic() < deadline, f"it did not come to that: {self.told}"
            time.sleep(0.005)


def sensor_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith(("sensor ", "closing "))}


def assert_threads_end() -> None:
    deadline = time.monotonic() + SOON
    while sensor_threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sensor_threads() == set()


@pytest.fixture
def room() -> Iterator[Room]:
    made = Room()
    yield made
    if made.sensing is not None:
        made.sensing.close()
    assert_threads_end()  # it waits for them only so long


def test_what_a_sensor_tells_is_posted_with_its_moment(room: Room):
    before, room.deadline = time.time(), SOON
    room.watch(FakeSensor(BATTERY)).wait(lambda: room.told)
    assert room.told[0].seen == BATTERY
    assert room.told[0].at is not None
    assert before - 1 <= room.told[0].at <= time.time() + 1


def test_only_news_is_posted(room: Room):
    sensor, room.deadline = FakeSensor(dict(BATTERY)), SOON
    room.watch(sensor)
    for _ in range(20):
        reads = sensor.reads
        sensor.happen()
        room.wait(lambda reads=reads: sensor.reads > reads)
    assert len(room.told) == 1
    sensor.seen = {Condition.BATTERY: answered(value=True)}
    sensor.happen()
    room.wait(lambda: len(room.told) == 2)


def test_what_the_source_tells_by_itself_is_not_waited_for(room: Room):
    sensor = FakeSensor({Condition.INPUT: answered(100.0)})
    room.watch(sensor).wait(lambda: room.told)
    sensor.seen = {Condition.INPUT: answered(0.0)}
    sensor.happen()
    room.wait(lambda: room.last(Condition.INPUT) == answered(0.0))


def test_each_sensor_is_read_at_the_pace_of_its_quickest_condition(room: Room):
    slow, quick = FakeSensor(BATTERY), FakeSensor(BATTERY | {Condition.INPUT: answered(5.0)})
    room.watch(slow, quick).wait(lambda: slow.waits and quick.waits)
    assert (slow.waits[0], quick.waits[0]) == (2.0, 0.1)


def test_what_this_computer_does_not_have_is_looked_for_seldom_until_it_is_there(room: Room):
    sensor = FakeSensor(
        {Condition.METERED: missing(verbatim("No such service.")), Condition.INPUT: missing(verbatim("No screen."))}
    )
    room.watch(sensor).wait(lambda: sensor.waits)
    assert sensor.waits[-1] == 5.0
    sensor.seen = {Condition.METERED: missing(verbatim("No such service.")), Condition.INPUT: answered(1.0)}
    sensor.happen()
    room.wait(lambda: sensor.waits[-1] == 0.1)


class Teller(FakeSensor):
    tells = True


def test_a_source_that_tells_by_itself_is_asked_less_often_while_it_does(room: Room):
    asked, told = FakeSensor(BATTERY), Teller(BATTERY)
    room.watch(asked, told).wait(lambda: asked.waits and told.waits)
    assert (asked.waits[0], told.waits[0]) == (2.0, 10.0)
    told.tells = False
    told.happen()
    room.wait(lambda: told.waits[-1] == 2.0)


def test_a_sensor_that_raises_is_silent_and_comes_back(room: Room):
    sensor = FakeSensor(BATTERY, failing=OSError("the bus is gone"))
    room.watch(sensor).wait(lambda: room.told)
    silence = room.last(Condition.BATTERY)
    assert silence.source is Source.SILENT
    assert in_english(silence.note) == "This computer does not report whether this computer is on battery."
    sensor.failing = None
    room.wait(lambda: room.last(Condition.BATTERY) == BATTERY[Condition.BATTERY])


def test_a_sensor_that_hangs_is_silent_and_comes_back(room: Room):
    gate = threading.Event()
    sensor = FakeSensor(BATTERY, hanging=gate)
    room.watch(sensor).wait(lambda: room.last(Condition.BATTERY) is not None)
    assert room.last(Condition.BATTERY).source is Source.SILENT
    assert len(room.told) == 1
    gate.set()
    room.wait(lambda: room.last(Condition.BATTERY) == BATTERY[Condition.BATTERY])


def test_one_that_hangs_does_not_hold_up_the_others(room: Room):
    gate = threading.Event()
    hanging = FakeSensor({Condition.METERED: answered(value=False)}, hanging=gate)
    room.watch(hanging, FakeSensor(BATTERY)).wait(lambda: room.last(Condition.BATTERY) is not None)
    gate.set()


def test_what_is_not_the_sensors_own_is_not_posted_and_what_it_leaves_out_is_silent(room: Room):
    sensor = FakeSensor(BATTERY, own=(Condition.METERED,))
    room.watch(sensor).wait(lambda: room.told)
    assert set(room.told[0].seen) == {Condition.METERED}
    assert room.last(Condition.METERED).source is Source.SILENT


def test_a_sensor_that_cannot_wait_or_close_is_still_read_and_let_go(room: Room):
    class Broken(FakeSensor):
        def wait(self, seconds: float) -> None:
            raise ZeroDivisionError

        def close(self) -> None:
            raise ZeroDivisionError

    sensor = Broken({Condition.INPUT: answered(5.0)})
    room.watch(sensor).wait(lambda: sensor.reads > 3)


def test_a_sensor_that_hangs_at_the_end_is_not_waited_for():
    gate = threading.Event()
    sensor, room = FakeSensor(BATTERY, hanging=gate), Room()
    room.watch(sensor).wait(sensor.reading.is_set)
    assert room.sensing is not None
    closing = threading.Thread(target=room.sensing.close)
    closing.start()
    closing.join(SOON)
    assert not closing.is_alive()
    assert sensor.closed
    gate.set()
    assert_threads_end()
    assert room.told == []


def test_posting_may_wait_without_holding_up_the_check(room: Room):
    gate, posting = threading.Event(), threading.Event()

    def post(_message: m.Message) -> None:
        posting.set()
        gate.wait(SOON)

    sensing = Sensing([FakeSensor(BATTERY)], post, SystemClock(), 0.01)
    sensing.start()
    assert posting.wait(SOON)
    checking = threading.Thread(target=sensing.check)
    checking.start()
    checking.join(SOON / 2)
    assert not checking.is_alive()
    gate.set()
    sensing.close()


# --- one reading


def test_a_look_reads_each_sensor_once():
    seen = look([FakeSensor(BATTERY), FakeSensor({Condition.INPUT: answered(7.0)})], SystemClock())
    assert seen == BATTERY | {Condition.INPUT: answered(7.0)}
    assert sensor_threads() == set()


def test_a_look_does_not_wait_for_one_that_hangs():
    gate = threading.Event()
    seen = look([FakeSensor(BATTERY, hanging=gate)], SystemClock(), deadline=0.1)
    gate.set()
    assert seen[Condition.BATTERY].source is Source.SILENT
    assert look([], SystemClock()) == {}


def test_before_the_first_reading_no_source_has_answered():
    assert {reading.source for reading in unread([FakeSensor(BATTERY)]).values()} == {Source.SILENT}
