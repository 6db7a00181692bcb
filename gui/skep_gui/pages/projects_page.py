"""The page Projects: cards, the permission page before joining, adding by file, link or drop, invitations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QFileDialog, QLineEdit, QPushButton, QSizePolicy, QStackedWidget

from skep.core.sandbox import Sandbox
from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep_gui.pages.registry import PageKind, Requests
from skep_gui.widgets.focus import focus_kept
from skep_gui.widgets.parts import (
    Card,
    Page,
    breakable,
    button,
    column,
    emptied,
    grid,
    label,
    restyled,
    row,
    tip,
    toned,
    unbroken,
)
from skep_gui.words.projects import PRACTICE, Known, Permissions
from skep_gui.words.projects import Card as CardWords
from skep_gui.words.speaker import filled
from skep_gui.words.translation import Translation


class ProjectsPage(QStackedWidget):
    join_wanted = Signal(str)
    leave_wanted = Signal()
    page_wanted = Signal()
    """This page shall be shown."""
    add_wanted = Signal(str)
    """A file's path, a web address or a join link."""
    invitation_wanted = Signal(str)
    identity_wanted = Signal()
    check_wanted = Signal(str)
    """The id of the project whose connection shall be checked."""
    protection_wanted = Signal()
    """The permission page is open: `show_protection` is to be called with what this system enforces."""
    result_wanted = Signal(str)
    """Copy the model that is kept of this project, by its id."""

    def __init__(self, translation: Translation) -> None:
        super().__init__()
        self._words = translation.projects
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
        self.said = label("", select=True)
        self.said.hide()
        self._places = column(spacing=16)
        self.list.add(self.said, self._places, self._adding(), self._by_invitation(), None)
        self.setAcceptDrops(True)

    def connect_to(self, requests: Requests) -> None:
        """Connect the requests about projects to the object that carries them out and fills this page."""
        self.leave_wanted.connect(requests.leave_or_cancel)
        self.page_wanted.connect(requests.go_to_projects)
        self.result_wanted.connect(requests.save_result)

    def _adding(self) -> Card:
        self.source = QLineEdit()
        self.source.setPlaceholderText(self.tr("https:// address of a manifest, or a skep:// link"))
        self.source.setAccessibleName(self.tr("Address or link of a project"))
        self.source.returnPressed.connect(self._add_typed)
        add = button(self.tr("Add"), clicked=self._add_typed)
        file = button(self.tr("From a file …"), clicked=self._add_file)
        dropped = label(self.tr("A manifest or an invitation can also be dropped here."), "soft")
        self.adding = Card(self.tr("Add a project"), row(self.source, add, file), dropped)
        return self.adding

    def _by_invitation(self) -> Card:
        text = self.tr(
            "Some projects accept invited computers only. Send this computer's identity to the publisher, "
            "and accept the invitation that you get back here."
        )
        self.copy = button(self.tr("Copy my identity"), clicked=self.identity_wanted)
        accept = button(self.tr("Accept an invitation …"), clicked=self._accept_file)
        return Card(self.tr("Projects by invitation"), label(text, "soft"), row(self.copy, accept, None))

    # --- display

    def show_projects(self, known: Sequence[Known], snapshot: Snapshot) -> None:
        self._known = {each.project.id: each for each in known}
        self._cards = []
        self.show_snapshot(snapshot)

    def titles(self) -> dict[str, str]:
        """By project id, as plain text."""
        return {name: breakable(self._words.title(each)) for name, each in self._known.items()}

    def show_snapshot(self, snapshot: Snapshot, *_: object) -> None:
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
        card.check_wanted.connect(self.check_wanted)
        card.result_wanted.connect(self.result_wanted)
        return card

    def say(self, text: str, *, problem: bool = False) -> None:
        """Show a message at the top: what was added, or why it was not."""
        self.said.setText(breakable(text))
        toned(self.said, "problem" if problem else "well")
        self.said.setVisible(bool(text))

    def _wanted(self, project_id: str) -> None:
        if project_id == PRACTICE:
            self.join_wanted.emit(project_id)
        else:
            self.open(project_id)

    def open(self, project_id: str) -> None:
        """Show the permission page of a known project."""
        if known := self._known.get(project_id):
            self.permission.show_project(project_id, self._words.permissions(known), free=bool(self._free))
            self.setCurrentWidget(self.permission)
            self.protection_wanted.emit()

    def show_protection(self, found: Sandbox | None) -> None:
        self.permission.show_protection(self._words.protection(found))

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
        restyled(self.adding)


def dropped(event: QDropEvent) -> str:
    """The first file or address of a drop; "" for anything else."""
    for url in event.mimeData().urls():
        return url.toLocalFile() if url.isLocalFile() else url.toString()
    return event.mimeData().text().strip()


