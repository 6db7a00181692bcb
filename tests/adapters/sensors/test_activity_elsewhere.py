"""Sensors on macOS and Windows behind ctypes, the common parts of activity sensors, and their selection."""

import math
import os
import sys
import threading

import pytest

from activity_libraries import Mac, Windows
from contracts.activity_contract import ActivityContract
from desktops import until
from english import in_english
from fakes import StillClock
from skep import senses
from skep.adapters.linux.screen_state import any_of
from skep.adapters.macos.activity import MacActivity
from skep.adapters.process.own_processes import is_our_process
from skep.adapters.sensors.idle import LOOK_AGAIN_SECONDS, FirstOf, IdleJudge
from skep.adapters.sensors.source import Wake, Woken
from skep.adapters.windows.activity import WindowsActivity
from skep.core.policy.conditions import Condition, Source, answered, missing, silent
from skep.core.text import verbatim

HERE, GONE, NONE = (
    answered(4.0, verbatim("It")),
    silent(verbatim("It does not answer.")),
    missing(verbatim("There is none.")),
)


class TestMacContract(ActivityContract):
    @pytest.fixture
    def sensor(self):
        made = MacActivity(Mac().load)
        yield made
        made.close()


class TestMacWithoutItsLibraries(ActivityContract):
    @pytest.fixture
    def sensor(self):
        made = MacActivity(refuse)
        yield made
        made.close()


class TestWindowsContract(ActivityContract):
    @pytest.fixture
    def sensor(self):
        made = WindowsActivity(Windows().load)
        yield made
        made.close()


class TestWindowsWithoutItsLibraries(ActivityContract):
    @pytest.fixture
    def sensor(self):
        made = WindowsActivity(refuse)
        yield made
        made.close()


class TestFirstOfContract(ActivityContract):
    @pytest.fixture
    def sensor(self):
        return FirstOf(Condition.INPUT, [Scripted(NONE), Scripted(HERE)])


class Scripted:
    """A sensor that reports what the test sets."""

    def __init__(self, reading, name="scripted"):
        self.reading, self.name, self.conditions = reading, name, (Condition.INPUT,)
        self.reads = self.closed = 0
        self._bell = threading.Event()

    def read(self):
        self.reads += 1
        self._bell.clear()
        return {Condition.INPUT: self.reading}

    def wait(self, seconds):
        self._bell.wait(seconds)

    def close(self):
        self.closed += 1
        self._bell.set()


def refuse(name):
    raise OSError(f"{name} cannot be loaded")


# --- macOS


def test_a_mac_tells_idle_seconds_and_that_its_screen_is_open():
    seen = MacActivity(Mac(idle=42.0).load).read()
    assert seen == {
        Condition.INPUT: answered(42.0, verbatim("macOS")),
        Condition.LOCKED: answered(value=False, note=verbatim("macOS")),
    }


def test_a_locked_mac_is_seen_and_nothing_is_kept():
    library = Mac(locked=True)
    assert MacActivity(library.load).read()[Condition.LOCKED].value is True
    assert library.held == 0


def test_a_mac_without_a_session_at_the_screen_knows_no_lock():
    assert MacActivity(Mac(session=False).load).read()[Condition.LOCKED].source is Source.MISSING


@pytest.mark.parametrize("idle", [-1.0, math.nan, math.inf, 1e12])
def test_a_mac_that_lies_is_silent(idle):
    assert MacActivity(Mac(idle=idle).load).read()[Condition.INPUT].source is Source.SILENT


def test_a_mac_whose_libraries_lack_a_function_is_silent():
    library = Mac()
    del library.CGSessionCopyCurrentDictionary
    assert {each.source for each in MacActivity(library.load).read().values()} == {Source.SILENT}


# --- Windows


def test_windows_tells_idle_seconds_lock_and_full_screen():
    seen = WindowsActivity(Windows().load).read()
    assert {condition: reading.value for condition, reading in seen.items()} == {
        Condition.INPUT: 3.5,
        Condition.LOCKED: False,
        Condition.FULL_SCREEN: False,
    }


@pytest.mark.parametrize(("now", "last", "seconds"), [(500, 2**32 - 500, 1.0), (1000, 1003, 0.0), (7000, 7000, 0.0)])
def test_windows_tick_count_begins_anew(now, last, seconds):
    assert WindowsActivity(Windows(now=now, last=last).load).read()[Condition.INPUT].value == seconds


