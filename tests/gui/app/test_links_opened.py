"""A link or a `.skep` file opens the page of what its project would use, and joins nothing, at the start and later."""

import pytest
from PySide6.QtCore import QCoreApplication, QEvent

from manifests import signed
from skep import bootstrap
from skep.core.session.phases import Phase
from skep_gui.app import wiring
from skep_gui.app.app import App
from skep_gui.app.launch import Options
from skep_gui.app.tray import Tray
from skep_gui.main import parser
from skep_gui.words.now import Now

SOON = 20_000


@pytest.fixture
def start(dressed, qtbot, home, monkeypatch):
    (home.root / "window.ini").write_text("[General]\nfirst-run-done=done\n")
    made, ended = [], []
    monkeypatch.setattr(dressed, "exit", lambda code=0: ended.append(code), raising=False)

    def start(link=""):
        app = App(
            dressed,
            Options(home=str(home.root), hidden=True, link=link),
            Tray(Now(), "#6B665E"),
            lambda: wiring,
        )
        made.append(app)
        with qtbot.waitSignal(app.ready, timeout=SOON):
            app.start()
        return app

    yield start
    for app in made:
        app.quit()
        qtbot.waitUntil(lambda: bool(ended), timeout=SOON)
        for each in (app.window, app):
            each.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def shows_what_it_would_use(app):
    projects = app.window.projects
    return app.window.isVisible() and projects.currentWidget() is projects.permission


def test_a_project_named_at_the_start_is_shown_and_not_joined(start, qtbot, tmp_path):
    app = start(str(signed(tmp_path)))
    qtbot.waitUntil(lambda: shows_what_it_would_use(app), timeout=SOON)
    assert app.window.pages.currentWidget() is app.window.projects
    assert app.snapshot.phase is Phase.IDLE


def test_a_second_start_hands_its_link_to_the_first(start, qtbot, home, tmp_path):
    app = start()
    qtbot.waitUntil(lambda: app.window is not None, timeout=SOON)
    bootstrap.ask(home, {"verb": "show", "link": signed(tmp_path).as_uri()})
    qtbot.waitUntil(lambda: shows_what_it_would_use(app), timeout=SOON)
    assert app.snapshot.phase is Phase.IDLE


def test_a_file_without_a_link_is_refused_in_the_window(start, qtbot, tmp_path):
    file = tmp_path / "bad.skep"
    file.write_text("hello")
    app = start(str(file))
    qtbot.waitUntil(lambda: "contains no join link" in app.window.projects.said.text(), timeout=SOON)
    assert app.snapshot.phase is Phase.IDLE


def test_the_link_is_the_one_word_that_needs_no_option():
    assert parser().parse_args(["skep://join?x"]).link == "skep://join?x"
    assert not parser().parse_args([]).link
