"""Idle time, locked screens and inhibitors over D-Bus; python-dbusmock simulates desktops and the login manager."""

import os
import threading
import time

import pytest

import desktops
from contracts.activity_contract import ActivityContract
from desktops import PrivateBus, need_dbusmock, until
from english import in_english
from skep import senses
from skep.adapters.linux.bus import session_address
from skep.adapters.linux.idle_services import IdleUnit, MutterInput, ScreenSaverInput
from skep.adapters.linux.logind import LogindInput
from skep.adapters.linux.screen_state import (
    KDE,
    NOBODY_LISTS,
    POWER,
    SAVERS,
    SESSION_MANAGER,
    Inhibitors,
    ScreenLock,
)
from skep.core.policy.conditions import Condition, Source, missing

pytestmark = pytest.mark.alone

SESSION = "org.freedesktop.login1.Session"
OTHERS_PID = 1


@pytest.fixture
def bus():
    need_dbusmock()
    made = PrivateBus()
    yield made
    made.close()


@pytest.fixture
def close():
    opened = []

    def later(sensor):
        opened.append(sensor)
        return sensor

    yield later
    for sensor in opened:
        sensor.close()


@pytest.fixture
def saver(bus):
    return bus.mock(SAVERS[1].service, SAVERS[1].path, SAVERS[1].interface)


def told(sensor):
    (reading,) = sensor.read().values()
    return reading


def answered(sensor):
    return desktops.answered(lambda: told(sensor))


def log_in(logind, name="c1", kind="wayland"):
    """Add a session of this user at a screen; returns its path."""
    user = os.getuid()
    logind.ask("AddSession", "ssusb", (name, "seat0", user, "somebody", True))
    path = f"/org/freedesktop/login1/session/{name}"
    logind.change({"Type": ("s", kind)}, path, SESSION)
    return path


def wakes(sensor):
    """An event that is set when a long wait of the sensor ends."""
    woke = threading.Event()
    threading.Thread(target=lambda: (sensor.wait(600), woke.set()), daemon=True).start()
    return woke


@pytest.fixture(scope="module")
def furnished():
    """A bus with a screen saver and a login manager whose states do not change."""
    need_dbusmock()
    made = PrivateBus()
    saver = made.mock(SAVERS[1].service, SAVERS[1].path, SAVERS[1].interface)
    saver.answer("GetSessionIdleTime", "u", "ret = 1500")
    saver.answer("GetActive", "b", "ret = True")
    log_in(made.logind())
    yield made
    made.close()


class TestScreenSaverInputContract(ActivityContract):
    @pytest.fixture
    def sensor(self, furnished, close):
        return close(ScreenSaverInput(furnished.address))


class TestLogindInputContract(ActivityContract):
    @pytest.fixture
    def sensor(self, furnished, close):
        return close(LogindInput(furnished.address))


class TestScreenLockContract(ActivityContract):
    @pytest.fixture
    def sensor(self, furnished, close):
        return close(ScreenLock(furnished.address, furnished.address))


class TestInhibitorsContract(ActivityContract):
    @pytest.fixture
    def sensor(self, furnished, close):
        return close(Inhibitors(furnished.address, furnished.address))


class TestInhibitorsWhereNobodyTells(ActivityContract):
    @pytest.fixture
    def sensor(self, close):
        return close(Inhibitors(None, None))


# --- idle time


def test_idle_seconds_are_known_for_what_they_are_by_their_growth(bus, saver, close):
    began = time.monotonic()
    saver.answer("GetSessionIdleTime", "u", f"import time; ret = int(40 + time.monotonic() - {began})")
    sensor = close(ScreenSaverInput(bus.address))
    assert answered(sensor).value < 10  # taken as milliseconds until the values show seconds
    until(lambda: answered(sensor).value > 10)
    assert answered(sensor).value == pytest.approx(40 + time.monotonic() - began, abs=2)


