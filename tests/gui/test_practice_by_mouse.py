"""The practice swarm started and joined by a mouse click, with a real worker and a real swarm, to training and back.

The worker is killed in between; the app says so, starts another, and the books stay right.
"""

import json
import signal
import subprocess
import sys

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from gui_starts import SOON, remember, started, wait
from skep.cli import words
from skep.core.model import Phase
from skep_gui.present.projects import PRACTICE
from skep_gui.present.state import State, look

WHILE = 240_000


@pytest.fixture
def app(dressed, qtbot, home, monkeypatch):
    remember(home)
    with started(dressed, qtbot, monkeypatch, home) as made:
        yield made


@pytest.mark.timeout(500)
def test_a_click_starts_the_practice_swarm_and_joins_it(app, qtbot, home):
    join(app, qtbot)
    wait(qtbot, lambda: app.snapshot.totals.confirmed.samples > 0, WHILE)
    before = app.snapshot.totals
    kill_the_worker(app, qtbot)
    # what the killed one had handed in by then is settled by its rounds or recorded as lost, never counted twice
    wait(qtbot, lambda: app.snapshot.totals.confirmed.samples > before.confirmed.samples, WHILE)
    leave(app, qtbot)
    stats = told_by_the_terminal(home)
    confirmed = stats["confirmed"]["samples"]
    assert confirmed > before.confirmed.samples
    assert stats["pending"]["contributions"] == 0
    app.window.go_to(app.window.stats)
    wait(qtbot, lambda: shows(app.window.stats, words.number(confirmed)))


def join(app, qtbot):
    projects = app.window.projects
    app.window.go_to(projects)

    def start():
        return next((each for each in projects.findChildren(QPushButton) if each.text() == "Start and join"), None)

    wait(qtbot, lambda: start() is not None)
    qtbot.mouseClick(start(), Qt.MouseButton.LeftButton)
    wait(qtbot, lambda: app.snapshot.phase is Phase.JOINING, WHILE)
    assert app.window.pages.currentWidget() is app.window.now
    wait(qtbot, lambda: app.snapshot.phase is Phase.TRAINING, WHILE)
    wait(qtbot, lambda: app.snapshot.progress is not None, WHILE)
    assert app.snapshot.project.id == PRACTICE
    wait(qtbot, app.window.now.leave.isVisible)
    assert "Training" in app.tray.first.text()


def kill_the_worker(app, qtbot):
    (worker,) = workers()
    seen = []
    app.bridge.changed.connect(lambda snapshot: seen.append((snapshot.phase, look(snapshot).state)))
    worker.send_signal(signal.SIGKILL)
    wait(qtbot, app.window.strip.isVisible)
    assert app.window.strip.title.text() == "The training process ended unexpectedly."
    assert (Phase.RECOVERING, State.PROBLEM) in seen
    wait(qtbot, lambda: app.snapshot.phase is Phase.TRAINING, WHILE)
    wait(qtbot, lambda: not app.window.strip.isVisible())
    assert [each.pid for each in workers()] != [worker.pid]


def workers():
    """The app's own; the practice swarm's peer is a worker too, of another parent."""
    children = psutil.Process().children()
    return [each for each in children if "skep.worker.main" in " ".join(each.cmdline())]


def leave(app, qtbot):
    qtbot.mouseClick(app.window.now.leave, Qt.MouseButton.LeftButton)
    wait(qtbot, lambda: app.snapshot.phase is not Phase.TRAINING)
    if app.snapshot.phase is Phase.LEAVING:
        wait(qtbot, app.window.now.leave_now.isVisible)
        qtbot.mouseClick(app.window.now.leave_now, Qt.MouseButton.LeftButton)
    wait(qtbot, lambda: app.snapshot.phase is Phase.IDLE, SOON)


def told_by_the_terminal(home):
    command = [sys.executable, "-m", "skep.cli.main", "--home", str(home.root), "stats", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["projects"][PRACTICE]


def shows(page, text):
    return any(text in each.text() for each in page.findChildren(QLabel) if each.isVisible())
