"""The app: constructs the parts, passes snapshots to the tray and the window, and user requests to the controller.

The tray is shown first; everything slow is loaded in the background. Decisions are the engine's, texts are in `words`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QProcess, QTimer, Signal
from PySide6.QtWidgets import QApplication, QSystemTrayIcon

from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.settings.setting import Value
from skep.core.text import NOTHING, Problem, Text
from skep_gui.app.actions import Lookups, ProjectActions
from skep_gui.app.background import Background, Bridge, Commands
from skep_gui.app.error_reporter import ErrorReporter
from skep_gui.app.language import Language
from skep_gui.app.outside_settings import OutsideSettings
from skep_gui.app.packs import Packing
from skep_gui.app.remembered import Remembered
from skep_gui.app.tray import Tray
from skep_gui.app.updates import Updating
from skep_gui.pages.registry import Requests
from skep_gui.widgets import icons, theme
from skep_gui.words.notices import Update, UpdateStage
from skep_gui.words.now import History, title
from skep_gui.words.projects import PRACTICE, titled
from skep_gui.words.speaker import filled
from skep_gui.words.translation import Translation

if TYPE_CHECKING:
    from skep_gui.app.controller import Controller
    from skep_gui.app.dialogs import StartRefusal
    from skep_gui.app.main_window import MainWindow
    from skep_gui.pages.first_run import FirstRun


class App(QObject):
    """Construct it with a tray, call `start`, and run Qt's event loop; `quit` ends the app and the loop."""

    ready = Signal()
    """The engine runs."""
    ended = Signal()
    """The app has ended completely, so that Qt's event loop may end."""

    def __init__(
        self,
        qt: QApplication,
        tray: Tray,
        language: Language,
        *,
        home: str | None,
        hidden: bool = False,
        link: str = "",
    ) -> None:
        """`hidden` starts with the tray only; `link` is a project to show, which is never joined automatically."""
        super().__init__()
        self._qt, self._home, self._hidden, self._link = qt, home, hidden, link
        self.snapshot = self._raw = Snapshot()
        self.history = History()
        self.lacking: dict[str, Text] = {}
        self.language = language
        self._language = self._theme = "system"
        self.tongue = language.speak(self._language)
        self.translation = Translation(self.tongue)
        self.controller: Controller | None = None
        self.window: MainWindow | None = None
        self.first_steps: FirstRun | None = None
        self.box: StartRefusal | None = None
        self._opening: Controller | None = None  # opened last, perhaps in vain; its settings may be mended
        self._remembered = Remembered()
        self._quitting = self._restarts = False
        qt.setQuitOnLastWindowClosed(False)
        qt.setApplicationName("skep")
        qt.setWindowIcon(icons.app())
        theme.apply(qt, theme.chosen(self._theme))
        self.bridge = Bridge(self)
        self.background = Background(self)
        self.commands = Commands(self.background)
        self.projects = ProjectActions(self.background, self)
        self.projects.tongue = self.tongue
        self.lookups = Lookups(self.background, self.translation, self)
        self.error_reporter = ErrorReporter(self.background, self.translation.problems, self)
        self.updating = Updating(self.background, lambda: self.snapshot, self)
        self.packing = Packing(self.background, lambda: self.snapshot, self)
        self.tray = tray
        tray.setParent(self)
        self._beat = QTimer(self, interval=1000)  # milliseconds between two updates of the countdowns
        self._beat.timeout.connect(self._show)
        self._connect()

    def _connect(self) -> None:
        self.bridge.changed.connect(self._changed)
        self.bridge.notified.connect(self._notified)
        self.bridge.raised.connect(self.look_at)
        self.bridge.settled.connect(self.lookups.read_record_later)
        self.projects.joining.connect(self._join)
        self.projects.refused.connect(self._notify_unseen)
        self.error_reporter.found.connect(self._erred)
        self.updating.changed.connect(self._update_changed)
        self.updating.restart_wanted.connect(self.restart)
        self.packing.changed.connect(lambda _: self.show_pack())
        self.tray.opened.connect(self.open)
        self.tray.pause_chosen.connect(self.commands.pause)
        self.tray.resumed.connect(self.commands.resume)
        self.tray.quit_wanted.connect(self.quit)
        self._qt.styleHints().colorSchemeChanged.connect(lambda _: self._apply_theme(self._theme))

    def start(self) -> None:
        self.tray.show()
        self.background.run(self._open_controller, self._opened, self._cannot_open, slow=True)

    def _open_controller(self) -> Controller | None:
        """Runs in a background thread. None if a skep that already runs in this home shows its window instead."""
        from skep_gui.app.controller import Controller  # noqa: PLC0415 - it brings most of skep

        self._opening = controller = Controller(self._home)
        opened = controller.open(self.bridge.observe, self.bridge.notify, self.bridge.show, self._link)
        return controller if opened else None

    def _opened(self, controller: Controller | None) -> None:
        if controller is None:
            self._end()
            return
        self.controller = self.projects.controller = controller  # only here; a quit before this point is handled below
        self.lookups.controller = self.error_reporter.controller = controller
        self.lacking = controller.lacking()
        self.updating.start(controller)
        self.packing.start(controller)
        outside = OutsideSettings(self.background, controller.outside, self._settings_in_view, self)
        outside.changed.connect(self.commands.change_settings)
        self._remembered = Remembered(controller.folder)
        if self._quitting:
            self._quitting = False
            self.quit()
            return
        new = self._remembered.is_new
        self._beat.start()
        self._changed(controller.snapshot)
        self.commands.open(controller.post)
        self.ready.emit()
        hidden = self._hidden or self.snapshot.settings.get("app.start_minimised") is True
        if not hidden or new or self._link or not QSystemTrayIcon.isSystemTrayAvailable():
            self.look_at(self._link)
        if new:
            self.first_run()
        elif active := self._remembered.active:
            self.projects.join(active, resumed=True)

    def _cannot_open(self, problem: Problem) -> None:
        if self._quitting:  # the user quit while the controller opened, and no later quit would close the dialog
            self._end()
            return
        from skep_gui.app.dialogs import StartRefusal  # noqa: PLC0415 - rarely seen

        mendable = self._opening is not None and self._opening.cannot_read_settings
        self.box = StartRefusal(*self.tongue.core.problem(problem), mendable=mendable)
        self.box.finished.connect(lambda _: self._refusal_read())
        self.box.open()

    def _refusal_read(self) -> None:
        """Start again with the default settings if the user chose that; otherwise end."""
        box, opening, self.box, self._opening = self.box, self._opening, None, None
        if box is not None and box.begins_anew and opening is not None:
            self.background.run(opening.forget_settings, lambda _: self.start(), self._cannot_open, slow=True)
        else:
            self._end()

    def quit(self) -> None:
        """Leave the swarm in an orderly way, then end. A further call does not wait for a model that is being saved."""
        if self._quitting:
            self.commands.insist(self.snapshot)
            return
        self._quitting = True
        self.commands.close()
        if self.controller is None:
            if self.box is not None:
                self.box.reject()
            return  # otherwise the controller is still opening, and ends when that is done
        if self.window is not None:
            self.window.say(self.tr("Leaving the swarm, then skep ends. Quit again if saving takes too long."))
        self.updating.end()
        self.packing.end()
        self.projects.doctor.stop()
        self.controller.cancel_practice()
        self.background.run(self.controller.close, lambda _: self._end(), lambda _: self._end(), last=True)

    def restart(self) -> None:
        """Quit, and start skep again; after an update this is another version."""
        self._restarts = True
        self.quit()

    def _end(self) -> None:
        self._beat.stop()
        self.error_reporter.close()
        self.background.close()
        self.tray.icon.hide()
        if self.window is not None:
            self.window.close()
        if self._restarts and self.controller is not None:
            program, *arguments = self.controller.updates.start_command()
            QProcess.startDetached(program, arguments)
        self.ended.emit()

    def _changed(self, raw: Snapshot) -> None:
        if (language := str(raw.settings.get("app.language", self._language))) != self._language:
            self._speak(language)
        snapshot, self._raw = titled(raw, self.tongue), raw
        before, self.snapshot, self.projects.snapshot = self.snapshot, snapshot, snapshot
        self.history.see(snapshot, time.time())
        self._beat.start()  # what was just shown needs no update within the next second
        if snapshot.settings.get("app.theme", "system") != self._theme:
            self._apply_theme(str(snapshot.settings["app.theme"]))
        if before.phase is not Phase.IDLE and snapshot.phase is Phase.IDLE and not self._quitting:
            self._left_project(before, failed=snapshot.problem is not None and not before.left)
        if before.phase is Phase.JOINING and snapshot.phase is Phase.TRAINING:
            self._tell_all(filled(self.tr("Joined %1."), title(snapshot)))
        self._show()

    def _speak(self, language: str) -> None:
        """Show all texts again in another language; the window keeps its place."""
        self._language, self.tongue = language, self.language.speak(language)
        self.projects.tongue = self.tongue
        self.translation = self.lookups.translation = Translation(self.tongue)
        self.snapshot = titled(self._raw, self.tongue)
        self.tray.speak(self.translation.now)
        self.error_reporter.speak(self.translation.problems)
        if (window := self.window) is not None:
            window.speak(self.translation, self._connect_pages)
            if window.isVisible():
                self._fill()
        if self.first_steps is not None and self.first_steps.isVisible():
            self.first_steps.close()
            self.first_run()

    def _show(self) -> None:
        now = time.time()
        self.tray.show_snapshot(self.snapshot, now)
        if self.window is not None:
            self.window.show_snapshot(self.snapshot, self.history, now)

    def _left_project(self, before: Snapshot, *, failed: bool) -> None:
        """A stay has ended: unless it failed, it is not resumed at the next start."""
        if not failed:
            self._remembered.active = ""
        self.projects.left(before.project)

    def _notified(self, problem: Problem) -> None:
        if self.snapshot.settings.get("app.notifications", "problems") != "none":
            self.tray.tell(*self.tongue.core.problem(problem))

    def _erred(self, problem: Problem) -> None:
        """An error in skep itself: show one notification, and the report in the window."""
        if self.window is not None:
            self.window.show_fault(problem)
        self._notify_unseen(problem)

    def _notify_unseen(self, problem: Problem) -> None:
        if self.window is None or not self.window.isVisible():
            self._notified(problem)

    def _tell_all(self, news: str) -> None:
        """Notifications that are shown only with the setting for all of them."""
        if self.snapshot.settings.get("app.notifications") == "all":
            self.tray.tell(news)

    def _update_changed(self, update: Update) -> None:
        self.show_update()
        if update.stage in (UpdateStage.FOUND, UpdateStage.TOLD) and (view := self.translation.updates.view(update)):
            self._tell_all(view.title)

    def show_update(self) -> None:
        """Show the state of an update in the window."""
        if self.window is None:
            return
        words, lacking = self.translation.updates, self.lacking.get("app.check_updates", NOTHING)
        self.window.news.show_update(words.view(self.updating.update))
        older = self.controller.updates.previous if self.controller is not None else ""
        self.window.settings.show_updates(self.tongue.said(lacking), words.go_back(older) if older else "")

    def show_pack(self) -> None:
        """Show what is known of the compute pack in the window."""
        view = self.translation.packs.view(self.packing.state)
        self.projects.say_meanwhile(" · ".join((view.sentence, *view.details[:1])) if view and view.cancel else "")
        if self.window is not None:
            self.window.settings.pack.show_pack(view)

    def _leave_or_cancel(self) -> None:
        if self.projects.cancel():
            self.packing.cancel()  # the start may wait for a pack; one that was asked for in Settings goes on
        else:
            self.commands.leave()

    def _apply_theme(self, chosen: str) -> None:
        self._theme = chosen
        theme.apply(self._qt, theme.chosen(chosen))
        self.tray.set_colour(theme.chosen("system").panel)
        if self.window is not None:
            self.window.update()

    def open(self) -> None:
        if self._quitting:
            return
        if self.window is None:
            from skep_gui.app.main_window import MainWindow  # noqa: PLC0415 - it brings every page

            window = self.window = self.lookups.window = self.error_reporter.window = MainWindow(self.translation)
            self._connect_pages(window)
            window.opened.connect(lambda: QTimer.singleShot(0, self, self._fill))
            window.closed.connect(self._window_closed)
            window.quit_wanted.connect(self.quit)
            self.error_reporter.projects_wanted.connect(window.go_to_projects)
            self.error_reporter.connection_wanted.connect(self.projects.check)
            self.error_reporter.setting_wanted.connect(window.go_to_setting)
        self.window.raise_up()

    def _connect_pages(self, window: MainWindow) -> None:
        window.connect_pages(
            Requests(
                pause=self.commands.pause,
                resume=self.commands.resume,
                leave=self.commands.leave,
                leave_or_cancel=self._leave_or_cancel,
                go_to_projects=window.go_to_projects,
                go_to_setting=window.go_to_setting,
                change_setting=lambda key, value: self.commands.change_settings({key: value}),
                read_record=self.lookups.read_record,
                export=self.lookups.export,
                save_result=self.lookups.save_result,
                offer_devices=self.lookups.offer_devices,
                first_run=self.first_run,
                diagnose=self.error_reporter.diagnose,
                look_for_update=self.updating.look,
                go_back_to_older=self.updating.go_back,
                look_at_packs=self.packing.look,
                fetch_pack=self.packing.fetch,
                cancel_pack=self.packing.cancel,
                free_packs=self.packing.free,
            )
        )
        self.projects.connect_page(window.projects, window.now)
        window.settings.show_lacking(self.lacking)
        window.strip.acted.connect(self.error_reporter.act)
        window.news.acted.connect(self.updating.act)
        window.news.closed.connect(self.updating.close)
        window.show_fault(self.error_reporter.fault)
        self.show_update()
        self.show_pack()

    def look_at(self, link: str = "") -> None:
        """Open the window; with a link, on its project's permission page. Only the user's click joins."""
        self.open()
        if link and self.window is not None:
            self.window.go_to(self.window.projects)
            self.window.projects.setCurrentWidget(self.window.projects.list)
            self.projects.add(link)

    def _fill(self) -> None:
        self._show()
        self.projects.refresh()
        self.lookups.read_record()
        if self.window is not None and not QSystemTrayIcon.isSystemTrayAvailable() and self._remembered.once("no-tray"):
            text = self.tr(
                "This desktop has no tray. skep continues while its window is closed; start skep again to open it."
            )
            self.window.say(text)

    def _window_closed(self) -> None:
        if not self._quitting and QSystemTrayIcon.isSystemTrayAvailable() and self._remembered.once("closed"):
            self.tray.tell(self.tr("skep continues in the tray."), self.tr("Quit is in its menu."))

    def _settings_in_view(self) -> dict[str, Value] | None:
        return self.snapshot.settings if self.window is not None and self.window.settings.isVisible() else None

    def _join(self, join: m.Join) -> None:
        self._remembered.active = join.project.id
        self.commands.post(join)
        if self.window is not None:
            self.window.go_to(self.window.now)

    def first_run(self) -> None:
        """Show the first steps, as a child of the window if it is open."""
        from skep_gui.pages.first_run import FirstRun  # noqa: PLC0415 - seen once

        if (controller := self.controller) is None:
            return
        self._remembered.first_run_shown()
        self.first_steps = steps = FirstRun(self.translation.devices, self.window)
        steps.limits_chosen.connect(self.commands.change_settings)
        steps.practice_wanted.connect(lambda: self.projects.join(PRACTICE))
        if self.window is not None:
            steps.projects_wanted.connect(self.window.go_to_projects)
        self.background.run(controller.devices, steps.show_devices, self.lookups.refuse, slow=True)
        steps.open()
