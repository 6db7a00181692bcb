"""The page Projects: cards, the permission page before joining, adding by file, link or drop, invitations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QFileDialog, QLineEdit, QStackedWidget, QVBoxLayout

from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep_gui.pages.page_kind import PageKind, Requests
from skep_gui.pages.permission_page import PermissionPage
from skep_gui.pages.project_card import ProjectCard
from skep_gui.widgets.focus import focus_kept
from skep_gui.widgets.history import History
from skep_gui.widgets.parts import Card, Page, breakable, button, emptied, label, row, toned
from skep_gui.words.projects import PRACTICE, Known, Projects
from skep_gui.words.projects import Card as CardWords
from skep_gui.words.translation import Translation


class ProjectsPage(QStackedWidget):
    join_wanted = Signal(str)
    leave_wanted = Signal()
    add_wanted = Signal(str)
    """A file's path, a web address or a join link."""
    invitation_wanted = Signal(str)
    identity_wanted = Signal()

    def __init__(self, words: Projects) -> None:
        super().__init__()
        self._words = words
        self._known: Mapping[str, Known] = {}
        self._cards: list[CardWords] = []
        self._free: bool | None = None
        self.starting = False
        self.setWindowTitle(self.tr("Projects"))
        self.list = Page(self.windowTitle())
        self.permission = PermissionPage()
        self.addWidget(self.list)
        self.addWidget(self.permission)
        self.permission.closed.connect(lambda: self.setCurrentWidget(self.list))
        self.permission.joined.connect(self.join_wanted)
        back = QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self.permission.back.click)
        back.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        self._build()
        self.setAcceptDrops(True)

    def _build(self) -> None:
        self.said = label("", select=True)
        self.said.hide()
        self.list.body.addWidget(self.said)
        self._places = QVBoxLayout()
        self._places.setSpacing(16)
        self.list.body.addLayout(self._places)
        self.adding = Card(self.tr("Add a project"))
        self.source = QLineEdit()
        self.source.setPlaceholderText(self.tr("https:// address of a manifest, or a skep:// link"))
        self.source.setAccessibleName(self.tr("Address or link of a project"))
        self.source.returnPressed.connect(self._add_typed)
        add, file = button(self.tr("Add")), button(self.tr("From a file …"))
        add.clicked.connect(self._add_typed)
        file.clicked.connect(self._add_file)
        self.adding.body.addLayout(row(self.source, add, file))
        self.adding.body.addWidget(label(self.tr("A manifest or an invitation can also be dropped here."), "soft"))
        self.list.body.addWidget(self.adding)
        invited = Card(self.tr("Projects by invitation"))
        invited.body.addWidget(
            label(
                self.tr(
                    "Some projects invite their computers one by one. Send the publisher this computer's identity; "
                    "what comes back is accepted here."
                ),
                "soft",
            )
        )
        self.copy, accept = button(self.tr("Copy my identity")), button(self.tr("Accept an invitation …"))
        self.copy.clicked.connect(self.identity_wanted)
        accept.clicked.connect(self._accept_file)
        invited.body.addLayout(row(self.copy, accept, None))
        self.list.body.addWidget(invited)
        self.list.body.addStretch(1)

    # --- what is shown

    def show_projects(self, known: Sequence[Known], snapshot: Snapshot) -> None:
        self._known = {each.project.id: each for each in known}
        self._cards = []
        self.show_snapshot(snapshot)

    def titles(self) -> dict[str, str]:
        """By project id, as plain text."""
        return {name: breakable(self._words.title(each)) for name, each in self._known.items()}

    def show_snapshot(self, snapshot: Snapshot) -> None:
        free = snapshot.phase is Phase.IDLE and not self.starting
        others = [self._words.card(each, snapshot) for name, each in self._known.items() if name != PRACTICE]
        cards = [self._words.practice(snapshot, starting=self.starting), *others]
        if (cards, free) == (self._cards, self._free):
            return
        self._cards, self._free = cards, free
        with focus_kept(self.list):
            emptied(self._places)
            for words in cards:
                self._places.addWidget(self._card(words, free=free))

    def _card(self, words: CardWords, *, free: bool) -> ProjectCard:
        card = ProjectCard(words, practice=words.id == PRACTICE, free=free)
        card.wanted.connect(self._wanted)
        card.leave_wanted.connect(self.leave_wanted)
        return card

    def say(self, text: str, *, problem: bool = False) -> None:
        """A line at the top: what was added, or why not."""
        self.said.setText(breakable(text))
        toned(self.said, "problem" if problem else "well")
        self.said.setVisible(bool(text))

    def refuse(self, text: str) -> None:
        self.say(text, problem=True)

    def _wanted(self, project_id: str) -> None:
        if project_id == PRACTICE:
            self.join_wanted.emit(project_id)
        else:
            self.open(project_id)

    def open(self, project_id: str) -> None:
        """The permission page of a known project."""
        if known := self._known.get(project_id):
            self.permission.show_project(project_id, self._words.permissions(known), free=bool(self._free))
            self.setCurrentWidget(self.permission)

    # --- adding

    def _add_typed(self) -> None:
        if text := self.source.text().strip():
            self.add_wanted.emit(text)

    def _add_file(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, self.tr("Add a project"), "", self.tr("Manifests (*.json)"))
        if path:
            self.add_wanted.emit(path)

    def _accept_file(self) -> None:
        path, _ = QFileDialog.getOpenFileName(
            self, self.tr("Accept an invitation"), "", self.tr("Invitations (*.invitation);;All files (*)")
        )
        if path:
            self.invitation_wanted.emit(path)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls() or event.mimeData().hasText():
            event.acceptProposedAction()
            self._invite_drop(on=True)

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self._invite_drop(on=False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._invite_drop(on=False)
        event.acceptProposedAction()
        if source := dropped(event):
            self.setCurrentWidget(self.list)
            wanted = self.invitation_wanted if Path(source).suffix == ".invitation" else self.add_wanted
            wanted.emit(source)

    def _invite_drop(self, *, on: bool) -> None:
        self.adding.setProperty("dropping", on)
        self.adding.style().unpolish(self.adding)
        self.adding.style().polish(self.adding)


def dropped(event: QDropEvent) -> str:
    """The first file or address that was dropped, "" for anything else."""
    for url in event.mimeData().urls():
        return url.toLocalFile() if url.isLocalFile() else url.toString()
    return event.mimeData().text().strip()


def _make(translation: Translation) -> ProjectsPage:
    return ProjectsPage(translation.projects)


def _connect(page: ProjectsPage, requests: Requests) -> None:
    """What it asks of projects is carried out by whoever also fills it with them."""
    page.leave_wanted.connect(requests.leave_or_cancel)


def _show(page: ProjectsPage, snapshot: Snapshot, _history: History, _now: float) -> None:
    page.show_snapshot(snapshot)


PAGE: Final = PageKind(_make, _connect, _show)
