"""Actions on projects and look-ups for the pages: the controller does the work in the background, these show the
results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from skep.core.device import Device
from skep.core.plain_text import plain
from skep.core.project.data import Project
from skep.core.project.manifest import VerifiedProject
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem
from skep_gui.app.background import Background
from skep_gui.app.doctor import ConnectionDoctor
from skep_gui.words.doctor import Doctor
from skep_gui.words.projects import PRACTICE, Known
from skep_gui.words.settings import LIMITS
from skep_gui.words.speaker import english, filled
from skep_gui.words.stats import Record
from skep_gui.words.translation import Translation

LATER: Final = 400
"""Milliseconds after a contribution until the ledger is read."""

if TYPE_CHECKING:
    from skep.core.sandbox import Sandbox
    from skep_gui.app.controller import Controller, NoKeyring
    from skep_gui.app.dialogs import KeyringConsent
    from skep_gui.app.main_window import MainWindow
    from skep_gui.pages.now_page import NowPage
    from skep_gui.pages.projects_page import ProjectsPage


class ProjectActions(QObject):
    """Adds, joins and leaves projects, and accepts invitations."""

    joining = Signal(object)
    """A m.Join whose project was found to fit."""
    refused = Signal(object)
    """The Problem for which a join was refused, after the page has shown it."""

    def __init__(self, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._background = background
        self.controller: Controller | None = None
        self.page: ProjectsPage | None = None
        self._now: NowPage | None = None
        self.snapshot = Snapshot()
        self.consent: KeyringConsent | None = None
        self.doctor = ConnectionDoctor(background, self)
        self.tongue = english
        self._starting = ""
        self._cancelled = False
        """Whether the join that is being prepared is not wanted any more."""
        self._reading = self._again = False
        """Whether the catalogue is being read, and is to be read once more, since it was asked for meanwhile."""

    def connect_page(self, page: ProjectsPage, now: NowPage) -> None:
        self.page, self._now = page, now
        page.join_wanted.connect(self.join)
        page.add_wanted.connect(self.add)
        page.invitation_wanted.connect(self.accept)
        page.identity_wanted.connect(self.copy_identity)
        page.check_wanted.connect(self.check)
        page.protection_wanted.connect(self.look_at_protection)
        page.starting = self._starting == PRACTICE

    def refresh(self, opened: str = "") -> None:
        """Reload the catalogue, then show the permission page of the project `opened`, if given."""
        self._again = self._reading
        if (controller := self.controller) is None or (self._reading and not opened):
            return
        self._reading = True

        def read() -> None:
            self._reading = False
            if self._again:
                self.refresh()

        def shown(known: list[Known]) -> None:
            read()
            if self._now is not None:
                self._now.show_kept([each.project.id for each in known if each.kept])
            if self.page is not None:
                self.page.show_projects(known, self.snapshot)
                if opened:
                    self.page.open(opened)

        def refused(problem: Problem) -> None:
            read()
            self._refuse(problem)

        self._background.run(controller.known, shown, refused, slow=True)

    def add(self, source: str) -> None:
        if (controller := self.controller) is None:
            return
        self._say(self.tr("Fetching the manifest …"))

        def added(project: VerifiedProject) -> None:
            self._say("")
            if self.page is not None:
                self.page.source.clear()
            self.refresh(project.id)

        self._background.run(lambda: controller.add(source), added, self._refuse, slow=True)

    def join(self, project_id: str, *, resumed: bool = False) -> None:
        """Start the practice swarm if needed, check again that the project fits, then join; `resumed` is as in m.Join."""
        if (controller := self.controller) is None or self._starting or self.snapshot.phase is not Phase.IDLE:
            return
        self._cancelled = False
        controller.may_practise()
        self._show_starting(project_id)
        self._say("")
        self._go_to_page()  # at a start of the app another one is shown, and a pack may take minutes

        def over() -> None:
            self._show_starting("")
            if self.page is not None:
                self.page.setCurrentWidget(self.page.list)

        def ready(project: VerifiedProject) -> None:
            over()
            if self._cancelled:
                self._background.run(controller.end_practice, slow=True)
            else:
                self.joining.emit(m.Join(project, resumed=resumed))

        def refused(problem: Problem) -> None:
            over()
            self._refuse(problem)
            self._go_to_page()
            self.refused.emit(problem)

        self._background.run(lambda: controller.prepare(project_id), ready, refused, slow=True)

    def left(self, project: Project | None) -> None:
        """A stay has ended: a practice swarm is stopped, and a model may have been kept."""
        if self.controller is not None and project is not None and project.id == PRACTICE:
            self._background.run(self.controller.end_practice, slow=True)
        self.refresh()

    def cancel(self) -> bool:
        """Cancel a join that the engine has not received yet. Returns whether there was one."""
        if self.controller is None or not self._starting:
            return False
        self._cancelled = True
        self.controller.cancel_practice()
        return True

    def accept(self, path: str, *, in_file: bool = False) -> None:
        if (controller := self.controller) is None:
            return

        def accepted(answer: str | NoKeyring) -> None:
            if isinstance(answer, str):
                self._say(filled(self.tr("This computer is invited to %1 now."), plain(answer)))
            else:
                self._ask(path, answer)

        self._background.run(lambda: controller.accept(path, in_file=in_file), accepted, self._refuse, slow=True)

    def _ask(self, path: str, answer: NoKeyring) -> None:
        """Ask for consent: without a keyring, no secret is stored before the user agrees to a file."""
        from skep_gui.app.dialogs import KeyringConsent  # noqa: PLC0415 - hardly ever needed

        self._say(self.tr("The invitation was not kept."))
        self.consent = KeyringConsent(self.tongue.told(answer.problem), answer.folder, self.page)
        self.consent.given.connect(lambda: self.accept(path, in_file=True))
        self.consent.open()

    def copy_identity(self) -> None:
        if (controller := self.controller) is None:
            return

        def copied(peer_id: str) -> None:
            QGuiApplication.clipboard().setText(peer_id)
            self._say(filled(self.tr("Copied: %1"), peer_id))

        self._background.run(controller.peer_id, copied, self._refuse)

    def look_at_protection(self) -> None:
        """Find out what this system keeps the training process from, for the permission page."""
        if (controller := self.controller) is None or self.page is None:
            return

        def shown(found: Sandbox | None) -> None:
            if self.page is not None:  # another one after a change of the language
                self.page.show_protection(found)

        self._background.run(controller.protection, shown, slow=True)

    def check(self, project_id: str = "") -> None:
        """Open the connection doctor for a project, by default the one joined or left last, if there is one."""
        if (controller := self.controller) is None:
            return
        last = self.snapshot.project or self.snapshot.last_project
        named = project_id or (last.id if last is not None else "")
        title = self.page.titles().get(named, named) if self.page is not None else named
        self.doctor.open(controller, Doctor(self.tongue), (named, title), self.page.window() if self.page else None)

    def say_meanwhile(self, text: str) -> None:
        """Say what a join waits for, if there is one."""
        if self._starting:
            self._say(text)

    def _show_starting(self, project_id: str) -> None:
        self._starting = project_id
        if self.page is not None:
            self.page.starting = project_id == PRACTICE
            self.page.show_snapshot(self.snapshot)

    def _go_to_page(self) -> None:
        if self.page is not None:
            self.page.page_wanted.emit()

    def _say(self, text: str) -> None:
        if self.page is not None:
            self.page.say(text)

    def _refuse(self, problem: Problem) -> None:
        if self.page is not None:
            self.page.say(self.tongue.told(problem), problem=True)


class Lookups(QObject):
    """What the window shows of the ledger and of this computer's hardware."""

    def __init__(self, background: Background, translation: Translation, parent: QObject) -> None:
        super().__init__(parent)
        self._background = background
        self.translation = translation
        self.controller: Controller | None = None
        self.window: MainWindow | None = None
        self._later = QTimer(self, interval=LATER, singleShot=True)
        self._later.timeout.connect(self.read_record)

    def read_record_later(self) -> None:
        """Read the ledger a moment after a contribution, so that a burst causes one read."""
        self._later.start()

    def read_record(self) -> None:
        if (controller := self.controller) is None or (window := self.window) is None or not window.isVisible():
            return

        def show(record: Record) -> None:
            window.stats.show_record(record, window.projects.titles())

        asked = window.stats.asked
        self._background.run(lambda: controller.record(asked), show, self.refuse)

    def export(self, path: str) -> None:
        if (controller := self.controller) is None or (window := self.window) is None:
            return

        def written(where: str) -> None:
            window.stats.say(filled(self.tr("Written to %1"), where))

        self._background.run(lambda: controller.export(path), written, self.refuse)

    def save_result(self, project_id: str) -> None:
        """Ask for a file, and copy the model of a project's run, as this computer has it, there."""
        if (controller := self.controller) is None or (window := self.window) is None:
            return
        asked, kinds = self.tr("Save the model"), self.tr("Models (*.safetensors)")
        path, _ = QFileDialog.getSaveFileName(window, asked, "model.safetensors", kinds)
        if not path:
            return

        def written(where: str) -> None:
            window.say(filled(self.tr("Written to %1"), where))

        def refused(problem: Problem) -> None:
            window.say(self.translation.tongue.told(problem))

        self._background.run(lambda: controller.keep_result(project_id, path), written, refused, slow=True)

    def refuse(self, problem: Problem) -> None:
        if self.window is not None:
            self.window.stats.say(self.translation.tongue.told(problem))

    def offer_devices(self) -> None:
        """Look for the devices to choose from, when the settings page is shown."""

        def found(devices: Sequence[Device]) -> None:
            if self.window is not None:
                words = self.translation.devices
                self.window.settings.show_offered(
                    {"compute.device": words.offered(devices), LIMITS: words.limited(devices)}
                )

        if self.controller is not None:
            self._background.run(self.controller.devices, found, slow=True)
