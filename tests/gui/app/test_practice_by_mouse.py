"""The practice swarm is started and joined by mouse; the real worker is killed once; Stats shows the results."""

import contextlib

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from gui_starts import SOON, remember, started
from skep.core.session.phases import Phase
from skep.language import units
from skep_gui.widgets.rows import FigureCard
from skep_gui.words.projects import PRACTICE
from terminals import devote, skep

WHILE = 240_000


@pytest.fixture
def app(dressed, qtbot, home):
    devote(home.root)
    remember(home)
    with started(dressed, qtbot, home) as running:
        yield running


def worker_of_this_process():
    """The worker's main process, not those that it forked."""
    parents = {}
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "skep.worker.main" in each.cmdline():
                parents[each] = each.ppid()
    pids = {each.pid for each in parents}
    return next((each for each, parent in parents.items() if parent not in pids), None)


def confirmed_on_page(app):
    """The confirmed samples as the page shows them."""
    cards = app.window.stats.figures.findChildren(FigureCard)
    return next(card.value.text() for card in cards if card.name.text() == "Samples confirmed")


@pytest.mark.timeout(600)
def test_a_click_joins_the_practice_swarm_and_stats_says_what_was_confirmed_though_the_worker_was_killed(
    app, qtbot, home
):
    projects = app.window.projects
    app.window.go_to(projects)

    def start():
        return next((each for each in projects.findChildren(QPushButton) if each.text() == "Start and join"), None)

    qtbot.waitUntil(lambda: start() is not None, timeout=SOON)
    qtbot.mouseClick(start(), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: app.snapshot.phase is not Phase.IDLE or bool(projects.said.text()), timeout=WHILE)
    assert app.snapshot.phase is Phase.JOINING, (app.snapshot.phase, app.snapshot.problem, projects.said.text())
    assert app.window.pages.currentWidget() is app.window.now
    qtbot.waitUntil(lambda: app.snapshot.phase is Phase.TRAINING, timeout=WHILE)
    assert app.snapshot.project.id == PRACTICE
    qtbot.waitUntil(lambda: app.snapshot.totals.confirmed.contributions > 0, timeout=WHILE)
    qtbot.waitUntil(lambda: "Training" in app.tray.first.text(), timeout=SOON)
    before = app.snapshot.totals.confirmed.samples

    phases = []  # Qt's thread sees only the newest snapshot, and may miss a phase that lasts half a second
    app.controller._engine.observe(lambda _message, snapshot: phases.append(snapshot.phase))
    worker_of_this_process().kill()
    qtbot.waitUntil(lambda: Phase.RECOVERING in phases, timeout=SOON)
    qtbot.waitUntil(app.window.strip.isVisible, timeout=SOON)
    assert app.window.strip.title.text() == "The training process was ended by the system or by another program."
    qtbot.waitUntil(lambda: app.snapshot.phase is Phase.TRAINING, timeout=WHILE)
    qtbot.waitUntil(lambda: not app.window.strip.isVisible(), timeout=SOON)
    qtbot.waitUntil(lambda: app.snapshot.totals.confirmed.samples > before, timeout=WHILE)

    qtbot.waitUntil(app.window.now.leave.isVisible, timeout=SOON)
    qtbot.mouseClick(app.window.now.leave, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: app.snapshot.phase is not Phase.TRAINING, timeout=SOON)
    if app.snapshot.phase is Phase.LEAVING:
        qtbot.waitUntil(app.window.now.leave_now.isVisible, timeout=SOON)
        qtbot.mouseClick(app.window.now.leave_now, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: app.snapshot.phase is Phase.IDLE, timeout=SOON)

    app.window.go_to(app.window.stats)
    code, told = skep(home.root, "stats")
    assert code == 0
    assert told["all"]["confirmed"]["samples"] > before
    assert told["all"]["pending"]["contributions"] == 0
    wanted = units.number(told["all"]["confirmed"]["samples"])
    qtbot.waitUntil(lambda: confirmed_on_page(app) == wanted, timeout=SOON)