@pytest.mark.parametrize(("factor", "start"), [(1, 0), (1, 500), (1000, 0), (1000, 2000)])
def test_the_unit_of_idle_time_shows_while_it_grows(factor, start):
    unit = IdleUnit()
    assert unit.seconds(start * factor, 100.0) <= start
    assert unit.seconds((start + 1) * factor, 101.0) <= start + 1
    assert unit.seconds((start + 2) * factor, 102.0) == start + 2
    assert unit.seconds(4 * factor, 200.0) == 4


def test_input_while_the_unit_is_sought_starts_the_search_anew():
    unit = IdleUnit()
    unit.seconds(9000, 100.0)
    unit.seconds(10, 101.0)
    assert unit.per_second is None
    unit.seconds(11, 101.5)
    unit.seconds(12, 103.0)
    assert unit.per_second == 1.0


def test_idle_time_that_stands_still_shows_no_unit():
    unit = IdleUnit()
    unit.seconds(9000, 100.0)
    assert unit.seconds(9000, 105.0) == 9.0
    assert unit.per_second is None


def test_without_idle_time_the_screen_saver_is_missing(bus, saver, close):
    saver.answer("GetActive", "b", "ret = False")
    assert answered(close(ScreenSaverInput(bus.address))).source is Source.MISSING
    assert answered(close(ScreenSaverInput(None))).source is Source.MISSING


def test_a_session_that_is_not_idle_counts_as_used_just_now(bus, close):
    log_in(bus.logind())
    reading = answered(close(LogindInput(bus.address)))
    assert reading.value == 0.0
    assert "only" in in_english(reading.note)


def test_an_idle_session_is_idle_since_it_said_so(bus, close):
    logind = bus.logind()
    path = log_in(logind)
    sensor = close(LogindInput(bus.address))
    answered(sensor)
    woke = wakes(sensor)
    since = int((time.monotonic() - 5) * 1e6)
    logind.change({"IdleHint": ("b", True), "IdleSinceHintMonotonic": ("t", since)}, path, SESSION)
    assert woke.wait(60)
    assert answered(sensor).value == pytest.approx(time.monotonic() - since / 1e6, abs=2)


def test_one_session_in_use_is_enough(bus, close):
    logind = bus.logind()
    idle, _used = log_in(logind, "c1"), log_in(logind, "c2", "x11")
    since = int((time.monotonic() - 5) * 1e6)
    logind.change({"IdleHint": ("b", True), "IdleSinceHintMonotonic": ("t", since)}, idle, SESSION)
    assert answered(close(LogindInput(bus.address))).value == 0.0


def test_an_idle_time_in_the_future_is_silence(bus, close):
    logind = bus.logind()
    path = log_in(logind)
    since = int((time.monotonic() + 500) * 1e6)
    logind.change({"IdleHint": ("b", True), "IdleSinceHintMonotonic": ("t", since)}, path, SESSION)
    sensor = close(LogindInput(bus.address))
    # silent is also one that did not answer in time
    reading = until(lambda: seen if "impossible" in in_english((seen := told(sensor)).note) else None)
    assert reading.source is Source.SILENT


def test_terminals_and_other_peoples_sessions_are_none(bus, close):
    logind = bus.logind()
    log_in(logind, "c1", "tty")
    logind.ask("AddSession", "ssusb", ("c2", "seat0", os.getuid() + 1, "another", True))
    logind.change({"Type": ("s", "x11")}, "/org/freedesktop/login1/session/c2", SESSION)
    reading = answered(close(LogindInput(bus.address)))
    assert reading.source is Source.MISSING
    assert in_english(reading.note) == "The login manager has no session at a screen."
    until(lambda: not senses.is_graphical(bus.environ, "linux"))
    until(lambda: senses.of_the_person(bus.environ, "linux") == [])
    log_in(logind, "c3")
    assert senses.is_graphical(bus.environ, "linux")


