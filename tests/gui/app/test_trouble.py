"""Errors of skep in any thread: reported, redacted, and the app continues; diagnostics are shown before saving."""

import getpass
import logging
import socket
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QFileDialog

from gui_starts import remember, started, wait
from skep.core.session import messages as m
from skep.core.session import step
from skep.core.text import Problem, verbatim
from skep_gui.widgets.strips import ProblemStrip
from skep_gui.words.notices import Problems


@pytest.fixture
def app(dressed, qtbot, home):
    remember(home)
    with started(dressed, qtbot, home) as running:
        wait(qtbot, lambda: running.window is not None and running.window.isVisible())
        yield running


def boom(number=0):
    raise ZeroDivisionError(f"boom {number} in {Path.home()} at 203.0.113.9")


def test_an_engine_exception_is_reported_and_the_app_lives(app, qtbot, monkeypatch, dressed):
    unbroken = step.step

    def fails_at_resume(snapshot, message, *rest):
        # the sensors' messages come at any time; of several equal errors only the first is reported
        return boom() if isinstance(message, m.Resume) else unbroken(snapshot, message, *rest)

    with monkeypatch.context() as broken:
        broken.setattr(step, "step", fails_at_resume)
        app.commands.post(m.Resume())
        wait(qtbot, lambda: app.error_reporter.traces)
    wait(qtbot, app.window.strip.isVisible)
    assert app.window.strip.title.text() == "An internal error occurred; skep continues."
    app.window.strip.act_button.click()
    dialog = app.error_reporter.dialog
    wait(qtbot, dialog.text.toPlainText)
    text = dialog.text.toPlainText()
    assert "no step for Resume" in text
    assert "ZeroDivisionError: boom" in text
    assert str(Path.home()) not in text
    assert "203.0.113.9" not in text
    dialog.copy.click()
    assert dressed.clipboard().text() == text
    dialog.close()
    app.commands.pause(None)
    wait(qtbot, lambda: app.snapshot.pause is not None)


def test_an_exception_in_qts_thread_is_reported_and_the_app_lives(app, qtbot):
    QTimer.singleShot(0, boom)
    wait(qtbot, lambda: app.error_reporter.traces)
    wait(qtbot, app.window.strip.isVisible)
    app.window.strip.close_button.click()
    assert not app.window.strip.isVisible()
    app.commands.pause(None)
    wait(qtbot, lambda: app.snapshot.pause is not None)


def test_an_exception_in_another_thread_is_reported(app, qtbot):
    thread = threading.Thread(target=boom, name="some thread")
    thread.start()
    thread.join()
    wait(qtbot, lambda: app.error_reporter.traces)
    assert "nobody caught in some thread" in app.error_reporter.traces[0]


def test_an_error_that_comes_again_is_told_once(app, qtbot):
    app.window.close()
    log = logging.getLogger("skep.engine.engine")
    for number in range(3):
        try:
            boom(number)
        except ZeroDivisionError:
            log.exception("it failed")
    log.error("an error without a traceback")
    wait(qtbot, lambda: app.tray.told)
    QCoreApplication.processEvents()
    ours = [title for title, _ in app.tray.told if title == "An internal error occurred; skep continues."]
    assert len(ours) == 1
    assert len(app.error_reporter.traces) == 1


def test_nobody_listens_after_the_end(app, qtbot):
    app.error_reporter.close()
    try:
        boom()
    except ZeroDivisionError:
        logging.getLogger("skep.engine.engine").exception("late")
    QCoreApplication.processEvents()
    assert app.error_reporter.traces == []


def test_diagnostics_are_shown_before_they_are_saved(app, qtbot, home, tmp_path, monkeypatch):
    (home.logs_folder).mkdir(exist_ok=True)
    (home.logs_folder / "worker.log").write_text("dialled 203.0.113.7\nready\n")
    app.window.settings.diagnostics_wanted.emit()
    dialog = app.error_reporter.dialog
    assert not dialog.save.isEnabled()
    wait(qtbot, dialog.save.isEnabled)
    text = dialog.text.toPlainText()
    for part in ("Versions", "Settings", "Devices", "Readings", "Log: worker.log", "phase idle", "ready"):
        assert part in text
    for secret in ("203.0.113.7", str(home.root), str(Path.home())):
        assert secret not in text
    for name in (getpass.getuser(), socket.gethostname()):
        assert len(name) < 3 or name not in text.split()
    chosen = iter((tmp_path / "out.txt", tmp_path / "no" / "out.txt"))
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(next(chosen)), ""))  # the system's dialog
    dialog.save.click()
    wait(qtbot, (tmp_path / "out.txt").exists)
    wait(qtbot, lambda: "Written to" in dialog.said.text())
    assert (tmp_path / "out.txt").read_text() == text
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


def test_a_problem_that_was_closed_is_shown_again_when_it_comes_after_another_one(dressed, qtbot):
    first, second = (Problem(verbatim(title), verbatim("Do something.")) for title in ("It failed.", "It fails too."))
    strip = ProblemStrip(Problems())
    qtbot.addWidget(strip)
    for shown, visible in ((first, True), (first, False), (second, True), (first, True)):
        strip.show_problem(shown)
        assert strip.isHidden() != visible
        if shown is first:
            strip.close_button.click()