def test_input_in_the_future_is_silence():
    reading = WindowsActivity(Windows(now=1000, last=2**31).load).read()[Condition.INPUT]
    assert reading.source is Source.SILENT or reading.value < 2**31 / 1000


@pytest.mark.parametrize(("flags", "value", "source"), [(0, True, Source.ANSWERS), (-1, None, Source.SILENT)])
def test_windows_lock_flags(flags, value, source):
    library = Windows(flags=flags)
    reading = WindowsActivity(library.load).read()[Condition.LOCKED]
    assert (reading.value, reading.source) == (value, source)
    assert library.held == []


@pytest.mark.parametrize(
    ("state", "ours", "full"),
    [(2, False, True), (2, True, False), (3, True, True), (4, False, True), (1, False, False)],
)
def test_windows_full_screen(state, ours, full):
    sensor = WindowsActivity(Windows(state=state).load, own_pid=lambda pid: ours and pid == 4711)
    assert sensor.read()[Condition.FULL_SCREEN].value is full


def test_windows_that_refuses_is_silent():
    library = Windows()
    library.works = False
    assert {each.source for each in WindowsActivity(library.load).read().values()} == {Source.SILENT}


def test_a_windows_without_a_function_lacks_that_condition_only():
    library = Windows()
    del library.WTSQuerySessionInformationW
    seen = WindowsActivity(library.load).read()
    assert seen[Condition.LOCKED].source is Source.MISSING
    assert seen[Condition.INPUT].source is Source.ANSWERS


# --- impossible times


@pytest.fixture
def clock():
    return StillClock(1000.0)


@pytest.fixture
def judge(clock):
    return IdleJudge(verbatim("It"), clock=clock, longest=clock)


@pytest.mark.parametrize("seconds", [-0.001, -5.0, math.nan, math.inf, 1100.0])
def test_a_time_that_cannot_be_is_silence_and_says_so(judge, seconds):
    reading = judge.judge(seconds)
    assert reading.source is Source.SILENT
    assert in_english(reading.note).startswith("It says")


def test_time_without_input_grows_no_faster_than_time(judge, clock):
    assert judge.judge(10.0) == answered(10.0, verbatim("It"))
    clock.now += 60
    assert judge.judge(71.0).value == 71.0  # a small error is accepted
    clock.now += 1
    assert judge.judge(700.0).source is Source.SILENT


def test_a_lie_does_not_become_true_by_being_repeated(judge, clock):
    judge.judge(10.0)
    for _ in range(20):
        clock.now += 1
        assert judge.judge(500.0).source is Source.SILENT
    assert judge.judge(30.0).value == 30.0
    clock.now += 500
    assert judge.judge(530.0).value == 530.0


def test_input_is_always_believed(judge, clock):
    judge.judge(500.0)
    clock.now += 0.1
    assert judge.judge(0.0).value == 0.0


# --- several sources


def test_the_first_that_exists_tells(clock):
    first, second = Scripted(NONE, "first"), Scripted(HERE, "second")
    sensor = FirstOf(Condition.INPUT, [first, second], clock)
    assert sensor.read() == {Condition.INPUT: HERE}
    assert sensor.name == "second"
    assert sensor.read() == {Condition.INPUT: HERE}
    assert (first.reads, second.reads) == (1, 2)


def test_a_silent_source_is_not_passed_over(clock):
    sensor = FirstOf(Condition.INPUT, [Scripted(GONE), Scripted(HERE)], clock)
    assert sensor.read() == {Condition.INPUT: GONE}


def test_a_better_source_that_came_later_is_taken_up_and_the_coarser_one_let_go(clock):
    first, second = Scripted(NONE, "first"), Scripted(HERE, "second")
    sensor = FirstOf(Condition.INPUT, [first, second], clock)
    sensor.read()
    first.reading = answered(1.0, verbatim("first"))
    assert sensor.read()[Condition.INPUT] == HERE
    clock.now += LOOK_AGAIN_SECONDS
    assert sensor.read()[Condition.INPUT].value == 1.0
    assert second.closed == 1


def test_when_the_chosen_one_is_no_more_the_next_is_asked_at_once(clock):
    first, second = Scripted(HERE, "first"), Scripted(answered(0.0, verbatim("second")), "second")
    sensor = FirstOf(Condition.INPUT, [first, second], clock)
    sensor.read()
    first.reading = NONE
    assert in_english(sensor.read()[Condition.INPUT].note) == "second"


