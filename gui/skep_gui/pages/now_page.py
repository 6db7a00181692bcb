"""The page Now: one sentence, the dome, Pause, four figures, ten minutes, the swarm's epoch, the rules that hold.

A function of the snapshot; what a person asks for leaves as a signal.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMenu, QProgressBar, QPushButton, QToolButton, QVBoxLayout

from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep_gui.pages.joining_view import JoiningView
from skep_gui.pages.page_kind import PageKind, Requests
from skep_gui.widgets.dome_meter import DomeMeter
from skep_gui.widgets.figure_row import FigureRow
from skep_gui.widgets.focus import focus_kept
from skep_gui.widgets.history import History
from skep_gui.widgets.live_plot import LivePlot
from skep_gui.widgets.parts import Card, Page, breakable, button, emptied, label, row
from skep_gui.widgets.pause_menu import fill_pause_menu
from skep_gui.words.now import Now, RuleRow, granted, measured, risen, title
from skep_gui.words.speaker import filled
from skep_gui.words.translation import Translation

IN_A_SWARM = (Phase.TRAINING, Phase.PAUSED, Phase.LEAVING)


class NowPage(Page):
    pause_chosen = Signal(object)
    """Wall clock seconds, or None: until Resume."""
    resumed = Signal()
    left = Signal(bool)
    """Leave the project: after the round, or at once."""
    projects_wanted = Signal()
    setting_wanted = Signal(str)

    def __init__(self, words: Now) -> None:
        super().__init__(self.tr("Now"))
        self._words = words
        self._shown_rules: list[RuleRow] = []
        self._build_head()
        self.checklist = JoiningView()
        self.checklist.cancelled.connect(lambda: self.left.emit(True))
        self.body.addWidget(self.checklist)
        self._build_figures()
        self._build_plot()
        self._build_rules()
        self.body.addStretch(1)

    def _build_head(self) -> None:
        card = Card()
        self.dome = DomeMeter()
        self.project = label("", "soft")
        self.sentence = label("", "sentence")
        self.more = label(self.tr("Lend this computer to a project. What it does then is shown here."), "soft")
        self.share, self.asked = label("", "figure", wrap=False), label("", "soft", wrap=False)
        self.pause = QToolButton()
        self.pause.setObjectName("primary")
        self.pause.setText(self.tr("Pause"))
        self.pause.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.pause.setAccessibleDescription(self.tr("Opens the lengths of a pause"))
        menu, words = QMenu(self.pause), self._words
        menu.aboutToShow.connect(lambda: fill_pause_menu(menu, words, self.pause_chosen.emit))
        self.pause.setMenu(menu)
        self.resume, self.choose = button(self.tr("Resume"), "primary"), button(self.tr("Choose a project"), "primary")
        self.leave, self.leave_now = button(self.tr("Leave")), button(self.tr("Leave now"))
        self.resume.clicked.connect(self.resumed)
        self.choose.clicked.connect(self.projects_wanted)
        self.leave.clicked.connect(lambda: self.left.emit(False))
        self.leave_now.clicked.connect(lambda: self.left.emit(True))
        texts = QVBoxLayout()
        texts.setSpacing(6)
        texts.addStretch(1)
        texts.addWidget(self.project)
        texts.addWidget(self.sentence)
        figures = row(self.share, self.asked, None)
        figures.setAlignment(self.asked, Qt.AlignmentFlag.AlignBottom)
        texts.addWidget(self.more)
        texts.addLayout(figures)
        texts.addSpacing(4)
        texts.addLayout(row(self.pause, self.resume, self.choose, self.leave, self.leave_now, None))
        texts.addStretch(1)
        across = row(self.dome, spacing=24)
        across.addLayout(texts, 1)
        card.body.addLayout(across)
        self.body.addWidget(card)

    def _build_figures(self) -> None:
        self.figures = FigureRow()
        self.body.addWidget(self.figures)

    def _build_plot(self) -> None:
        self.epoch_card = Card(self.tr("The swarm's epoch"))
        self.epoch_card.heading.setToolTip(self.tr("An epoch ends when the swarm together has trained on its samples."))
        self.epoch, self.epoch_text = QProgressBar(), label("", "soft")
        self.epoch.setTextVisible(False)
        self.epoch.setRange(0, 1000)
        self.epoch.setAccessibleName(self.tr("Progress of the epoch"))
        self.epoch_card.body.addWidget(self.epoch)
        self.epoch_card.body.addWidget(self.epoch_text)
        self.body.addWidget(self.epoch_card)
        self.plot_card = Card(self.tr("The last ten minutes"))
        self.plot = LivePlot()
        self.plot_card.body.addWidget(self.plot)
        self.body.addWidget(self.plot_card)

    def _build_rules(self) -> None:
        self.rules_card = Card(self.tr("Rules that hold now"))
        self._rules = QVBoxLayout()
        self._rules.setSpacing(4)
        self.rules_card.body.addLayout(self._rules)
        self.body.addWidget(self.rules_card)

    def show_snapshot(self, snapshot: Snapshot, history: History, now: float) -> None:
        """`now` is wall clock seconds."""
        self._show_head(snapshot, now)
        joining = snapshot.phase in (Phase.JOINING, Phase.RECOVERING)
        self.checklist.setVisible(joining)
        if joining:
            self.checklist.show_stages(self.tr("Five steps"), self._words.stages(snapshot))
        inside = snapshot.phase in IN_A_SWARM
        for widget in (self.figures, self.plot_card, self.rules_card):
            widget.setVisible(inside)
        self.figures.show_figures(self._words.figures(snapshot))
        self._show_epoch(snapshot, inside=inside)
        self.plot.show_points(history.points, now)
        self._show_rules(self._words.rules(snapshot, now))

    def _show_head(self, snapshot: Snapshot, now: float) -> None:
        phase, paused = snapshot.phase, snapshot.pause is not None
        self.project.setText(breakable(title(snapshot)))
        self.project.setVisible(phase is not Phase.IDLE and phase is not Phase.JOINING)
        self.sentence.setText(breakable(self._words.sentence(snapshot, now)))
        self.share.setText(self._words.share(snapshot))
        self.asked.setText(self._words.share_below(snapshot))
        inside = phase in IN_A_SWARM
        self.more.setVisible(phase is Phase.IDLE)
        self.share.setVisible(inside)
        self.asked.setVisible(inside)
        said = filled(self.tr("Compute share %1"), f"{self._words.share(snapshot)} {self._words.share_below(snapshot)}")
        self.dome.show_shares(granted(snapshot) if inside else 0.0, self._filled(snapshot), said)
        self._offer(phase, paused=paused, waits=snapshot.leaving_until is not None)

    def _filled(self, snapshot: Snapshot) -> float | None:
        """How far the bands are filled, 0..1: with the measured share, while joining with the stages."""
        if snapshot.phase is Phase.JOINING:
            return risen(snapshot)
        if snapshot.phase not in IN_A_SWARM or snapshot.progress is None:
            return None
        return measured(snapshot)

    def _offer(self, phase: Phase, *, paused: bool, waits: bool) -> None:
        """One primary button, and Leave where there is something to leave."""
        idle, leaving = phase is Phase.IDLE, phase is Phase.LEAVING
        self.choose.setVisible(idle and not paused)
        self.resume.setVisible(paused and not leaving)
        self.pause.setVisible(not (idle or paused or leaving or phase is Phase.JOINING))
        self.leave.setVisible(phase in (Phase.TRAINING, Phase.PAUSED))
        self.leave_now.setVisible(leaving and waits)

    def _show_epoch(self, snapshot: Snapshot, *, inside: bool) -> None:
        bar = self._words.epoch(snapshot)
        self.epoch_card.setVisible(inside and bar is not None)
        if bar is not None:
            self.epoch.setValue(round(bar.fraction * 1000))
            self.epoch_text.setText(bar.text)

    def _show_rules(self, rules: list[RuleRow]) -> None:
        if rules == self._shown_rules:
            return
        self._shown_rules = rules
        with focus_kept(self.rules_card):
            self._make_rules(rules)

    def _make_rules(self, rules: list[RuleRow]) -> None:
        emptied(self._rules)
        for place, rule in enumerate(rules):
            share, sentence = (
                label(rule.share, wrap=False),
                label(rule.sentence, "" if place == 0 else "soft", wrap=False),
            )
            share.setFixedWidth(56)
            line = row(share, sentence, None)
            if rule.key:
                line.addWidget(self._link(rule))
            self._rules.addLayout(line)

    def _link(self, rule: RuleRow) -> QPushButton:
        link = button(self.tr("Setting"), "flat")
        link.setAccessibleName(filled(self.tr("Setting of the rule: %1"), rule.sentence))
        link.clicked.connect(lambda: self.setting_wanted.emit(rule.key))
        return link


def _make(translation: Translation) -> NowPage:
    return NowPage(translation.now)


def _connect(page: NowPage, requests: Requests) -> None:
    page.pause_chosen.connect(requests.pause)
    page.resumed.connect(requests.resume)
    page.left.connect(requests.leave)
    page.projects_wanted.connect(requests.go_to_projects)
    page.setting_wanted.connect(requests.go_to_setting)


PAGE: Final = PageKind(_make, _connect, NowPage.show_snapshot)
