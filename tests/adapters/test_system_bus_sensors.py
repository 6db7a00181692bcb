"""Battery, metered connection and sleep over a real bus: stand-ins that change, come late, hang and go away."""

import signal
import tempfile
import threading
import time

import psutil
import pytest

import private_bus
from skep.adapters.machine.logind import LogindSleepWatch
from skep.adapters.machine.network_manager import NetworkManagerSensor
from skep.adapters.machine.upower import UPowerSensor
from skep.core import messages as m
from skep.core.conditions import Condition, Source

pytestmark = pytest.mark.alone

LONG = 60.0
"""Nothing here takes this long; a wait that ends earlier was woken."""
SOON = 20.0
UPOWER = "org.freedesktop.UPower"
MANAGER = "org.freedesktop.NetworkManager"
LOGIND = "org.freedesktop.login1"


@pytest.fixture
def bus(monkeypatch):
    private_bus.need()
    with tempfile.TemporaryDirectory(prefix="bus-") as folder:
        made = private_bus.PrivateBus(folder)
        made.enter(monkeypatch)
        yield made
        made.close()


@pytest.fixture
def opened():
    """Closes what a test opens."""
    sensors = []

    def note(sensor):
        sensors.append(sensor)
        return sensor

    yield note
    for sensor in sensors:
        sensor.close()


@pytest.fixture(autouse=True)
def no_battery_of_its_own(monkeypatch):
    """The computer that runs the tests may well be a laptop."""
    monkeypatch.setattr(psutil, "sensors_battery", lambda: None, raising=False)


def battery(sensor):
    return sensor.read()[Condition.BATTERY]


def metered(sensor):
    return sensor.read()[Condition.METERED]


def woken(sensor):
    """Whether a wait under way ends long before its time. Begun with `begin`, asked with `in_time`."""
    began = time.monotonic()
    thread = threading.Thread(target=sensor.wait, args=(LONG,))
    thread.start()

    def in_time():
        thread.join(SOON)
        assert not thread.is_alive()
        assert time.monotonic() - began < SOON
        return True

    return in_time


