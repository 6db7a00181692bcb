"""The practice swarm started and joined by a mouse click, with a real worker and a real swarm, to training and back."""

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QPushButton

from skep.core.model import Phase
from skep_gui.app import App, Options
from skep_gui.present.now import Now
from skep_gui.present.pauses import Pauses
from skep_gui.present.projects import PRACTICE
from skep_gui.tray import Tray

SOON, WHILE = 20_000, 240_000


@pytest.fixture
def app(dressed, qtbot, home, monkeypatch):
    (home.root / "window.ini").write_text("[General]\nfirst-run-done=done\n")
    ended = []
    monkeypatch.setattr(dressed, "exit", lambda code=0: ended.append(code), raising=False)
    made = App(dressed, Options(home=str(home.root)), Tray(Now(), Pauses(), "#6B665E"))
    with qtbot.waitSignal(made.ready, timeout=SOON):
        made.start()
    yield made
    made.quit()
    qtbot.waitUntil(lambda: bool(ended), timeout=SOON)
    for each in (made.window, made):
        each.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.mark.timeout(400)
def test_a_click_starts_the_practice_swarm_and_joins_it(app, qtbot):
    projects = app.window.projects
    app.window.go_to(projects)

    def start():
        return next((each for each in projects.findChildren(QPushButton) if each.text() == "Start and join"), None)

    qtbot.waitUntil(lambda: start() is not None, timeout=SOON)
    qtbot.mouseClick(start(), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: app.snapshot.phase is Phase.JOINING, timeout=WHILE)
    assert app.window.pages.currentWidget() is app.window.now
    qtbot.waitUntil(lambda: app.snapshot.phase is Phase.TRAINING, timeout=WHILE)
    qtbot.waitUntil(lambda: app.snapshot.progress is not None, timeout=WHILE)
    assert app.snapshot.project.id == PRACTICE
    qtbot.waitUntil(app.window.now.leave.isVisible, timeout=SOON)
    assert "Training" in app.tray.first.text()
    qtbot.mouseClick(app.window.now.leave, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: app.snapshot.phase is not Phase.TRAINING, timeout=SOON)
    if app.snapshot.phase is Phase.LEAVING:
        qtbot.waitUntil(app.window.now.leave_now.isVisible, timeout=SOON)
        qtbot.mouseClick(app.window.now.leave_now, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: app.snapshot.phase is Phase.IDLE, timeout=SOON)
