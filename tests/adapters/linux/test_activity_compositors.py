"""The idle monitor of a real mutter, and the events of a real sway through swayidle."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import psutil
import pytest

from contracts.activity_contract import ActivityContract
from desktops import Mutter, PrivateBus, Screen, Sway, answered, longer, need, shorter, until
from english import in_english
from families import lives
from skep import senses
from skep.adapters.linux.idle_services import MutterInput
from skep.adapters.linux.swayidle import SwayidleInput
from skep.core.policy.conditions import Condition, Source, missing
from skep.core.text import Text

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def bus():
    need("dbus-daemon", "mutter", "Xvfb", "xdotool")
    made = PrivateBus()
    yield made
    made.close()


@pytest.fixture(scope="module")
def screen(bus):
    made = Screen()
    yield made
    made.close()


@pytest.fixture(scope="module")
def mutter(screen, bus):
    made = Mutter(screen, bus)
    yield made
    made.close()


@pytest.fixture
def monitor(mutter, bus):
    sensor = MutterInput(bus.address)
    yield sensor
    sensor.close()


@pytest.fixture(scope="module")
def sway():
    need("sway", "swayidle", "swaymsg", "setpriv")
    made = Sway()
    yield made
    made.close()


@pytest.fixture
def notified(sway):
    sensor = SwayidleInput(sway.environ, quiet_seconds=1)
    yield sensor
    sensor.close()


def idle(sensor):
    return sensor.read()[Condition.INPUT]


def wakes(sensor):
    woke = threading.Event()
    threading.Thread(target=lambda: (sensor.wait(600), woke.set()), daemon=True).start()
    return woke


class TestMutterContract(ActivityContract):
    @pytest.fixture
    def sensor(self, monitor):
        return monitor


class TestSwayidleContract(ActivityContract):
    @pytest.fixture
    def sensor(self, notified):
        return notified


def test_mutter_tells_how_long_there_was_no_input(screen, monitor):
    screen.touch()
    until(lambda: longer(idle(monitor), 0.5))
    screen.touch()
    until(lambda: shorter(idle(monitor), 0.5))


def test_a_wait_ends_by_mutters_watch_when_the_pointer_moves_and_again_the_next_time(screen, monitor):
    for _ in range(2):
        until(lambda: longer(idle(monitor), 1.2))
        woke = wakes(monitor)
        assert not woke.wait(0.3)
        screen.touch()
        assert woke.wait(60)
        until(lambda: shorter(idle(monitor), 1.2))


def test_mutter_that_hangs_is_silence_until_it_answers(screen, mutter, monitor):
    assert answered(lambda: idle(monitor)).source is Source.ANSWERS
    mutter.freeze()
    assert idle(monitor).source is Source.SILENT
    mutter.thaw()
    until(lambda: idle(monitor).source is Source.ANSWERS)


class Watch:
    """Runs each sensor in its own thread, as the engine does; `seen` has the last readings."""

    def __init__(self, sensors):
        self.seen, self._sensors, self._ended = {}, sensors, threading.Event()
        self._threads = [threading.Thread(target=self._run, args=[sensor]) for sensor in sensors]
        for thread in self._threads:
            thread.start()

    def _run(self, sensor):
        while not self._ended.is_set():
            self.seen.update(sensor.read())
            sensor.wait(0.5)

    def close(self):
        self._ended.set()
        for sensor in self._sensors:
            sensor.close()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        for sensor in self._sensors:
            sensor.close()


def test_a_whole_session_is_watched(screen, mutter, bus):
    """All sensors that are chosen for this desktop, on one bus and one screen."""
    watch = Watch(senses.of_the_person({**screen.environ, **bus.environ}, "linux"))
    window = screen.window(pid=1)
    try:
        until(
            lambda: set(watch.seen) == {Condition.INPUT, Condition.FULL_SCREEN, Condition.LOCKED, Condition.INHIBITED}
        )
        until(lambda: longer(watch.seen[Condition.INPUT], 1.2))
        assert in_english(watch.seen[Condition.INPUT].note) == "The idle monitor of GNOME"
        screen.touch()
        until(lambda: shorter(watch.seen[Condition.INPUT], 1.2))
        assert watch.seen[Condition.FULL_SCREEN].value is False
        window.tell("full")
        until(lambda: watch.seen[Condition.FULL_SCREEN].value)
        assert watch.seen[Condition.LOCKED].source is Source.MISSING
        assert watch.seen[Condition.INHIBITED].source is Source.MISSING
    finally:
        window.close()
        watch.close()


def test_swayidle_tells_when_input_stops_and_starts(sway, notified):
    assert idle(notified).value == 0.0  # not known yet: the computer counts as in use
    until(lambda: idle(notified).value >= 1)
    before = idle(notified).value
    until(lambda: longer(idle(notified), before + 0.5))
    woke = wakes(notified)
    assert not woke.wait(0.3)
    sway.touch()
    assert woke.wait(60)
    # on a busy computer it may be quiet again by now
    until(lambda: (sway.touch(), idle(notified).value == 0.0)[1])


def test_swayidle_ends_with_the_sensor(notified):
    idle(notified)
    child = notified._line.opened.process.pid
    notified.close()
    assert not psutil.pid_exists(child)


def test_swayidle_dies_with_us(sway):
    """The parent is killed, so it cannot end swayidle."""
    script = textwrap.dedent("""
        import os, time
        from skep.adapters.linux.swayidle import SwayidleInput
        sensor = SwayidleInput(os.environ)
        sensor.read()
        print(sensor._line.opened.process.pid, flush=True)
        time.sleep(600)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", script], env={**os.environ, **sway.environ}, stdout=subprocess.PIPE, text=True
    ) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        until(lambda: child.name() == "swayidle")
        parent.send_signal(signal.SIGKILL)
        assert parent.wait(60)
    until(lambda: not lives(child), "the child's end")


def test_a_child_that_ends_is_silence_and_another_one_is_started(notified):
    until(lambda: idle(notified).value >= 1)
    woke = wakes(notified)
    notified._line.opened.process.send_signal(signal.SIGKILL)
    assert woke.wait(60)
    assert idle(notified).source is Source.ANSWERS
    notified._line.opened.process.send_signal(signal.SIGKILL)
    notified._line.opened.process.wait(60)
    assert idle(notified).source is Source.SILENT
    assert idle(notified).value == 0.0


def not_had(why):
    return missing(Text("swayidle.compositor_idle_notification_not_had", reason=Text(why)))


def test_without_a_compositor_or_without_swayidle_it_is_missing(monkeypatch, tmp_path):
    need("swayidle", "setpriv")
    nowhere = {"XDG_RUNTIME_DIR": str(tmp_path), "WAYLAND_DISPLAY": "wayland-9"}
    sensor = SwayidleInput(nowhere)
    until(lambda: idle(sensor).source is Source.MISSING)
    refused = idle(sensor)
    assert refused == not_had("swayidle.swayidle_ends_once_compositor_may")
    sensor.close()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert idle(sensor) == refused  # it is not tried again immediately; otherwise the missing program would be reported
    assert idle(SwayidleInput(nowhere)) == not_had("swayidle.needs_program_swayidle")


def test_a_compositor_that_dies_is_silence():
    need("sway", "swayidle", "swaymsg", "setpriv")
    sway = Sway()
    sensor = SwayidleInput(sway.environ, quiet_seconds=1)
    try:
        until(lambda: idle(sensor).value >= 1)
        sway.kill()
        until(lambda: idle(sensor).source is Source.SILENT)
    finally:
        sensor.close()
        sway.close()
