"""Starts and ends the app inside the test's process, with its real engine and home."""

import contextlib

from PySide6.QtCore import QCoreApplication, QEvent

from skep_gui.app.app import App
from skep_gui.app.language import Language
from skep_gui.app.tray import Tray
from skep_gui.words.now import Now

SOON = 20_000
"""Milliseconds."""


class TellingTray(Tray):
    """Keeps its notifications in `told`, as (title, hint)."""

    def __init__(self):
        super().__init__(Now(), "#6B665E")
        self.told = []

    def tell(self, title, hint=""):
        self.told.append((title, hint))


def wait(qtbot, condition, milliseconds=SOON):
    qtbot.waitUntil(lambda: bool(condition()), timeout=milliseconds)


def remember(home, *lines):
    """Write what the app stores at an earlier start: the first steps are done; `lines` are added."""
    home.create()
    (home.root / "window.ini").write_text("\n".join(("[General]", "first-run-done=done", *lines, "")))


@contextlib.contextmanager
def started(qt, qtbot, home, *, ready=True, language=None, kind=App, **options):
    """With `ready`, wait until the engine runs; without, the start may be refused. `endings` is filled at the end."""
    app = kind(qt, TellingTray(), language or Language(qt), home=str(home.root), **options)
    app.endings, running = [], []
    app.ended.connect(lambda: app.endings.append(True))
    app.ready.connect(lambda: running.append(True))
    app.start()
    if ready:
        wait(qtbot, lambda: running)
    try:
        yield app
    finally:
        app.quit()
        wait(qtbot, lambda: app.endings)
        # the app does not wait for work that runs; here it would go on beside the next test, or leave its process behind
        wait(qtbot, lambda: not any(thread.is_alive() for lane in app.background.lanes for thread in lane._threads))
        for each in (app.first_steps, app.window, app):
            if each is not None:
                each.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
