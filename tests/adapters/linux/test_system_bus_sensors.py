"""Battery, metered connection and sleep over a real bus: stand-ins that change, start late, hang and end."""

import threading
import time

import pytest
from jeepney.io.blocking import DBusConnection

from desktops import PrivateBus, need_dbusmock
from english import in_english
from skep.adapters.linux.system_bus import LogindSleepWatch, NetworkManagerSensor, UPowerSensor
from skep.adapters.sensors.battery import NO_BATTERY
from skep.core.policy.conditions import Condition, Source, answered, missing
from skep.core.session import messages as m
from skep.core.text import verbatim

pytestmark = pytest.mark.alone

LONG = 60.0
"""Longer than every action here: a wait that ends earlier was woken."""
SOON = 20.0
UPOWER = "org.freedesktop.UPower"
MANAGER = "org.freedesktop.NetworkManager"


@pytest.fixture
def bus():
    need_dbusmock()
    made = PrivateBus()
    yield made
    made.close()


@pytest.fixture
def upower(bus):
    return bus.template("upower", UPOWER)


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


@pytest.fixture
def battery_sensor(bus, opened):
    """Makes a sensor without a battery of the kernel, since the tests may run on a laptop."""

    def make(kernel=NO_KERNEL_BATTERY, **options):
        return opened(UPowerSensor(bus.address, kernel=lambda: kernel, **options))

    return make


NO_KERNEL_BATTERY = missing(NO_BATTERY)
ON_BATTERY = answered(value=True, note=verbatim("the kernel"))


def battery(sensor):
    return sensor.read()[Condition.BATTERY]


def metered(sensor):
    return sensor.read()[Condition.METERED]


def woken(sensor):
    """Starts a wait; the returned function says whether it ended long before its timeout."""
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


def plug(upower, name, kind="AddChargingBattery"):
    (path,) = upower.ask(kind, "ssdx", (name, "Example", 80.0, 3600))
    return path


# --- battery


def test_a_desktop_computer_has_no_battery(upower, battery_sensor):
    upower.ask("AddAC", "ss", ("mains", "Example"))
    seen = battery(battery_sensor())
    assert (seen.source, in_english(seen.note)) == (Source.MISSING, "This computer has no battery.")


def test_the_battery_of_a_mouse_is_none_of_the_computers(upower, battery_sensor):
    mouse = plug(upower, "mouse", "AddDischargingBattery")
    upower.ask("SetDeviceProperties", "oa{sv}", (mouse, {"PowerSupply": ("b", False)}))
    assert battery(battery_sensor()).source is Source.MISSING


def test_taking_the_mains_away_wakes_the_sensor_at_once(upower, battery_sensor):
    plug(upower, "one")
    sensor = battery_sensor()
    assert battery(sensor).value is False
    assert sensor.tells
    in_time = woken(sensor)
    upower.change({"OnBattery": ("b", True)})
    assert in_time()
    seen = battery(sensor)
    assert (seen.value, seen.source, in_english(seen.note)) == (True, Source.ANSWERS, "UPower")


def test_a_battery_that_appears_later_wakes_the_sensor_and_is_read(upower, battery_sensor):
    sensor = battery_sensor()
    assert battery(sensor).source is Source.MISSING
    in_time = woken(sensor)
    plug(upower, "late")
    assert in_time()
    assert (battery(sensor).source, battery(sensor).value) == (Source.ANSWERS, False)


def test_of_several_batteries_one_may_run_down_while_the_computer_is_on_mains(upower, battery_sensor):
    plug(upower, "inner")
    plug(upower, "outer", "AddDischargingBattery")
    assert battery(battery_sensor()).value is False
    upower.change({"OnBattery": ("b", True)})
    assert battery(battery_sensor()).value is True


def test_a_upower_that_starts_later_is_noticed(bus, battery_sensor):
    sensor = battery_sensor()
    assert battery(sensor).source is Source.MISSING
    in_time = woken(sensor)
    upower = bus.template("upower", UPOWER)
    assert in_time()
    upower.change({"OnBattery": ("b", True)})
    assert battery(sensor).value is True


def test_without_upower_the_kernel_is_asked(battery_sensor):
    sensor = battery_sensor(ON_BATTERY)
    assert battery(sensor) == ON_BATTERY
    assert not sensor.tells  # so the engine reads it often


def test_a_upower_that_hangs_is_silent_and_heard_again_when_it_goes_on(upower, battery_sensor):
    plug(upower, "one")
    sensor = battery_sensor(answer_seconds=0.3)
    until(lambda: battery(sensor).value is False)
    upower.freeze()
    seen = battery(sensor)
    assert (seen.source, in_english(seen.note)) == (Source.SILENT, "UPower does not answer.")
    upower.thaw()
    until(lambda: battery(sensor).source is Source.ANSWERS)


def test_while_upower_hangs_the_kernel_is_believed(upower, battery_sensor):
    sensor = battery_sensor(ON_BATTERY, answer_seconds=0.3)
    upower.freeze()
    assert battery(sensor) == ON_BATTERY


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
    assert (seen.source, seen.value, in_english(seen.note)) == (Source.ANSWERS, value, note)