def until(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def plug(bus, name, kind="AddChargingBattery"):
    (path,) = bus.ask(UPOWER, "/org/freedesktop/UPower", kind, "ssdx", (name, "Example", 80.0, 3600))
    return path


# --- battery


def test_a_desktop_computer_has_no_battery(bus, opened):
    bus.offer("upower", UPOWER)
    bus.ask(UPOWER, "/org/freedesktop/UPower", "AddAC", "ss", ("mains", "Example"))
    seen = battery(opened(UPowerSensor()))
    assert (seen.source, seen.note) == (Source.MISSING, "This computer has no battery.")


def test_the_battery_of_a_mouse_is_none_of_the_computers(bus, opened):
    bus.offer("upower", UPOWER)
    mouse = plug(bus, "mouse", "AddDischargingBattery")
    bus.ask(UPOWER, "/org/freedesktop/UPower", "SetDeviceProperties", "oa{sv}", (mouse, {"PowerSupply": ("b", False)}))
    assert battery(opened(UPowerSensor())).source is Source.MISSING


def test_taking_the_mains_away_wakes_the_sensor_at_once(bus, opened):
    bus.offer("upower", UPOWER)
    plug(bus, "one")
    sensor = opened(UPowerSensor())
    assert battery(sensor).value is False
    in_time = woken(sensor)
    bus.change(UPOWER, "/org/freedesktop/UPower", UPOWER, OnBattery=("b", True))
    assert in_time()
    seen = battery(sensor)
    assert (seen.value, seen.source, seen.note) == (True, Source.ANSWERS, "UPower")


def test_a_battery_that_appears_later_wakes_the_sensor_and_is_read(bus, opened):
    bus.offer("upower", UPOWER)
    sensor = opened(UPowerSensor())
    assert battery(sensor).source is Source.MISSING
    in_time = woken(sensor)
    plug(bus, "late")
    assert in_time()
    assert (battery(sensor).source, battery(sensor).value) == (Source.ANSWERS, False)


def test_of_several_batteries_one_may_run_down_while_the_computer_is_on_mains(bus, opened):
    bus.offer("upower", UPOWER)
    plug(bus, "inner")
    plug(bus, "outer", "AddDischargingBattery")
    assert battery(opened(UPowerSensor())).value is False
    bus.change(UPOWER, "/org/freedesktop/UPower", UPOWER, OnBattery=("b", True))
    assert battery(opened(UPowerSensor())).value is True


def test_a_upower_that_starts_later_is_noticed(bus, opened):
    sensor = opened(UPowerSensor())
    assert battery(sensor).source is Source.MISSING
    in_time = woken(sensor)
    bus.offer("upower", UPOWER)
    assert in_time()
    bus.change(UPOWER, "/org/freedesktop/UPower", UPOWER, OnBattery=("b", True))
    assert battery(sensor).value is True


def test_without_upower_the_kernel_is_asked(bus, opened, monkeypatch):
    monkeypatch.setattr(psutil, "sensors_battery", lambda: psutil._ntuples.sbattery(80, 3600, power_plugged=False))
    seen = battery(opened(UPowerSensor()))
    assert (seen.value, seen.note) == (True, "the operating system")


def test_a_upower_that_hangs_is_silent_and_heard_again_when_it_goes_on(bus, opened):
    process = bus.offer("upower", UPOWER)
    plug(bus, "one")
    sensor = opened(UPowerSensor(answer_seconds=0.3))
    assert battery(sensor).value is False
    process.send_signal(signal.SIGSTOP)
    seen = battery(sensor)
    assert (seen.source, seen.note) == (Source.SILENT, "UPower does not answer.")
    process.send_signal(signal.SIGCONT)
    until(lambda: battery(sensor).source is Source.ANSWERS)


def test_while_upower_hangs_the_kernel_is_believed(bus, opened, monkeypatch):
    process = bus.offer("upower", UPOWER)
    monkeypatch.setattr(psutil, "sensors_battery", lambda: psutil._ntuples.sbattery(80, 3600, power_plugged=False))
    sensor = opened(UPowerSensor(answer_seconds=0.3))
    process.send_signal(signal.SIGSTOP)
    assert battery(sensor).value is True


# --- metered connection


@pytest.mark.parametrize(
    ("number", "value", "note"),
    [
        (1, True, "NetworkManager"),
        (2, False, "NetworkManager"),
        (3, True, "NetworkManager's guess"),
        (4, False, "NetworkManager's guess"),
    ],
)
def test_networkmanagers_word_and_guess_are_both_taken(network, number, value, note):
    network.say(number)
    seen = metered(network.sensor())
    assert (seen.source, seen.value, seen.note) == (Source.ANSWERS, value, note)


def test_what_networkmanager_does_not_know_is_not_guessed(network):
    network.say(0)
    seen = metered(network.sensor())
    assert (seen.source, seen.note) == (
        Source.MISSING,
        "NetworkManager does not know whether this connection is metered.",
    )


def test_a_connection_that_becomes_metered_wakes_the_sensor_at_once(network):
    network.say(2)
    sensor = network.sensor()
    assert metered(sensor).value is False
    in_time = woken(sensor)
    network.say(1)
    assert in_time()
    assert metered(sensor).value is True


def test_a_wait_in_which_nothing_happens_takes_its_time(network):
    network.say(2)
    sensor = network.sensor()
    metered(sensor)
    began = time.monotonic()
    sensor.wait(0.5)
    assert time.monotonic() - began >= 0.4


def test_a_change_between_reading_and_waiting_is_not_lost(network):
    network.say(2)
    sensor = network.sensor()
    metered(sensor)
    network.say(1)
    assert woken(sensor)()


def test_what_was_heard_while_reading_ends_the_next_wait(network):
    network.say(2)
    sensor = network.sensor()
    metered(sensor)
    network.say(1)  # lies in the connection before the answer to the next question
    metered(sensor)
    assert woken(sensor)()


def test_a_networkmanager_that_hangs_is_silent(network):
    network.say(2)
    sensor = network.sensor(answer_seconds=0.3)
    assert metered(sensor).source is Source.ANSWERS
    network.process.send_signal(signal.SIGSTOP)
    seen = metered(sensor)
    assert (seen.source, seen.note) == (Source.SILENT, "NetworkManager does not answer.")
    network.process.send_signal(signal.SIGCONT)
    until(lambda: metered(sensor).source is Source.ANSWERS)


def test_a_networkmanager_that_ended_is_silent_and_not_missing(network):
    network.say(2)
    sensor = network.sensor()
    metered(sensor)
    in_time = woken(sensor)
    network.process.kill()
    assert in_time()
    network.process.wait()
    until(lambda: metered(sensor).note == "NetworkManager has ended.")
    assert metered(sensor).source is Source.SILENT


def test_without_networkmanager_nobody_knows(bus, opened):
    seen = metered(opened(NetworkManagerSensor()))
    assert seen.source is Source.MISSING
    assert "no NetworkManager" in seen.note


def test_without_a_bus_nobody_knows_and_the_wait_is_a_plain_one(monkeypatch, tmp_path):
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path / 'none'}")
    sensor = NetworkManagerSensor()
    assert metered(sensor).source is Source.MISSING
    in_time = woken(sensor)
    sensor.close()
    assert in_time()