def test_a_monitor_that_lies_is_silence(bus, close):
    name = "org.gnome.Mutter.IdleMonitor"
    monitor = bus.mock(name, "/org/gnome/Mutter/IdleMonitor/Core", name)
    monitor.answer("AddUserActiveWatch", "u", "ret = 7")
    monitor.answer("GetIdletime", "t", "ret = 2000")
    sensor = close(MutterInput(bus.address))
    assert answered(sensor).value == 2.0
    monitor.answer("GetIdletime", "t", "ret = 3600000")
    assert [told(sensor).source for _ in range(3)] == [Source.SILENT] * 3
    monitor.answer("GetIdletime", "t", "ret = 100")
    assert answered(sensor).value == 0.1
    monitor.answer("GetIdletime", "s", "ret = 'yesterday'")
    assert told(sensor).source is Source.SILENT
    monitor.answer("GetIdletime", "x", "ret = -5")
    assert told(sensor).source is Source.SILENT


def test_a_watch_of_the_monitor_wakes_and_another_ones_does_not(bus, close):
    name = "org.gnome.Mutter.IdleMonitor"
    monitor = bus.mock(name, "/org/gnome/Mutter/IdleMonitor/Core", name)
    monitor.answer("AddUserActiveWatch", "u", "ret = 7")
    monitor.answer("GetIdletime", "t", "ret = 2000")
    sensor = close(MutterInput(bus.address))
    answered(sensor)
    woke = wakes(sensor)
    monitor.signal("WatchFired", "u", 8)
    assert not woke.wait(0.3)
    monitor.signal("WatchFired", "u", 7)
    assert woke.wait(60)


# --- locked


def test_a_locked_screen_is_seen_at_once(bus, saver, close):
    saver.answer("GetActive", "b", "ret = False")
    sensor = close(ScreenLock(bus.address, None))
    assert answered(sensor).value is False
    woke = wakes(sensor)
    saver.answer("GetActive", "b", "ret = True")
    saver.signal("ActiveChanged", "b", True)
    assert woke.wait(60)
    assert answered(sensor).value is True


@pytest.mark.parametrize("target", SAVERS, ids=lambda target: target.service)
def test_each_desktops_locker_is_asked(bus, close, target):
    bus.mock(target.service, target.path, target.interface).answer("GetActive", "b", "ret = True")
    assert answered(close(ScreenLock(bus.address, None))).value is True


def test_the_login_manager_knows_of_locked_sessions_too(bus, saver, close):
    saver.answer("GetActive", "b", "ret = False")
    logind = bus.logind()
    path = log_in(logind)
    sensor = close(ScreenLock(bus.address, bus.address))
    assert answered(sensor).value is False
    woke = wakes(sensor)
    logind.change({"LockedHint": ("b", True)}, path, SESSION)
    assert woke.wait(60)
    assert answered(sensor).value is True


def test_the_screen_is_not_called_locked_while_one_session_is_open(bus, close):
    logind = bus.logind()
    path, _open = log_in(logind, "c1"), log_in(logind, "c2")
    logind.change({"LockedHint": ("b", True)}, path, SESSION)
    assert answered(close(ScreenLock(None, bus.address))).value is False


def test_a_session_that_ended_is_forgotten_at_once(bus, close):
    logind = bus.logind()
    ended, _open = log_in(logind, "c1"), log_in(logind, "c2")
    sensor = close(ScreenLock(None, bus.address))
    answered(sensor)
    logind.ask("RemoveObject", "s", (ended,))
    assert answered(sensor).value is False


def test_where_no_locker_tells_it_is_missing(bus, close):
    reading = answered(close(ScreenLock(bus.address, bus.address)))
    assert reading.source is Source.MISSING
    assert in_english(reading.note) == "No screen locker on this computer reports whether it is active."


# --- services that hang or end


@pytest.mark.parametrize("make", [ScreenSaverInput, lambda at: ScreenLock(at, None)])
def test_a_service_that_hangs_is_silence_until_it_answers(bus, saver, close, make):
    saver.answer("GetActive", "b", "ret = False")
    saver.answer("GetSessionIdleTime", "u", "ret = 1")
    sensor = close(make(bus.address))
    assert answered(sensor).source is Source.ANSWERS
    saver.freeze()
    reading = told(sensor)
    assert reading.source is Source.SILENT
    assert "longer than" in in_english(reading.note)
    saver.thaw()
    until(lambda: told(sensor).source is Source.ANSWERS)


