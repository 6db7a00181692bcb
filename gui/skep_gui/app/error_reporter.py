"""Errors in skep itself, in the app's process: caught, logged, and shown as a report, while the app goes on."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, Signal

from skep.core.text import Problem, Remedy
from skep_gui.app.background import OUR_OWN, Background
from skep_gui.words.notices import Problems, remedy_setting
from skep_gui.words.speaker import filled

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from skep_gui.app.controller import Controller
    from skep_gui.app.dialogs import TextDialog

LOGGER: Final = "skep"
LONGEST: Final = 20_000
"""Maximum characters of one report; the end of a traceback is kept, which says the most."""

KEPT: Final = 5
"""Maximum number of errors in the report, the latest; errors from the same place count once."""

log = logging.getLogger("skep.gui")


class _Listening(logging.Handler):
    """A log handler that passes on every record with a traceback, from any thread."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = tell
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._tell(self.format(record)[-LONGEST:])


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    log.error("an error that nobody caught", exc_info=(kind, error, trace))


def _uncaught_in_thread(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is not None:
        name = told.thread.name if told.thread is not None else "?"
        log.error("an error that nobody caught in %s", name, exc_info=told.exc_value)


class ErrorReporter(QObject):
    found = Signal(object)
    """A Problem: an error in skep itself that has not been reported before."""
    projects_wanted = Signal()
    connection_wanted = Signal()
    setting_wanted = Signal(str)
    """A setting's key; "" for the settings page without one."""
    _seen = Signal(str)

    def __init__(self, background: Background, words: Problems, parent: QObject) -> None:
        super().__init__(parent)
        self.controller: Controller | None = None
        self.window: QWidget | None = None
        self.dialog: TextDialog | None = None
        self.traces: list[str] = []
        self._places: set[str] = set()
        self._background, self._words = background, words
        self._seen.connect(self._remember, Qt.ConnectionType.QueuedConnection)
        self._handler = _Listening(self._seen.emit)
        logging.getLogger(LOGGER).addHandler(self._handler)
        self._hooks = sys.excepthook, threading.excepthook
        sys.excepthook, threading.excepthook = _uncaught, _uncaught_in_thread

    def close(self) -> None:
        """Stop watching."""
        logging.getLogger(LOGGER).removeHandler(self._handler)
        sys.excepthook, threading.excepthook = self._hooks

    def speak(self, words: Problems) -> None:
        self._words = words

    def _remember(self, trace: str) -> None:
        # compared by place only: a message may contain a number that differs each time
        place = trace.rstrip().rpartition("\n")[0]
        if place in self._places:
            return
        self._places.add(place)
        self.traces = [*self.traces, trace][-KEPT:]
        self.found.emit(OUR_OWN)

    @property
    def fault(self) -> Problem | None:
        """What the strip shows until it is closed: an error in skep itself, or a damaged file that is mended."""
        if self.traces:
            return OUR_OWN
        return self.controller.mended if self.controller is not None else None

    def act(self, problem: Problem) -> None:
        """Open what may help with the problem."""
        match problem.remedy:
            case Remedy.PROJECTS.value:
                self.projects_wanted.emit()
            case Remedy.CONNECTION.value:
                self.connection_wanted.emit()
            case Remedy.REPORT.value:
                self.report()
            case Remedy.SETTINGS.value:
                self.setting_wanted.emit("")
            case _:
                if key := remedy_setting(problem):
                    self.setting_wanted.emit(key)
                else:
                    self.diagnose()

    def report(self) -> None:
        """The latest errors in skep itself, to be copied."""
        title, what = self.tr("Report of an error"), self.tr("This report is not sent. Copy it to report the error.")
        traces = "\n\n".join(self.traces)
        self._open(title, what, "skep-report.txt", lambda controller: controller.report(traces, self._words))

    def diagnose(self) -> None:
        title = self.tr("Diagnostics")
        what = self.tr(
            "A description of this skep for people who help you. Addresses, keys and your name are masked, "
            "and nothing is sent. Read it before you pass it on."
        )
        self._open(title, what, "skep-diagnostics.txt", lambda controller: controller.diagnose())

    def _open(self, title: str, what: str, file: str, make: Callable[[Controller], str]) -> None:
        from skep_gui.app.dialogs import TextDialog  # noqa: PLC0415 - seldom seen

        if (controller := self.controller) is None:
            return
        if self.dialog is not None:
            self.dialog.close()
        self.dialog = dialog = TextDialog(title, what, file, self.window)
        dialog.say(self.tr("Gathering …"))

        def show(text: str) -> None:
            dialog.show_text(text)
            dialog.say("")

        dialog.save_wanted.connect(lambda path, text: self._save(controller, path, text, dialog))
        self._background.run(lambda: make(controller), show, partial(self._refuse, dialog), slow=True)
        dialog.open()

    def _save(self, controller: Controller, path: str, text: str, dialog: TextDialog) -> None:
        def written(where: str) -> None:
            dialog.say(filled(self.tr("Written to %1"), where))

        self._background.run(lambda: controller.keep(path, text), written, partial(self._refuse, dialog))

    def _refuse(self, dialog: TextDialog, problem: Problem) -> None:
        dialog.say(self._words.tongue.told(problem))