def test_a_bus_that_goes_away_is_silence_and_not_a_storm(network):
    network.say(2)
    sensor = network.sensor()
    metered(sensor)
    in_time = woken(sensor)
    network.bus.daemon.kill()
    assert in_time()
    seen = metered(sensor)
    assert seen.source is Source.SILENT
    assert seen.note.startswith("The system bus cannot be reached")
    in_time = woken(sensor)  # a plain wait now: nothing is left that could wake it
    sensor.close()
    assert in_time()


@pytest.mark.parametrize("times", [1, 2])
def test_closing_ends_a_wait_from_another_thread(network, times):
    sensor = network.sensor()
    metered(sensor)
    in_time = woken(sensor)
    for _ in range(times):
        sensor.close()
    assert in_time()


def test_closing_ends_a_call_under_way(network):
    sensor = network.sensor(answer_seconds=LONG)
    metered(sensor)
    network.process.send_signal(signal.SIGSTOP)
    thread = threading.Thread(target=sensor.read)
    thread.start()
    sensor.close()
    thread.join(SOON)
    assert not thread.is_alive()


class Network:
    def __init__(self, bus, opened):
        self.bus, self._opened = bus, opened
        self.process = bus.offer("networkmanager", MANAGER)
        # the stand-in knows no metered connections unless told
        bus.ask(MANAGER, "/org/freedesktop/NetworkManager", "AddProperty", "ssv", (MANAGER, "Metered", ("u", 0)))

    def say(self, metered):
        self.bus.change(MANAGER, "/org/freedesktop/NetworkManager", MANAGER, Metered=("u", metered))

    def sensor(self, **options):
        return self._opened(NetworkManagerSensor(**options))


@pytest.fixture
def network(bus, opened):
    return Network(bus, opened)


# --- sleep


def announce(bus, *, before):
    body = (f"{LOGIND}.Manager", "PrepareForSleep", "b", [("b", before)])
    bus.ask(LOGIND, "/org/freedesktop/login1", "EmitSignal", "sssav", body)


def test_logind_announces_sleep_and_wake(bus, opened):
    bus.offer("logind", LOGIND)
    said = []
    watch = opened(LogindSleepWatch(said.append))
    watch.read()
    assert watch.name == "Sleep, by logind"
    announce(bus, before=True)
    until(lambda: watch.wait(0.05) or said)
    assert said == [m.AboutToSleep()]
    announce(bus, before=False)
    until(lambda: watch.wait(0.05) or len(said) > 1)
    assert said == [m.AboutToSleep(), m.Slept(0.0)]


def test_a_wake_without_a_sleep_is_not_told(bus, opened):
    bus.offer("logind", LOGIND)
    said = []
    watch = opened(LogindSleepWatch(said.append))
    watch.read()
    announce(bus, before=False)
    watch.wait(LONG)
    assert said == []


def test_without_logind_the_clocks_still_watch(bus, opened):
    watch = opened(LogindSleepWatch(lambda _message: None))
    assert watch.read() == {}
    assert watch.name == "Sleep, by the clocks"