def test_a_bus_that_hangs_is_silence_at_the_greeting_too(bus, close):
    bus.logind()
    sensor = close(Inhibitors(None, bus.address))
    assert answered(sensor).value is False
    bus.freeze()
    assert told(sensor).source is Source.SILENT  # while connected
    assert told(sensor).source is Source.SILENT  # during the handshake
    assert senses.is_graphical({"DBUS_SYSTEM_BUS_ADDRESS": bus.address}, "linux")  # unknown, so assumed
    bus.thaw()
    until(lambda: answered(sensor).value is False)


def test_a_hanging_look_ends_when_the_sensor_is_closed(bus, saver):
    saver.answer("GetSessionIdleTime", "u", "ret = 1")
    sensor = ScreenSaverInput(bus.address)
    answered(sensor)
    saver.freeze()
    thread = threading.Thread(target=sensor.read)
    thread.start()
    sensor.close()
    thread.join(60)
    saver.thaw()
    assert not thread.is_alive()
    sensor.close()


def test_a_bus_that_goes_is_read_again_when_it_is_back(bus, close):
    service = bus.logind()
    sensor = close(Inhibitors(None, bus.address))
    assert answered(sensor).value is False
    woke = wakes(sensor)
    bus.stop()
    assert woke.wait(60)
    assert told(sensor).source is not Source.ANSWERS
    service.end()
    bus.start()
    bus.logind()
    assert answered(sensor).value is False


@pytest.mark.parametrize(("signature", "code"), [("", "pass"), ("s", "ret = 'perhaps'"), ("as", "ret = ['a', 'b']")])
@pytest.mark.parametrize("make", [ScreenSaverInput, lambda at: ScreenLock(at, None)])
def test_an_answer_that_makes_no_sense_is_silence(bus, saver, close, make, signature, code):
    saver.answer("GetActive", signature, code)
    saver.answer("GetSessionIdleTime", signature, code)
    assert told(close(make(bus.address))).source is Source.SILENT


