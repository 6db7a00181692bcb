"""Input and full screen at a real X server: moved pointers, managed windows, servers that die or hang."""

import os
import select
import threading
import time

import pytest
from Xlib import X
from Xlib.display import Display

from contracts.activity_contract import ActivityContract
from desktops import Screen, answered, longer, need, until
from english import in_english
from skep.adapters.linux import session, x11
from skep.adapters.linux.x11_sensors import NO_MANAGER, WAYLAND, FullScreen, X11Input
from skep.core.policy.conditions import Condition, Source, missing

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def screen():
    need("Xvfb", "xdotool", "openbox", "xprop")
    made = Screen(window_manager="openbox")
    yield made
    made.close()


@pytest.fixture
def bare():
    """A screen without a window manager, which tests may kill or stop."""
    need("Xvfb", "xdotool")
    made = Screen()
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


def idle(sensor):
    return sensor.read()[Condition.INPUT]


def fills(sensor):
    return sensor.read()[Condition.FULL_SCREEN]


def is_locked(sensor):
    return sensor.read()[Condition.LOCKED].value is True


def blank(screen):
    display = Display(screen.name)
    display.force_screen_saver(X.ScreenSaverActive)
    display.sync()
    display.close()


class TestInputContract(ActivityContract):
    @pytest.fixture
    def sensor(self, screen, close):
        return close(X11Input(screen.name))


class TestInputWithoutScreen(ActivityContract):
    @pytest.fixture
    def sensor(self, close):
        return close(X11Input(None))


class TestFullScreenContract(ActivityContract):
    @pytest.fixture
    def sensor(self, screen, close):
        return close(FullScreen(screen.name))


def test_time_without_input_grows_and_a_moved_pointer_ends_it(screen, close):
    sensor = close(X11Input(screen.name))
    screen.touch()
    first = answered(lambda: idle(sensor)).value
    until(lambda: longer(idle(sensor), first + 0.5))
    before = answered(lambda: idle(sensor)).value
    screen.touch()
    assert answered(lambda: idle(sensor)).value < before


def check_that_a_moved_pointer_ends_a_wait(screen, sensor):
    until(lambda: longer(idle(sensor), 1.2))
    woke = threading.Event()
    threading.Thread(target=lambda: (sensor.wait(600), woke.set()), daemon=True).start()
    assert not woke.wait(0.3)
    screen.touch()
    assert woke.wait(60)


def test_a_wait_ends_by_an_alarm_when_the_pointer_moves_and_again_the_next_time(screen, close):
    sensor = close(X11Input(screen.name))
    idle(sensor)
    assert sensor.tells
    check_that_a_moved_pointer_ends_a_wait(screen, sensor)
    check_that_a_moved_pointer_ends_a_wait(screen, sensor)


def test_a_server_without_alarms_is_asked_over_and_over(screen, close):
    sensor = close(X11Input(screen.name))
    idle(sensor)
    sensor._alarm = None  # an X server without the extension is not available
    assert not sensor.tells
    check_that_a_moved_pointer_ends_a_wait(screen, sensor)


def test_input_that_comes_in_the_middle_of_a_look_is_not_slept_through(screen, close):
    """The alarm arrives together with another reply, and no further alarm follows."""
    sensor = close(X11Input(screen.name, patience=60))  # on a busy machine a late reply would cause a new connection
    until(lambda: longer(idle(sensor), 1.2))
    screen.touch()
    idle(sensor)
    woke = threading.Event()
    threading.Thread(target=lambda: (sensor.wait(600), woke.set()), daemon=True).start()
    assert woke.wait(60)


def test_an_answer_that_comes_while_the_question_is_still_being_sent_is_not_waited_for(screen, close):
    sensor = close(X11Input(screen.name))
    assert idle(sensor).source is Source.ANSWERS
    server = sensor._line.opened
    send = server.display.flush

    def flush():
        send()
        select.select([server], [], [], 60)
        server.display.pending_events()

    server.display.flush = flush
    assert idle(sensor).source is Source.ANSWERS


def test_a_server_without_the_screen_saver_extension_cannot_tell(close):
    need("Xvfb", "xdotool")
    screen = Screen("-extension", "MIT-SCREEN-SAVER")
    try:
        assert "lacks" in in_english(idle(close(X11Input(screen.name))).note)
    finally:
        screen.close()


def test_while_somebody_types_a_wait_takes_its_time(screen, close):
    sensor = close(X11Input(screen.name))
    screen.touch()
    idle(sensor)
    began = time.monotonic()
    sensor.wait(0.35)
    assert time.monotonic() - began >= 0.35


def test_without_a_display_the_source_is_missing(close):
    reading = idle(close(X11Input(None)))
    assert reading.source is Source.MISSING
    assert in_english(reading.note) == "No X server tells when it was last used: there is no X display."
    assert idle(close(X11Input(":4711"))).source is Source.MISSING