def test_what_networkmanager_does_not_know_is_not_guessed(network):
    network.say(0)
    seen = metered(network.sensor())
    assert (seen.source, in_english(seen.note)) == (
        Source.MISSING,
        "NetworkManager does not know whether this connection is metered.",
    )


def test_a_connection_that_becomes_metered_wakes_the_sensor_at_once(network):
    network.say(2)
    sensor = network.sensor()
    assert metered(sensor).value is False
    assert sensor.tells
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
    network.say(1)  # arrives before the answer to the next call
    metered(sensor)
    assert woken(sensor)()


def test_a_change_that_comes_in_one_piece_with_an_answer_is_not_lost(network, monkeypatch):
    network.say(2)
    sensor = network.sensor()
    metered(sensor)
    send = DBusConnection.send_message

    def sent_right_before_a_change(connection, *message, **how):
        monkeypatch.setattr(DBusConnection, "send_message", send)
        send(connection, *message, **how)
        network.say(1)

    monkeypatch.setattr(DBusConnection, "send_message", sent_right_before_a_change)
    metered(sensor)
    assert woken(sensor)()
    assert metered(sensor).value is True


def test_a_networkmanager_that_hangs_is_silent(network):
    network.say(2)
    sensor = network.sensor(answer_seconds=0.3)
    until(lambda: metered(sensor).source is Source.ANSWERS)
    network.manager.freeze()
    seen = metered(sensor)
    assert (seen.source, in_english(seen.note)) == (Source.SILENT, "NetworkManager does not answer.")
    network.manager.thaw()
    until(lambda: metered(sensor).source is Source.ANSWERS)


def test_a_networkmanager_that_ended_is_silent_and_not_missing(network):
    network.say(2)
    sensor = network.sensor()
    metered(sensor)
    in_time = woken(sensor)
    network.manager.kill()
    assert in_time()
    until(lambda: in_english(metered(sensor).note) == "NetworkManager has ended.")
    assert metered(sensor).source is Source.SILENT


def test_without_networkmanager_nobody_knows(bus, opened):
    seen = metered(opened(NetworkManagerSensor(bus.address)))
    assert seen.source is Source.MISSING
    assert "NetworkManager is not running" in in_english(seen.note)


def test_without_a_bus_nobody_knows_and_the_wait_is_a_plain_one(tmp_path):
    sensor = NetworkManagerSensor(f"unix:path={tmp_path / 'none'}")
    assert metered(sensor).source is Source.MISSING
    in_time = woken(sensor)
    sensor.close()
    assert in_time()


def test_a_bus_that_goes_away_is_silence_and_not_a_storm(network):
    network.say(2)
    sensor = network.sensor()
    metered(sensor)
    in_time = woken(sensor)
    network.bus.kill()
    assert in_time()
    seen = metered(sensor)
    assert seen.source is Source.SILENT
    assert in_english(seen.note).startswith("The system bus cannot be reached")
    in_time = woken(sensor)  # without a bus, only `close` can end the wait
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
    network.manager.freeze()
    thread = threading.Thread(target=sensor.read)
    thread.start()
    until(sensor._busy.locked)  # a read that begins after `close` opens the bus again
    sensor.close()
    thread.join(SOON)
    assert not thread.is_alive()


class Network:
    def __init__(self, bus, opened):
        self.bus, self._opened = bus, opened
        self.manager = bus.template("networkmanager", MANAGER)
        # the stand-in does not have this property by default
        self.manager.ask("AddProperty", "ssv", (MANAGER, "Metered", ("u", 0)))

    def say(self, metered):
        self.manager.change({"Metered": ("u", metered)})

    def sensor(self, **options):
        return self._opened(NetworkManagerSensor(self.bus.address, **options))


@pytest.fixture
def network(bus, opened):
    return Network(bus, opened)


# --- sleep


def announce(logind, *, before):
    logind.signal("PrepareForSleep", "b", before)


def test_logind_announces_sleep_and_wake(bus, opened):
    logind = bus.logind()
    said = []
    watch = opened(LogindSleepWatch(bus.address, said.append))
    watch.read()
    assert watch.name == "Sleep, by logind"
    announce(logind, before=True)
    until(lambda: watch.wait(0.05) or said)
    assert said == [m.AboutToSleep()]
    announce(logind, before=False)
    until(lambda: watch.wait(0.05) or len(said) > 1)
    assert said == [m.AboutToSleep(), m.Slept(0.0)]


def test_a_wake_without_a_sleep_is_not_told(bus, opened):
    logind = bus.logind()
    said = []
    watch = opened(LogindSleepWatch(bus.address, said.append))
    watch.read()
    announce(logind, before=False)
    watch.wait(LONG)
    assert said == []


def test_without_logind_the_clocks_still_watch(bus, opened):
    watch = opened(LogindSleepWatch(bus.address, lambda _message: None))
    assert watch.read() == {}
    assert watch.name == "Sleep, by the clocks"
