"""The app: makes the parts, hands snapshots to tray and window, and what a person asks for to the desk.

It owns the bridge for as long as the engine runs. The tray is there first; everything heavy is loaded behind it, by an
errand. It must not decide what the engine decides, nor say what `words` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QProcess, QTimer, Signal
from PySide6.QtWidgets import QApplication, QSystemTrayIcon

from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.text import NOTHING, Problem, Text
from skep_gui.app.background import Errands
from skep_gui.app.bridge import Bridge
from skep_gui.app.error_reporter import Trouble
from skep_gui.app.language import Language
from skep_gui.app.launch import Options, Views
from skep_gui.app.outside_settings import OutsideSettings
from skep_gui.app.project_actions import ProjectActions
from skep_gui.app.remembered import Remembered
from skep_gui.app.tray import Tray
from skep_gui.app.updates import Updating
from skep_gui.widgets import icons, theme
from skep_gui.words.notices import Stage, Update
from skep_gui.words.now import History, title
from skep_gui.words.projects import PRACTICE, titled
from skep_gui.words.speaker import filled
from skep_gui.words.stats import Record
from skep_gui.words.translation import Translation

if TYPE_CHECKING:
    from skep_gui.app.controller import Desk
    from skep_gui.app.main_window import MainWindow
    from skep_gui.app.start_refusal import StartRefusal
    from skep_gui.pages.first_run import FirstRun

BEAT: Final = 1000
"""Milliseconds between two looks at the clock, for what counts down."""
LATER: Final = 400
"""Milliseconds after a contribution until the ledger is read, so that a burst is read once."""


class App(QObject):
    """Construct it with a tray, `start` it, and run Qt's loop; `quit` ends both."""

    ready = Signal()
    """The engine runs."""

    def __init__(
        self,
        app: QApplication,
        options: Options,
        tray: Tray,
        views: Callable[[], Views],
        language: Language | None = None,
    ) -> None:
        """`views` is called when the window is first wanted."""
        super().__init__()
        self._views = views
        self._app, self._options = app, options
        self.snapshot = Snapshot()
        self.history = History()
        self._raw = self.snapshot
        self.lacking: dict[str, Text] = {}
        self.outside: OutsideSettings | None = None
        self.language = language or Language(app)
        self._language = "system"
        self.tongue = self.language.speak(self._language)
        self.translation = Translation(self.tongue)
        self.desk: Desk | None = None
        self.window: MainWindow | None = None
        self._remembered = Remembered()
        self._quitting = False
        self.box: StartRefusal | None = None
        self._damaged: Desk | None = None
        """The desk whose settings could not be read."""
        self._theme = "system"
        app.setQuitOnLastWindowClosed(False)
        app.setApplicationName("skep")
        app.setWindowIcon(icons.app())
        self._colours = theme.chosen(self._theme)
        theme.apply(app, self._colours)
        self.bridge = Bridge(self)
        self.errands = Errands(self)
        self.projects = ProjectActions(self.errands, self)
        self.projects.in_words = self.tongue.told
        self.trouble = Trouble(self.errands, self.translation.problems, self)
        self.updating = Updating(self.errands, lambda: self.snapshot, self)
        self._restarts = False
        self.tray = tray
        tray.setParent(self)
        self._beat = QTimer(self, interval=BEAT)
        self._beat.timeout.connect(self._show)
        self._stale = QTimer(self, interval=LATER, singleShot=True)
        self._stale.timeout.connect(self.read_record)
        self._connect()

    def _connect(self) -> None:
        self.bridge.changed.connect(self._changed)
        self.bridge.notified.connect(self._notified)
        self.bridge.raised.connect(self.look_at)
        self.bridge.settled.connect(self._stale.start)
        self.projects.joining.connect(self._join)
        self.trouble.found.connect(self._erred)
        self.updating.changed.connect(self._update_changed)
        self.updating.restart_wanted.connect(self.restart)
        self.tray.opened.connect(self.open)
        self.tray.pause_chosen.connect(self.pause)
        self.tray.resumed.connect(self.resume)
        self.tray.quit_wanted.connect(self.quit)
        self._app.styleHints().colorSchemeChanged.connect(lambda _: self._dress(self._theme))

    # --- start and end

    def start(self) -> None:
        self.tray.show()
        self.errands.run(self._open_desk, self._opened, self._cannot_open, slow=True)

    def _open_desk(self) -> Desk | None:
        """In an errand's thread; None where a skep that runs here already shows its window instead."""
        from skep.core.errors import AlreadyRunning, SettingsError  # noqa: PLC0415 - loaded behind the tray
        from skep_gui.app.controller import Desk  # noqa: PLC0415 - it brings most of skep

        desk = Desk(self._options.home)
        try:
            desk.open(self.bridge.observe, self.bridge.notify, self.bridge.show)
        except AlreadyRunning:
            if desk.raise_other(self._options.link):
                return None
            raise
        except SettingsError:
            self._damaged = desk
            raise
        return desk

    def _opened(self, desk: Desk | None) -> None:
        if desk is None:
            self._end()
            return
        # only now and here: whoever quits before is heard below
        self.desk = self.projects.desk = self.trouble.desk = desk
        self.lacking = desk.lacking()
        self.updating.start(desk)
        self.outside = OutsideSettings(
            self.errands, desk.outside, lambda: self.snapshot.settings, self._settings_are_seen, self
        )
        self.outside.changed.connect(lambda values: self.post(m.ChangeSettings(values)))
        self._remembered = Remembered(desk.folder)
        if self._quitting:
            self._quitting = False
            self.quit()
            return
        new = self._remembered.is_new
        self._beat.start()
        self._changed(desk.snapshot)
        self.ready.emit()
        hidden = self._options.hidden or self.snapshot.settings.get("app.start_minimised") is True
        if not hidden or new or self._options.link or not QSystemTrayIcon.isSystemTrayAvailable():
            self.look_at(self._options.link)
        if new:
            self.first_run()
        elif active := self._remembered.active:
            self.projects.join(active)

    def _cannot_open(self, problem: Problem) -> None:
        from skep_gui.app.start_refusal import StartRefusal  # noqa: PLC0415 - rarely seen

        box = StartRefusal(*self.tongue.core.problem(problem), mendable=self._damaged is not None)
        box.finished.connect(lambda _: self._refusal_read())
        box.open()
        self.box = box

    def _refusal_read(self) -> None:
        """Begin anew with the default settings, where that was chosen; else end."""
        box, damaged, self.box, self._damaged = self.box, self._damaged, None, None
        if box is not None and box.begins_anew and damaged is not None:
            self.errands.run(damaged.forget_settings, lambda _: self.start(), self._cannot_open, slow=True)
        else:
            self._end()

    def quit(self) -> None:
        """Leave the swarm politely, then end; a second time changes nothing."""
        if self._quitting:
            return
        self._quitting = True
        if self.desk is None:
            if self.box is not None:
                self.box.reject()
            return  # else it is being opened, and ends as soon as it is
        if self.window is not None:
            self.window.say(self.tr("Leaving the swarm, then skep ends."))
        self.updating.end()
        self.desk.cancel_practice()
        self.errands.run(self.desk.close, lambda _: self._end(), lambda _: self._end(), last=True)

    def restart(self) -> None:
        """Quit, and start what is skep then: after an update another version."""
        self._restarts = True
        self.quit()

    def _end(self) -> None:
        self._beat.stop()
        self.trouble.close()
        self.errands.close()
        self.tray.icon.hide()
        if self.window is not None:
            self.window.close()
        if self._restarts and self.desk is not None:
            program, *arguments = self.desk.updates.start_command()
            QProcess.startDetached(program, arguments)
        self._app.exit(0)

    # --- what the engine says

    def _changed(self, raw: Snapshot) -> None:
        if (language := str(raw.settings.get("app.language", self._language))) != self._language:
            self._speak(language)
        snapshot, self._raw = titled(raw, self.tongue), raw
        before, self.snapshot, self.projects.snapshot = self.snapshot, snapshot, snapshot
        self.history.see(snapshot, time.time())
        self._beat.start()  # what is shown now need not be shown again before a second has gone by
        if snapshot.settings.get("app.theme", "system") != self._theme:
            self._dress(str(snapshot.settings["app.theme"]))
        if before.phase is not Phase.IDLE and snapshot.phase is Phase.IDLE and not self._quitting:
            self._stayed(before, failed=snapshot.problem is not None)
        if before.phase is Phase.JOINING and snapshot.phase is Phase.TRAINING:
            self._tell_all(filled(self.tr("Joined %1."), title(snapshot)))
        self._show()

    def _speak(self, language: str) -> None:
        """All that is shown, anew in another language; the window stays where it is."""
        self._language, self.tongue = language, self.language.speak(language)
        self.projects.in_words = self.tongue.told
        self.translation = Translation(self.tongue)
        self.snapshot = titled(self._raw, self.tongue)
        self.tray.speak(self.translation.now)
        self.trouble.speak(self.translation.problems)
        if self.window is not None:
            self._views().speak_anew(self, self.window)
            if self.window.isVisible():
                self._fill()
        steps: FirstRun | None = getattr(self, "first_steps", None)
        if steps is not None and steps.isVisible():
            steps.close()
            self.first_run()

    def _show(self) -> None:
        now = time.time()
        self.tray.show_snapshot(self.snapshot, now)
        if self.window is not None:
            self.window.show_snapshot(self.snapshot, self.history, now)

    def _stayed(self, before: Snapshot, *, failed: bool) -> None:
        """A stay is over: unless it failed it is not resumed at the next start; a practice swarm has done its work."""
        if not failed:
            self._remembered.active = ""
        if self.desk is not None and before.project is not None and before.project.id == PRACTICE:
            self.errands.run(self.desk.end_practice, _nothing, _nothing, slow=True)

    def _notified(self, problem: Problem) -> None:
        if self.snapshot.settings.get("app.notifications", "problems") != "none":
            self.tray.tell(*self.tongue.core.problem(problem))

    def _erred(self, problem: Problem) -> None:
        """Skep met an error of its own; it is told once, and its report waits in the window."""
        if self.window is not None:
            self.window.show_fault(problem)
        if self.window is None or not self.window.isVisible():
            self._notified(problem)

    def _tell_all(self, news: str) -> None:
        """What only those want to hear who asked for all."""
        if self.snapshot.settings.get("app.notifications") == "all":
            self.tray.tell(news)

    def _update_changed(self, update: Update) -> None:
        self.show_update()
        if update.stage in (Stage.FOUND, Stage.TOLD) and (view := self.translation.updates.view(update)) is not None:
            self._tell_all(view.title)

    def show_update(self) -> None:
        """What there is to say of an update, in the window."""
        update, words = self.updating.update, self.translation.updates
        view = words.view(update)
        if self.window is not None:
            self.window.news.show_update(view)
            older = self.desk.updates.previous if self.desk is not None else ""
            self.window.settings.show_updates(
                self.tongue.said(self.lacking.get("app.check_updates", NOTHING)), words.go_back(older) if older else ""
            )

    def _dress(self, chosen: str) -> None:
        self._theme, self._colours = chosen, theme.chosen(chosen)
        theme.apply(self._app, self._colours)
        self.tray.dress(theme.chosen("system").panel)
        if self.window is not None:
            self.window.update()

    # --- what a person asks for

    def post(self, command: m.Command) -> None:
        # the engine's queue may be full, and Qt's thread must never wait
        if (desk := self.desk) is not None and not self._quitting:
            self.errands.run(lambda: desk.post(command), _nothing, _nothing)

    def pause(self, until: float | None) -> None:
        self.post(m.Pause(until))

    def resume(self) -> None:
        self.post(m.Resume())

    def leave(self, at_once: bool = False) -> None:  # noqa: FBT001, FBT002 - a signal's value
        self.post(m.Leave(now=at_once))

    def open(self) -> None:
        if self._quitting:
            return
        if self.window is None:
            self.window = self._views().make_window(self)
            self.show_update()
        self.window.raise_up()

    def look_at(self, link: str = "") -> None:
        """Open the window; with a link, on what its project would use. Joining stays a click of the person's."""
        self.open()
        if link and self.window is not None:
            self.window.go_to(self.window.projects)
            self.window.projects.setCurrentWidget(self.window.projects.list)
            self.projects.add(link)

    def window_opened(self) -> None:
        QTimer.singleShot(0, self, self._fill)

    def _fill(self) -> None:
        self._show()
        self.projects.refresh()
        self.read_record()
        if self.window is not None and not QSystemTrayIcon.isSystemTrayAvailable() and self._remembered.once("no-tray"):
            self.window.say(
                self.tr(
                    "This desktop shows no tray. skep goes on while its window is closed; start it again to see it."
                )
            )

    def window_closed(self) -> None:
        if not self._quitting and QSystemTrayIcon.isSystemTrayAvailable() and self._remembered.once("closed"):
            self.tray.tell(self.tr("skep goes on in the tray."), self.tr("Quit is in its menu."))

    def _join(self, join: m.Join) -> None:
        self._remembered.active = join.project.id
        self.post(join)
        if self.window is not None:
            self.window.go_to(self.window.now)

    def _settings_are_seen(self) -> bool:
        return self.window is not None and self.window.settings.isVisible()

    def read_record(self) -> None:
        if (desk := self.desk) is None or (window := self.window) is None or not window.isVisible():
            return

        def show(record: Record) -> None:
            window.stats.show_record(record, window.projects.titles())

        asked = window.stats.asked
        self.errands.run(lambda: desk.record(asked), show, self._say_problem)

    def export(self, path: str) -> None:
        if (desk := self.desk) is None or (window := self.window) is None:
            return

        def written(where: str) -> None:
            window.stats.say(filled(self.tr("Written to %1"), where))

        self.errands.run(lambda: desk.export(path), written, self._say_problem)

    def _say_problem(self, problem: Problem) -> None:
        if self.window is not None:
            self.window.stats.say(self.tongue.told(problem))

    def first_run(self) -> None:
        if (desk := self.desk) is None:
            return
        self._remembered.first_run_shown()
        self.first_steps = steps = self._views().first_steps(self)
        self.errands.run(desk.devices, steps.show_devices, self._say_problem, slow=True)
        steps.open()


def _nothing(_answer: object) -> None:
    """For errands whose answer nobody waits for."""