def test_when_none_exists_it_is_missing_with_every_reason(clock):
    sensor = FirstOf(Condition.INPUT, [Scripted(NONE), Scripted(missing(verbatim("Nor this.")))], clock)
    told = sensor.read()[Condition.INPUT]
    assert (told.value, told.source) == (None, Source.MISSING)
    assert in_english(told.note) == "There is none. Nor this."


@pytest.mark.parametrize(
    ("said", "value", "source"),
    [
        ([answered(value=False), answered(value=True), GONE], True, Source.ANSWERS),
        ([answered(value=False), GONE, NONE], None, Source.SILENT),
        ([NONE, answered(value=False)], False, Source.ANSWERS),
        ([NONE, NONE], None, Source.MISSING),
        ([], None, Source.MISSING),
    ],
)
def test_one_yes_is_enough_and_doubt_is_no_no(said, value, source):
    reading = any_of(said, verbatim("Nobody tells."))
    assert (reading.value, reading.source) == (value, source)


def test_a_bell_rung_before_the_wait_ends_it():
    wake = Wake()
    wake.ring()
    assert wake.wait(600) is Woken.BY_BELL
    assert wake.wait(0) is Woken.BY_TIME
    wake.wait(0)
    wake.ring()
    assert wake.wait(600) is Woken.BY_BELL
    wake.close()


# --- whose windows


def test_our_process_and_our_children_are_ours():
    assert is_our_process(os.getpid())
    assert not is_our_process(1)
    assert not is_our_process(2**30)


# --- selection


def conditions(sensors):
    told = [condition for sensor in sensors for condition in sensor.conditions]
    assert len(told) == len(set(told)), "two tell the same"
    return set(told)


PERSON = {Condition.INPUT, Condition.FULL_SCREEN, Condition.LOCKED, Condition.INHIBITED}
NO_BUS = {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent"}


@pytest.mark.parametrize(
    ("environment", "source"),
    [
        ({"DISPLAY": ":4711"}, "X11Input"),
        ({"DISPLAY": ":4711", "XDG_SESSION_TYPE": "x11"}, "X11Input"),
        ({"DISPLAY": ":4711", "WAYLAND_DISPLAY": "wayland-0"}, "SwayidleInput"),
        ({"XDG_SESSION_TYPE": "wayland"}, "SwayidleInput"),
    ],
)
def test_a_session_at_a_screen_gets_what_fits(environment, source):
    assert senses.is_graphical(NO_BUS | environment, "linux")
    sensors = senses.of_the_person(NO_BUS | environment, "linux")
    assert conditions(sensors) == PERSON
    assert source in {type(each).__name__ for each in sensors[0]._sensors}
    assert "MutterInput" in {type(each).__name__ for each in sensors[0]._sensors}


@pytest.mark.parametrize("environment", [{}, {"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "a b c d"}])
def test_where_nobody_can_sit_at_a_screen_there_is_nobody_to_look_for(environment):
    assert not senses.is_graphical(NO_BUS | environment, "linux")
    assert senses.of_the_person(NO_BUS | environment, "linux") == []


def test_other_systems_get_their_own():
    assert conditions(senses.of_the_person({}, "darwin")) == {Condition.INPUT, Condition.LOCKED}
    assert conditions(senses.of_the_person({}, "win32")) == {Condition.INPUT, Condition.LOCKED, Condition.FULL_SCREEN}
    assert senses.is_graphical({}, "darwin")
    assert senses.is_graphical({}, "win32")


def test_an_unlucky_session_is_answered_for_in_plain_words():
    """Without a display and a bus every sensor is missing, and each note says why."""
    sensors = senses.of_the_person({**NO_BUS, "DISPLAY": ":4711"}, "linux")
    for sensor in sensors:
        for reading in sensor.read().values():
            assert reading.source is Source.MISSING
            assert in_english(reading.note).endswith(".")
        sensor.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the environment below is a Linux desktop's")
def test_the_engine_is_given_sensors_that_are_not_open(monkeypatch):
    for name, value in {**NO_BUS, "DISPLAY": ":4711", "WAYLAND_DISPLAY": "", "XDG_SESSION_TYPE": ""}.items():
        monkeypatch.setenv(name, value)
    assert conditions(senses.of_the_person()) == PERSON
    assert senses.is_graphical()


def test_scripted_wakes():
    sensor = FirstOf(Condition.INPUT, [Scripted(HERE)])
    sensor.read()
    thread = threading.Thread(target=lambda: sensor.wait(600))
    thread.start()
    until(thread.is_alive)
    sensor.close()
    thread.join(60)
    assert not thread.is_alive()
