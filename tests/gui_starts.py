"""The app inside the test's own process, with its real engine and home, and its end."""

import contextlib

from PySide6.QtCore import QCoreApplication, QEvent

from skep_gui.app import wiring
from skep_gui.app.app import App
from skep_gui.app.launch import Options
from skep_gui.app.tray import Tray
from skep_gui.words.now import Now

SOON = 20_000
"""Milliseconds."""


def wait(qtbot, condition, milliseconds=SOON):
    qtbot.waitUntil(lambda: bool(condition()), timeout=milliseconds)


def remember(home, *lines):
    """What the app kept of an earlier start: the first steps are done, and whatever `lines` say."""
    home.create()
    (home.root / "window.ini").write_text("\n".join(("[General]", "first-run-done=done", *lines, "")))


@contextlib.contextmanager
def started(qt, qtbot, monkeypatch, home, *, hidden=False, ready=True):
    """`ready` waits until the engine runs; without, it may be refused."""
    ended = []
    monkeypatch.setattr(qt, "exit", lambda code=0: ended.append(code), raising=False)
    app = App(qt, Options(home=str(home.root), hidden=hidden), Tray(Now(), "#6B665E"), lambda: wiring)
    app.ended = ended
    running = []
    app.ready.connect(lambda: running.append(True))
    app.start()
    if ready:
        wait(qtbot, lambda: running)
    try:
        yield app
    finally:
        app.quit()
        wait(qtbot, lambda: ended)
        for each in (app.window, app):
            if each is not None:
                each.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