def test_a_server_that_goes_is_silence_and_is_read_again_when_it_is_back(bare, close):
    sensor = close(X11Input(bare.name))
    assert answered(lambda: idle(sensor)).source is Source.ANSWERS
    bare.kill()
    told = idle(sensor)
    assert told.source is Source.SILENT
    assert in_english(told.note).startswith("The screen does not say when it was last used")
    assert idle(sensor).source is Source.SILENT
    bare.restart()
    assert answered(lambda: idle(sensor)).source is Source.ANSWERS


def test_a_wait_ends_when_the_server_goes(bare, close):
    sensor = close(X11Input(bare.name))
    idle(sensor)
    woke = threading.Event()
    threading.Thread(target=lambda: (sensor.wait(600), woke.set()), daemon=True).start()
    bare.kill()
    assert woke.wait(60)


def test_a_server_that_hangs_is_silence_within_seconds(bare, close):
    sensor = close(X11Input(bare.name, patience=0.3))
    until(lambda: idle(sensor).source is Source.ANSWERS)
    bare.freeze()
    assert idle(sensor).source is Source.SILENT  # while connected
    assert idle(sensor).source is Source.SILENT  # during the handshake
    bare.thaw()
    until(lambda: idle(sensor).source is Source.ANSWERS)


def test_the_servers_own_screen_saver_is_seen(screen, close):
    sensor = close(X11Input(screen.name))
    assert sensor.saver.source is Source.MISSING
    idle(sensor)
    assert sensor.saver.value is False
    blank(screen)
    until(lambda: idle(sensor) and sensor.saver.value)
    screen.touch()
    until(lambda: idle(sensor) and not sensor.saver.value)


def test_a_window_that_fills_the_screen_is_seen_come_and_go(screen, close):
    sensor = close(FullScreen(screen.name, is_ours=lambda _pid: False))
    window = screen.window()
    try:
        until(lambda: fills(sensor).value is False)
        assert in_english(fills(sensor).note) == "The window manager"
        window.tell("full")
        until(lambda: fills(sensor).value)
        window.tell("normal")
        until(lambda: fills(sensor).value is False)
        window.tell("full")
        until(lambda: fills(sensor).value)
    finally:
        window.close()
    until(lambda: fills(sensor).value is False)


def test_a_wait_ends_when_a_window_fills_the_screen(screen, close):
    sensor = close(FullScreen(screen.name, is_ours=lambda _pid: False))
    window = screen.window()
    try:
        until(lambda: fills(sensor).value is False and screen.run("xdotool", "getactivewindow"))
        told = []

        def watch():
            while not told:
                sensor.wait(600)
                if fills(sensor).value:
                    told.append(True)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        window.tell("full")
        thread.join(60)
        assert told
    finally:
        window.close()


@pytest.mark.parametrize(("pid", "ours"), [pytest.param(os.getpid(), True, id="our own"), (None, True), (1, False)])
def test_our_own_window_may_fill_the_screen(screen, close, pid, ours):
    """Windows of this process, of a child of it, and of another program."""
    anybody, sensor = close(FullScreen(screen.name, is_ours=lambda _pid: False)), close(FullScreen(screen.name))
    window = screen.window(pid)
    try:
        window.tell("full")
        until(lambda: fills(anybody).value)
        assert fills(sensor).value is not ours
    finally:
        window.close()


def test_without_a_window_manager_nobody_tells(bare, close):
    assert fills(close(FullScreen(bare.name))) == missing(NO_MANAGER)


def test_under_wayland_only_what_is_seen_counts(screen, close):
    sensor = close(FullScreen(screen.name, under_wayland=True, is_ours=lambda _pid: False))
    window = screen.window()
    try:
        until(lambda: screen.run("xdotool", "getactivewindow"))
        assert fills(sensor) == missing(WAYLAND)
        window.tell("full")
        until(lambda: fills(sensor).value)
    finally:
        window.close()
    assert fills(close(FullScreen(None, under_wayland=True))) == missing(WAYLAND)


def test_the_foreground_is_silent_when_its_server_goes(bare, close):
    sensor = close(FullScreen(bare.name))
    fills(sensor)
    bare.kill()
    assert fills(sensor).source is Source.SILENT
    bare.restart()
    assert answered(lambda: fills(sensor)) == missing(NO_MANAGER)


@pytest.mark.parametrize(
    ("name", "local"),
    [(":0", True), (":1.0", True), ("unix:3", True), ("localhost:10.0", False), ("desk:0", False), ("", False)],
)
def test_only_a_display_of_this_computer_counts(name, local):
    assert x11.local_display({"DISPLAY": name}) == (name if local else None)


def test_whoever_wakes_a_dark_screen_is_not_taken_for_away_until_the_locks_next_turn(screen, close, tmp_path):
    nowhere = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={tmp_path / 'none'}"}
    person, _full, lock, _calls = map(close, session.of_the_person({"DISPLAY": screen.name, **nowhere}))
    idle(person)
    blank(screen)
    until(lambda: idle(person) and is_locked(lock))
    lock.wait(0.0)  # consumes the signal that the screen became dark
    woke = threading.Event()
    threading.Thread(target=lambda: (lock.wait(600), woke.set()), daemon=True).start()
    assert not woke.wait(0.3)
    screen.touch()
    until(lambda: idle(person) and woke.is_set())
    assert not is_locked(lock)
