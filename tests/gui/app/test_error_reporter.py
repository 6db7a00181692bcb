"""Faults outside the app: damaged settings, no tray, no network, files that are no manifests."""

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QPushButton

from gui_starts import remember, started, wait
from skep import bootstrap
from skep.core.session import messages as m
from skep.core.settings.settings import DEFAULTS
from skep.core.text import Problem, verbatim

DAMAGED = "[compute]\nshare_away = = 30\n"
WRONG = "[heat]\ncap_celsius = 900\n"


@pytest.fixture
def start(dressed, qtbot, home):
    remember(home)

    def starting(**more):
        return started(dressed, qtbot, home, **more)

    return starting


def test_damaged_settings_are_kept_and_skep_pauses_with_the_defaults(start, qtbot, home):
    home.settings_file.write_text(DAMAGED)
    with start() as app:
        wait(qtbot, lambda: app.window is not None and app.window.strip.isVisible())
        assert "skep starts with the defaults, and is paused" in app.window.strip.title.text()
        assert app.snapshot.settings == DEFAULTS
        assert app.snapshot.pause is not None
        assert [kept.read_text() for kept in home.root.glob("settings.toml.damaged-*")] == [DAMAGED]
        app.window.strip.close_button.click()
        assert not app.window.strip.isVisible()


def test_that_the_settings_were_damaged_stays_in_view_when_a_project_is_joined_at_the_start(start, qtbot, home):
    home.settings_file.write_text(DAMAGED)
    with start() as app:
        wait(qtbot, lambda: app.window is not None and app.window.strip.isVisible())
        app.commands.post(m.ProblemArose(Problem(verbatim("Another problem."))))
        wait(qtbot, lambda: app.snapshot.problem is not None and "Another" in str(app.snapshot.problem))
        assert "The settings file was damaged" in app.window.strip.title.text()


def test_wrong_settings_are_kept_and_the_defaults_offered(start, qtbot, home):
    home.settings_file.write_text(WRONG)
    with start(ready=False) as app:
        wait(qtbot, lambda: app.box is not None)
        assert "line 2" in app.box.text()
        assert app.box.textFormat() is Qt.TextFormat.PlainText
        assert app.box.defaultButton() is app.box.end
        app.box.anew.click()
        wait(qtbot, lambda: app.window is not None and app.window.isVisible())
        assert app.snapshot.settings == DEFAULTS
        assert [kept.read_text() for kept in home.root.glob("settings.toml.damaged-*")] == [WRONG]
        assert not app.endings


def test_wrong_settings_may_be_left_as_they_are(start, qtbot, home):
    home.settings_file.write_text(WRONG)
    with start(ready=False) as app:
        wait(qtbot, lambda: app.box is not None)
        app.box.end.click()
        wait(qtbot, lambda: app.endings)
    assert home.settings_file.read_text() == WRONG


def test_a_wrong_value_in_the_settings_is_named_with_its_line(start, qtbot, home):
    home.settings_file.write_text("[heat]\ncap_celsius = 900\n")
    with start(ready=False) as app:
        wait(qtbot, lambda: app.box is not None)
        assert "line 2" in app.box.text()
        app.quit()
        wait(qtbot, lambda: app.endings)  # it also ends while a question is open


def test_a_quit_while_the_settings_are_read_ends_the_app_without_a_question(start, qtbot, home):
    home.settings_file.write_text(DAMAGED)
    with start(ready=False) as app:
        assert app.box is None  # the answer arrives with the next event
        app.quit()
        wait(qtbot, lambda: app.endings)
        assert app.box is None


def words(page):
    return [button.text() for button in page.findChildren(QPushButton)]


def test_without_a_tray_the_window_says_so_once_and_stays_reachable(start, qtbot, home):
    with start(hidden=True) as app:  # without a screen there is no tray
        wait(qtbot, lambda: app.window is not None and app.window.isVisible())
        wait(qtbot, lambda: "This desktop has no tray." in app.window.said.text())
        app.window.close()
        assert not app.endings
        assert bootstrap.ask(home, {"verb": "show"}) == {"ok": True}
        wait(qtbot, app.window.isVisible)
    with start(hidden=True) as app:
        wait(qtbot, lambda: app.window is not None and app.window.isVisible())
        wait(qtbot, lambda: "Start and join" in words(app.window.projects))  # loaded after the window is shown
        assert app.window.said.text() == ""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("photo.json", b"\x89PNG\r\n"),
        ("empty.json", b""),
        ("list.json", b"[1, 2]"),
        ("other.json", b'{"name": "package"}'),
        ("large.json", b"x" * 70_000),
        ("folder", None),
    ],
)
def test_what_is_dropped_and_is_no_manifest_is_refused_in_a_sentence(start, qtbot, tmp_path, name, content):
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    with start() as app:
        page = app.window.projects
        page.dropEvent(dropping(path))
        wait(qtbot, lambda: page.said.property("tone") == "problem")
        assert len(page.said.text()) > 20
        assert "Traceback" not in page.said.text()
        assert "An internal error occurred" not in page.said.text()
        assert app.controller.known() == []


def dropping(path):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    dropping.data = data  # the event holds no reference to it
    return QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )


def test_an_address_that_nobody_answers_is_refused_in_a_sentence(start, qtbot):
    with start() as app:
        app.projects.add("http://127.0.0.1:9/project.json")
        page = app.window.projects
        wait(qtbot, lambda: page.said.property("tone") == "problem")
        assert "127.0.0.1:9" in page.said.text()