class ProjectCard(Card):
    """One project: description, publisher, whether it fits, current state, and one button for the next step."""

    wanted = Signal(str)
    """The project's id; show its permission page, or join it."""
    leave_wanted = Signal()
    check_wanted = Signal(str)
    result_wanted = Signal(str)

    def __init__(self, words: CardWords, *, practice: bool, free: bool) -> None:
        """`free`: no other project is active, so this one may be joined."""
        super().__init__(breakable(words.title))
        badge = label(words.badge.text, "badge", wrap=False, tone=str(words.badge.tone))
        tip(badge, words.badge.explained)
        badge.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Maximum)
        self.body.removeWidget(self.heading)
        head = row(self.heading, badge)
        head.setStretch(0, 1)
        needs = unbroken(" · ".join(filter(None, (words.needs, words.traffic))))
        self.add(head, label(breakable(words.summary)), label(breakable(words.publisher), "soft"), label(needs, "soft"))
        if not words.joinable and words.badge.explained:
            self.add(label(breakable(words.badge.explained), tone="problem"))
        self.over = label(words.over, tone="well")
        if words.over:
            self.add(self.over)
        self.state = label(words.state, "", wrap=False, tone="well" if words.active else "soft")
        self.action = self._action(words, practice=practice, free=free)
        self.body.addSpacing(4)
        across = row(self.action, *([self._save(words)] if words.over else []), self.state, None)
        if not practice:
            across.addWidget(self._check(words))
        self.add(across)

    def _save(self, words: CardWords) -> QPushButton:
        save = button(self.tr("Save the model …"), clicked=lambda: self.result_wanted.emit(words.id))
        save.setAccessibleName(filled(self.tr("Save the model of %1"), words.title))
        return save

    def _check(self, words: CardWords) -> QPushButton:
        check = button(self.tr("Check the connection"), "flat", lambda: self.check_wanted.emit(words.id))
        check.setAccessibleName(filled(self.tr("Check the connection to %1"), words.title))
        return check

    def _action(self, words: CardWords, *, practice: bool, free: bool) -> QPushButton:
        if words.active:
            leave = button(self.tr("Leave"), clicked=self.leave_wanted)
            leave.setAccessibleName(filled(self.tr("Leave %1"), words.title))
            return leave
        if practice:
            text = self.tr("Start and join")
        else:
            text = self.tr("Look and join") if words.joinable else self.tr("Look")
        look = button(text, "primary" if practice else "", lambda: self.wanted.emit(words.id))
        look.setAccessibleName(f"{text}: {words.title}")
        if practice and not free:
            look.setEnabled(False)
            look.setToolTip(self.tr("Leave the other project first; one at a time."))
        return look


class PermissionPage(Page):
    """What a project downloads, sends and uses, shown before any of it starts; joining is possible only from here."""

    joined = Signal(str)
    closed = Signal()

    def __init__(self) -> None:
        super().__init__("")
        self._id = ""
        self.back = button(self.tr("← Projects"), "flat", self.closed)
        self.body.insertLayout(0, row(self.back, None))
        self.summary = label()
        self._lists = column(spacing=16)
        self._protection = column()
        self.join = button(self.tr("Join"), "primary", lambda: self.joined.emit(self._id))
        self.why_not = label("", "soft")
        self.add(self.summary, self._lists, self._protection, row(self.join, self.why_not), None)

    def show_project(self, project_id: str, words: Permissions, *, free: bool) -> None:
        self._id = project_id
        self.title.setText(breakable(words.title))
        self.summary.setText(breakable(words.summary))
        emptied(self._lists)
        for remark in words.remarks:
            self._lists.addWidget(label(breakable(remark), tone="gentle" if words.joinable else "problem"))
        lists = (
            (self.tr("It downloads"), words.downloads),
            (self.tr("It sends"), words.sends),
            (self.tr("It needs, as its publisher says"), words.uses),
        )
        for heading, lines in lists:
            self._lists.addWidget(_list(heading, lines))
        self._lists.addWidget(_facts(self.tr("Who and what"), words.facts))
        emptied(self._protection)
        self.join.setEnabled(words.joinable and free)
        taken = words.joinable and not free
        self.why_not.setText(self.tr("Leave the other project first; one at a time.") if taken else "")

    def show_protection(self, lines: Sequence[str]) -> None:
        """It is found out while the page is read already."""
        emptied(self._protection)
        self._protection.addWidget(_list(self.tr("The training process is kept from"), lines))


def _list(heading: str, lines: Sequence[str]) -> Card:
    card = Card(heading)
    for text in lines:
        point = grid(8, wide=1)
        point.addWidget(label("•", "soft", wrap=False), 0, 0, Qt.AlignmentFlag.AlignTop)
        point.addWidget(label(unbroken(breakable(text))), 0, 1)
        card.add(point)
    return card


def _facts(heading: str, facts: Sequence[tuple[str, str]]) -> Card:
    lines = grid(16, wide=1)
    for line, (name, text) in enumerate(facts):
        lines.addWidget(label(name, "soft", wrap=False), line, 0)
        lines.addWidget(label(breakable(text), select=True), line, 1)
    return Card(heading, lines)


PAGE: Final = PageKind(ProjectsPage, ProjectsPage.connect_to, ProjectsPage.show_snapshot)