def test_a_login_manager_that_talks_nonsense_is_silent(bus, close):
    logind = bus.mock("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    logind.answer("ListSessions", "as", "ret = ['one']")
    logind.answer("ListInhibitors", "as", "ret = ['one']")
    for make in (LogindInput, lambda at: ScreenLock(None, at), lambda at: Inhibitors(None, at)):
        assert told(close(make(bus.address))).source is Source.SILENT


# --- inhibitors


def inhibit(logind, what, who, pid=OTHERS_PID, mode="block"):
    row = f"({what!r}, {who!r}, 'why', {mode!r}, dbus.UInt32(1000), dbus.UInt32({pid}))"
    logind.answer("ListInhibitors", "a(ssssuu)", f"ret = [{row}]")


@pytest.mark.parametrize(
    ("what", "mode", "counts"),
    [("idle", "block", True), ("sleep:idle", "block", True), ("sleep", "block", False), ("idle", "delay", False)],
)
def test_who_inhibits_idle_at_the_login_manager_counts(bus, close, what, mode, counts):
    logind = bus.mock("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    inhibit(logind, what, "a film", mode=mode)
    assert answered(close(Inhibitors(None, bus.address))).value is counts


@pytest.mark.parametrize(
    ("who", "pid"),
    [("skep", OTHERS_PID), pytest.param("anything", os.getpid(), id="our own"), ("gnome-session", OTHERS_PID)],
)
def test_what_we_inhibit_and_what_is_passed_on_does_not_count(bus, close, who, pid):
    logind = bus.mock("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    inhibit(logind, "idle", who, pid)
    assert answered(close(Inhibitors(None, bus.address))).value is False


def gnome(bus, app="org.mozilla.firefox", flags=8):
    manager = bus.mock(SESSION_MANAGER.service, SESSION_MANAGER.path, SESSION_MANAGER.interface)
    path = "/org/gnome/SessionManager/Inhibitor1"
    interface = "org.gnome.SessionManager.Inhibitor"
    methods = [("GetAppId", "", "s", f"ret = {app!r}"), ("GetFlags", "", "u", f"ret = {flags}")]
    manager.ask("AddObject", "ssa{sv}a(ssss)", (path, interface, {}, methods))
    manager.answer("IsInhibited", "b", f"ret = bool(args[0] & {flags})", "u")
    manager.answer("GetInhibitors", "ao", f"ret = [dbus.ObjectPath({path!r})]")
    return manager


@pytest.mark.parametrize(
    ("app", "flags", "counts"),
    [("org.mozilla.firefox", 8, True), ("org.mozilla.firefox", 4, False), ("skep", 12, False)],
)
def test_who_inhibits_idle_at_gnomes_session_manager_counts(bus, close, app, flags, counts):
    gnome(bus, app, flags)
    assert answered(close(Inhibitors(bus.address, None))).value is counts


def test_a_new_inhibitor_is_seen_at_once(bus, close):
    manager = gnome(bus)
    manager.answer("IsInhibited", "b", "ret = False", "u")
    sensor = close(Inhibitors(bus.address, None))
    assert answered(sensor).value is False
    woke = wakes(sensor)
    manager.answer("IsInhibited", "b", "ret = True", "u")
    manager.signal("InhibitorAdded", "o", "/org/gnome/SessionManager/Inhibitor1")
    assert woke.wait(60)
    assert answered(sensor).value is True


@pytest.mark.parametrize(("who", "counts"), [("Firefox", True), ("skep", False)])
def test_kde_tells_who_keeps_the_screen_on(bus, close, who, counts):
    agent = bus.mock(KDE.service, KDE.path, KDE.interface)
    agent.answer("HasInhibition", "b", "ret = args[0] == 4", "u")
    agent.answer("ListInhibitions", "a(ss)", f"ret = [({who!r}, 'a film')]")
    assert answered(close(Inhibitors(bus.address, None))).value is counts


def test_a_power_manager_that_does_not_tell_who_is_believed(bus, close):
    power = bus.mock(POWER.service, POWER.path, POWER.interface)
    power.answer("HasInhibit", "b", "ret = True")
    sensor = close(Inhibitors(bus.address, None))
    assert answered(sensor).value is True
    power.answer("GetInhibitors", "as", "ret = ['skep']")
    assert answered(sensor).value is False
    power.answer("HasInhibit", "b", "ret = False")
    assert answered(sensor).value is False


def test_where_nobody_lists_inhibitors_it_is_missing(bus, close):
    assert answered(close(Inhibitors(bus.address, bus.address))) == missing(NOBODY_LISTS)
    assert answered(close(Inhibitors(None, None))) == missing(NOBODY_LISTS)


def test_the_session_bus_is_found_where_it_usually_is(tmp_path):
    assert session_address({}) is None
    assert session_address({"XDG_RUNTIME_DIR": str(tmp_path)}) is None
    (tmp_path / "bus").touch()
    assert session_address({"XDG_RUNTIME_DIR": str(tmp_path)}) == f"unix:path={tmp_path / 'bus'}"
    assert (
        session_address({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "XDG_RUNTIME_DIR": str(tmp_path)})
        == "unix:path=/x"
    )


def test_asking_sets_only_what_was_asked(bus, close):
    assert answered(close(MutterInput(bus.address))).source is Source.MISSING
    assert set(close(MutterInput(None)).read()) == {Condition.INPUT}


def test_asking_starts_nothing(bus, close):
    """For any other caller the bus starts these services."""
    started = bus.offer("org.gnome.ScreenSaver", "org.freedesktop.ScreenSaver", "org.gnome.Mutter.IdleMonitor")
    for sensor in (MutterInput(bus.address), ScreenSaverInput(bus.address), ScreenLock(bus.address, None)):
        assert answered(close(sensor)).source is Source.MISSING
    assert not started()
    bus.call_as_anybody("org.freedesktop.ScreenSaver")
    until(started)
