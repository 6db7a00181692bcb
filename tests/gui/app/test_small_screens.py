"""Small screens and large letters: every page can be used on 1024 x 600 and at 200 %, and nothing is cut off."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from PySide6.QtWidgets import QWidget

import snapshots as shots
import tray_desktops
from skep.core.text import Problem, verbatim
from skep_gui.app.main_window import MainWindow
from skep_gui.pages.first_run import FirstRun
from skep_gui.words.now import History
from skep_gui.words.speaker import english
from skep_gui.words.translation import Translation
from skep_gui_process import running, status
from window_sight import cut, settle, show_all

VOICE = Translation(english)
LONG = Problem(
    verbatim(
        "The training process ended unexpectedly, and it did so while it was loading what the swarm has trained so far."
    ),
    verbatim(
        "skep starts it again in 40 s. Details are in the log; if it goes on like this, leave the project and tell its publisher."
    ),
)
LEAST = (760, 520)
STATES = (
    shots.IDLE,
    shots.JOINING,
    shots.SLOWED,
    shots.PAUSED,
    shots.LEAVING,
    replace(shots.RECOVERING, problem=LONG),
)


@pytest.fixture
def window(dressed, qtbot):
    made = MainWindow(VOICE)
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.mark.parametrize("size", [LEAST, (1024, 552)], ids=str)
@pytest.mark.parametrize("snapshot", STATES, ids=lambda each: each.phase)
def test_every_page_can_be_used_whole(window, snapshot, size, qtbot):
    window.resize(*size)
    window.projects.show_projects([replace(shots.KNOWN[0], finished=True), *shots.KNOWN[1:]], snapshot)
    window.stats.show_record(shots.record(), window.projects.titles())
    window.show_snapshot(snapshot, shots.history() if snapshot.progress else History(), shots.NOW)
    window.say("This desktop has no tray. skep continues while its window is closed; start skep again to open it.")
    for _ in show_all(window):
        qtbot.waitUntil(lambda: not cut(window.pages.currentWidget(), window), timeout=5000)
        assert (window.width(), window.height()) == size
        assert bottom(window.strip, window) <= window.height() or not window.strip.isVisible()
    window.projects.say(english.told(LONG), problem=True)
    window.go_to(window.projects)
    qtbot.waitUntil(lambda: not cut(window.projects, window), timeout=5000)


def bottom(widget: QWidget, window: QWidget) -> int:
    return widget.mapTo(window, widget.rect().bottomLeft()).y()


def test_the_first_steps_fit(dressed, qtbot):
    steps = FirstRun(VOICE.devices)
    qtbot.addWidget(steps)
    steps.show_devices([*shots.DEVICES, *shots.DEVICES])
    steps.show()
    for _ in range(3):
        settle()
        assert steps.height() <= 552
        assert steps.width() <= 1024
        assert cut(steps, steps) == []
        steps.next.click()


def test_at_200_percent_every_page_can_be_used_whole():
    """In a separate process, since Qt reads the scale once."""
    environ = {**os.environ, "QT_SCALE_FACTOR": "2", "QT_QPA_PLATFORM": "offscreen"}
    wanted = [f"{__file__}::test_every_page_can_be_used_whole", f"{__file__}::test_the_first_steps_fit"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *wanted]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.skipif(bool(tray_desktops.missing()), reason=f"not installed: {', '.join(tray_desktops.missing())}")
def test_the_window_lies_whole_on_a_screen_of_1024_by_600(home):
    with tray_desktops.desktop(size="1024x600") as screen, running(home, screen.environ):
        screen.until(lambda: status(home))
        shown = screen.until(lambda: screen.xdotool("search", "--onlyvisible", "--name", "^skep$").partition("\n")[0])
        screen.until(lambda: screen.lies_whole(shown, 1024, 600))
