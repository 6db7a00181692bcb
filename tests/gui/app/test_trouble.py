"""Errors of skep's own in any thread: reported, redacted, and the app lives on; diagnostics shown before they are saved."""

import getpass
import logging
import socket
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtWidgets import QFileDialog

from skep.core.session import messages as m
from skep.core.session import step
from skep.core.text import Problem, verbatim
from skep_gui.app import wiring
from skep_gui.app.app import App
from skep_gui.app.launch import Options
from skep_gui.app.tray import Tray
from skep_gui.words.now import Now

SOON = 20_000


@pytest.fixture
def app(dressed, qtbot, home, monkeypatch):
    home.create()
    (home.root / "window.ini").write_text("[General]\nfirst-run-done=done\n")
    made = App(dressed, Options(home=str(home.root)), Tray(Now(), "#6B665E"), lambda: wiring)
    ended = []
    monkeypatch.setattr(dressed, "exit", lambda code=0: ended.append(code), raising=False)
    with qtbot.waitSignal(made.ready, timeout=SOON):
        made.start()
    wait(qtbot, lambda: made.window is not None and made.window.isVisible())
    yield made
    made.quit()
    wait(qtbot, lambda: bool(ended))
    for each in (made.window, made):
        each.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def wait(qtbot, condition):
    qtbot.waitUntil(lambda: bool(condition()), timeout=SOON)


def boom(number=0):
    raise ZeroDivisionError(f"boom {number} in {Path.home()} at 203.0.113.9")


def test_an_engine_exception_is_reported_and_the_app_lives(app, qtbot, monkeypatch, dressed):
    with monkeypatch.context() as broken:
        broken.setattr(step, "step", lambda *_: boom())
        app.post(m.Resume())
        wait(qtbot, lambda: app.trouble.traces)
    wait(qtbot, app.window.strip.isVisible)
    assert app.window.strip.title.text() == "An internal error occurred; skep continues."
    app.window.strip.act_button.click()
    dialog = app.trouble.dialog
    wait(qtbot, dialog.text.toPlainText)
    text = dialog.text.toPlainText()
    assert "no step for Resume" in text
    assert "ZeroDivisionError: boom" in text
    assert str(Path.home()) not in text
    assert "203.0.113.9" not in text
    dialog.copy.click()
    assert dressed.clipboard().text() == text
    dialog.close()
    app.pause(None)
    wait(qtbot, lambda: app.snapshot.pause is not None)


def test_an_exception_in_qts_thread_is_reported_and_the_app_lives(app, qtbot):
    QTimer.singleShot(0, boom)
    wait(qtbot, lambda: app.trouble.traces)
    wait(qtbot, app.window.strip.isVisible)
    app.window.strip.close_button.click()
    assert not app.window.strip.isVisible()
    app.pause(None)
    wait(qtbot, lambda: app.snapshot.pause is not None)


def test_an_exception_in_another_thread_is_reported(app, qtbot):
    thread = threading.Thread(target=boom, name="some thread")
    thread.start()
    thread.join()
    wait(qtbot, lambda: app.trouble.traces)
    assert "nobody caught in some thread" in app.trouble.traces[0]


def test_an_error_that_comes_again_is_told_once(app, qtbot, monkeypatch):
    told = []
    monkeypatch.setattr(app.tray, "tell", lambda *words: told.append(words))
    app.window.close()
    log = logging.getLogger("skep.engine.engine")
    for number in range(3):
        try:
            boom(number)
        except ZeroDivisionError:
            log.exception("it failed")
    log.error("an error without a traceback")
    wait(qtbot, lambda: len(told) >= 1)
    QCoreApplication.processEvents()
    ours = [title for title, _ in told if title == "An internal error occurred; skep continues."]
    assert len(ours) == 1
    assert len(app.trouble.traces) == 1


def test_nobody_listens_after_the_end(app, qtbot):
    app.trouble.close()
    try:
        boom()
    except ZeroDivisionError:
        logging.getLogger("skep.engine.engine").exception("late")
    QCoreApplication.processEvents()
    assert app.trouble.traces == []


def test_diagnostics_are_shown_before_they_are_saved(app, qtbot, home, tmp_path, monkeypatch):
    (home.logs_folder).mkdir(exist_ok=True)
    (home.logs_folder / "worker.log").write_text("dialled 203.0.113.7\nready\n")
    app.window.settings.diagnostics_wanted.emit()
    dialog = app.trouble.dialog
    assert not dialog.save.isEnabled()
    wait(qtbot, dialog.save.isEnabled)
    text = dialog.text.toPlainText()
    for part in ("Versions", "Settings", "Devices", "Readings", "Log: worker.log", "phase idle", "ready"):
        assert part in text
    for secret in ("203.0.113.7", str(home.root), str(Path.home())):
        assert secret not in text
    for name in (getpass.getuser(), socket.gethostname()):
        assert len(name) < 3 or name not in text.split()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "out.txt"), ""))
    dialog.save.click()
    wait(qtbot, (tmp_path / "out.txt").exists)
    wait(qtbot, lambda: "Written to" in dialog.said.text())
    assert (tmp_path / "out.txt").read_text() == text
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "no" / "out.txt"), ""))
    dialog.save.click()
    wait(qtbot, lambda: "cannot be written" in dialog.said.text())
    dialog.close()


@pytest.mark.parametrize(
    ("remedy", "page"), [("projects", "projects"), ("settings", "settings"), ("setting:network.port", "settings")]
)
def test_the_strip_leads_to_what_may_help(app, remedy, page):
    app.window.strip.show_problem(Problem(verbatim("It failed."), verbatim("Do something."), remedy))
    app.window.strip.act_button.click()
    assert app.window.pages.currentWidget() is getattr(app.window, page)
    if ":" in remedy:
        assert app.window.settings.rows["network.port"].control.hasFocus() or not app.window.isActiveWindow()
