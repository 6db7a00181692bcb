"""What a person does with projects: add, join, leave, accept an invitation. Each is an errand at the desk.

It must not know how it is done (`desk`), only what is shown before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from skep.core.plain_text import plain
from skep.core.project.types import VerifiedProject
from skep.core.session import messages as m
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem
from skep_gui.app.background import Errands
from skep_gui.words.projects import PRACTICE, Known
from skep_gui.words.speaker import english, filled

if TYPE_CHECKING:
    from skep_gui.app.controller import Desk, NoKeyring
    from skep_gui.app.keyring_consent import KeyringConsent
    from skep_gui.pages.projects_page import ProjectsPage


class ProjectActions(QObject):
    joining = Signal(object)
    """A m.Join that may be carried out."""

    def __init__(self, errands: Errands, parent: QObject) -> None:
        super().__init__(parent)
        self._errands = errands
        self.desk: Desk | None = None
        self.page: ProjectsPage | None = None
        self.snapshot = Snapshot()
        self.consent: KeyringConsent | None = None
        self.in_words: Callable[[Problem], str] = english.told
        self._starting = ""
        self._reading = False

    def connect_page(self, page: ProjectsPage) -> None:
        self.page = page
        page.join_wanted.connect(self.join)
        page.add_wanted.connect(self.add)
        page.invitation_wanted.connect(self.accept)
        page.identity_wanted.connect(self.copy_identity)
        page.starting = self._starting == PRACTICE

    def refresh(self, opened: str = "") -> None:
        """Read the catalogue anew; then the permission page of `opened`, where one is named."""
        if (desk := self.desk) is None or (self._reading and not opened):
            return
        self._reading = True

        def shown(known: list[Known]) -> None:
            self._reading = False
            if self.page is not None:
                self.page.show_projects(known, self.snapshot)
                if opened:
                    self.page.open(opened)

        def refused(problem: Problem) -> None:
            self._reading = False
            self._refuse(problem)

        self._errands.run(desk.known, shown, refused, slow=True)

    def add(self, source: str) -> None:
        if (desk := self.desk) is None:
            return
        self._say(self.tr("Fetching the manifest …"))

        def added(project: VerifiedProject) -> None:
            self._say("")
            if self.page is not None:
                self.page.source.clear()
            self.refresh(project.id)

        self._errands.run(lambda: desk.add(source), added, self._refuse, slow=True)

    def join(self, project_id: str) -> None:
        """Start what has to be started, look once more whether it fits, then join."""
        if (desk := self.desk) is None or self._starting or self.snapshot.phase is not Phase.IDLE:
            return
        self._show_starting(project_id)
        self._say("")

        def ready(project: VerifiedProject) -> None:
            self._show_starting("")
            self.joining.emit(m.Join(project))
            if self.page is not None:
                self.page.setCurrentWidget(self.page.list)

        def refused(problem: Problem) -> None:
            self._show_starting("")
            if self.page is not None:
                self.page.setCurrentWidget(self.page.list)
            self._refuse(problem)

        self._errands.run(lambda: desk.prepare(project_id), ready, refused, slow=True)

    def cancel(self) -> bool:
        """Give up a join that the engine does not know of yet. Whether there was one."""
        if self.desk is None or not self._starting:
            return False
        self.desk.cancel_practice()
        return True

    def accept(self, path: str, *, in_file: bool = False) -> None:
        if (desk := self.desk) is None:
            return

        def accepted(answer: str | NoKeyring) -> None:
            if isinstance(answer, str):
                self._say(filled(self.tr("This computer is invited to %1 now."), plain(answer)))
            else:
                self._ask(path, answer)

        self._errands.run(lambda: desk.accept(path, in_file=in_file), accepted, self._refuse, slow=True)

    def _ask(self, path: str, answer: NoKeyring) -> None:
        """Without a keyring nothing is kept before somebody agrees to how."""
        from skep_gui.app.keyring_consent import KeyringConsent  # noqa: PLC0415 - hardly ever needed

        self._say(self.tr("The invitation was not kept."))
        self.consent = KeyringConsent(self.in_words(answer.problem), answer.folder, self.page)
        self.consent.given.connect(lambda: self.accept(path, in_file=True))
        self.consent.open()

    def copy_identity(self) -> None:
        if (desk := self.desk) is None:
            return

        def copied(peer_id: str) -> None:
            QGuiApplication.clipboard().setText(peer_id)
            self._say(filled(self.tr("Copied: %1"), peer_id))

        self._errands.run(desk.peer_id, copied, self._refuse)

    def _show_starting(self, project_id: str) -> None:
        self._starting = project_id
        if self.page is not None:
            self.page.starting = project_id == PRACTICE
            self.page.show_snapshot(self.snapshot)

    def _say(self, text: str) -> None:
        if self.page is not None:
            self.page.say(text)

    def _refuse(self, problem: Problem) -> None:
        if self.page is not None:
            self.page.say(self.in_words(problem), problem=True)
