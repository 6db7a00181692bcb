"""The page Now: one sentence, the share meter, Pause, four figures, the epoch, devices, ten minutes of plots, the rules.

A function of the snapshot; requests of the user leave as signals.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QMenu, QProgressBar, QToolButton

from skep.core.session.phases import Phase, Stage
from skep.core.session.snapshot import Snapshot
from skep_gui.pages.registry import PageKind, Requests
from skep_gui.widgets.charts import DomeMeter, LivePlot
from skep_gui.widgets.focus import focus_kept
from skep_gui.widgets.parts import Card, Page, breakable, button, column, fill_pause_menu, grid, label, row, toned
from skep_gui.widgets.rows import DeviceLines, FigureRow, RuleLines
from skep_gui.words.now import History, RuleRow, StageRow, StageState, granted, joining_progress, measured, title
from skep_gui.words.speaker import filled
from skep_gui.words.translation import Translation

IN_A_SWARM = (Phase.TRAINING, Phase.PAUSED, Phase.LEAVING)
_SIGNS: Final = {StageState.DONE: "✓", StageState.UNDER_WAY: "→", StageState.TO_COME: "·", StageState.FAILED: "!"}
_TONES: Final = {
    StageState.DONE: "well",
    StageState.UNDER_WAY: "gentle",
    StageState.TO_COME: "soft",
    StageState.FAILED: "problem",
}


class NowPage(Page):
    pause_chosen = Signal(object)
    """Wall clock seconds, or None: until Resume."""
    resumed = Signal()
    left = Signal(bool)
    """Leave the project: after the round, or immediately."""
    projects_wanted = Signal()
    setting_wanted = Signal(str)
    result_wanted = Signal(str)
    """Copy the model that is kept of this project, by its id."""

    def __init__(self, translation: Translation) -> None:
        super().__init__(self.tr("Now"))
        self._words = translation.now
        self._shown_rules: list[RuleRow] = []
        self._finished = ""
        self._kept: Collection[str] = ()
        self.checklist = JoiningView()
        self.checklist.cancelled.connect(lambda: self.left.emit(True))
        self.figures = FigureRow()
        self.add(self._head(), self.checklist, self.figures)
        self._build_epoch()
        self._devices = DeviceLines()
        self.devices_card = Card(self.tr("Devices"), self._devices)
        self.plot = LivePlot()
        self.plot_card = Card(self.tr("The last ten minutes"), self.plot)
        self._rules = RuleLines(self.setting_wanted)
        self.rules_card = Card(self.tr("Rules that hold now"), self._rules)
        self.add(self.epoch_card, self.devices_card, self.plot_card, self.rules_card, None)

    def connect_to(self, requests: Requests) -> None:
        self.pause_chosen.connect(requests.pause)
        self.resumed.connect(requests.resume)
        self.left.connect(requests.leave)
        self.projects_wanted.connect(requests.go_to_projects)
        self.setting_wanted.connect(requests.go_to_setting)
        self.result_wanted.connect(requests.save_result)

    def _head(self) -> Card:
        self.dome = DomeMeter()
        self.project = label("", "soft")
        self.sentence = label("", "sentence")
        self.more = label(self.tr("Lend this computer to a project. What it does then is shown here."), "soft")
        self.share, self.asked = label("", "figure", wrap=False), label("", "soft", wrap=False)
        self.resume = button(self.tr("Resume"), "primary", self.resumed)
        self.choose = button(self.tr("Choose a project"), "primary", self.projects_wanted)
        self.save_result = button(self.tr("Save the model …"), clicked=lambda: self.result_wanted.emit(self._finished))
        self.leave = button(self.tr("Leave"), clicked=lambda: self.left.emit(False))
        self.leave_now = button(self.tr("Leave now"), clicked=lambda: self.left.emit(True))
        self.pause = self._pause_button()
        figures = row(self.share, self.asked, None)
        figures.setAlignment(self.asked, Qt.AlignmentFlag.AlignBottom)
        texts = column(None, self.project, self.sentence, self.more, figures, spacing=6)
        texts.addSpacing(4)
        texts.addLayout(row(self.pause, self.resume, self.choose, self.save_result, self.leave, self.leave_now, None))
        texts.addStretch(1)
        across = row(self.dome, texts, spacing=24)
        across.setStretch(1, 1)
        return Card("", across)

    def _pause_button(self) -> QToolButton:
        made = QToolButton()
        made.setObjectName("primary")
        made.setText(self.tr("Pause"))
        made.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        made.setAccessibleDescription(self.tr("Opens the lengths of a pause"))
        menu = QMenu(made)
        menu.aboutToShow.connect(lambda: fill_pause_menu(menu, self._words, self.pause_chosen.emit))
        made.setMenu(menu)
        return made

    def _build_epoch(self) -> None:
        self.epoch, self.epoch_text = QProgressBar(), label("", "soft")
        self.epoch.setTextVisible(False)
        self.epoch.setRange(0, 1000)
        self.epoch.setAccessibleName(self.tr("Progress of the epoch"))
        self.epoch_card = Card(self.tr("The swarm's epoch"), self.epoch, self.epoch_text)
        self.epoch_card.heading.setToolTip(self.tr("An epoch ends when the swarm together has trained on its samples."))

    def show_snapshot(self, snapshot: Snapshot, history: History, now: float) -> None:
        """`now` is wall clock seconds."""
        self._show_head(snapshot, now)
        joining = snapshot.phase in (Phase.JOINING, Phase.RECOVERING)
        self.checklist.setVisible(joining)
        if joining:
            self.checklist.show_stages(self.tr("Five stages"), self._words.stages(snapshot))
        inside = _is_inside(snapshot)
        for widget in (self.figures, self.plot_card):
            widget.setVisible(inside)
        # what the rules grant is no reason for a wait, and "Training at full share" would be untrue
        self.rules_card.setVisible(inside and not snapshot.waiting)
        self.figures.show_figures(self._words.figures(snapshot))
        self._show_epoch(snapshot, inside=inside)
        devices = self._words.devices(snapshot)
        self.devices_card.setVisible(inside and bool(devices))
        self._devices.show_devices(devices)
        self.plot.show_points(history.points, now)
        self._show_rules(self._words.rules(snapshot, now))

    def _show_head(self, snapshot: Snapshot, now: float) -> None:
        phase = snapshot.phase
        self.project.setText(breakable(title(snapshot)))
        self.project.setVisible(phase is not Phase.IDLE and phase is not Phase.JOINING)
        self.sentence.setText(breakable(self._words.sentence(snapshot, now)))
        share, below = self._words.share(snapshot), self._words.share_below(snapshot)
        self.share.setText(share)
        self.asked.setText(below)
        inside = _is_inside(snapshot)
        self.more.setVisible(phase is Phase.IDLE)
        self.share.setVisible(inside)
        self.asked.setVisible(inside)
        said = filled(self.tr("Compute share %1"), f"{share} {below}")
        self.dome.show_shares(granted(snapshot) if inside else 0.0, self._filled(snapshot), said)
        paused = snapshot.pause is not None or snapshot.on_a_break
        self._offer(phase, paused=paused, waits=snapshot.leaving_until is not None)
        left = snapshot.last_project
        self._finished = left.id if left and snapshot.finished and phase is Phase.IDLE else ""
        self._offer_result()

    def show_kept(self, projects: Collection[str]) -> None:
        """`projects` are the ids of those of which this computer has kept a model."""
        self._kept = projects
        self._offer_result()

    def _offer_result(self) -> None:
        self.save_result.setVisible(self._finished in self._kept)

    def _filled(self, snapshot: Snapshot) -> float | None:
        """How far the meter is filled, 0..1: the measured share, or the completed stages while joining."""
        if snapshot.phase is Phase.JOINING:
            return joining_progress(snapshot)
        return measured(snapshot) if _is_inside(snapshot) else None

    def _offer(self, phase: Phase, *, paused: bool, waits: bool) -> None:
        """Show one primary button, and Leave if there is something to leave."""
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
        if rules != self._shown_rules:
            self._shown_rules = rules
            with focus_kept(self.rules_card):
                self._rules.show_rules(rules)


def _is_inside(snapshot: Snapshot) -> bool:
    """Whether there are figures of training: a worker that saves its state has left the swarm, and computes nothing.

    One that found the run finished when it came has not trained.
    """
    trained = snapshot.joined or snapshot.phase is not Phase.LEAVING
    return snapshot.phase in IN_A_SWARM and trained and not snapshot.saving


class JoiningView(Card):
    """The five stages of joining as a checklist, with a Cancel that does not wait for the swarm."""

    cancelled = Signal()

    def __init__(self) -> None:
        super().__init__(" ")
        self._rows: list[tuple[QLabel, QLabel, QProgressBar, QLabel]] = []
        lines = grid(12, 10, wide=3)
        for index in range(len(Stage)):
            sign, name, bar = label(wrap=False), label(wrap=False), QProgressBar()
            detail = label("", "soft", wrap=False)
            # an unknown fraction is an empty bar: the animation of a busy bar would distract
            bar.setRange(0, 1000)
            bar.setTextVisible(False)
            bar.setFixedWidth(160)
            sign.setFixedWidth(16)
            sign.setAlignment(Qt.AlignmentFlag.AlignCenter)
            for place, widget in enumerate((sign, name, bar, detail)):
                lines.addWidget(widget, index, place)
            self._rows.append((sign, name, bar, detail))
        self.cancel = button(self.tr("Cancel"), clicked=self.cancelled)
        self.add(lines)
        self.body.addSpacing(4)
        self.add(row(self.cancel, None))

    def show_stages(self, heading: str, stages: Sequence[StageRow]) -> None:
        self.heading.setText(heading)
        for (sign, name, bar, detail), stage in zip(self._rows, stages, strict=True):
            sign.setText(_SIGNS[stage.state])
            toned(sign, _TONES[stage.state])
            name.setText(stage.name)
            toned(name, "soft" if stage.state is StageState.TO_COME else "")
            under_way = stage.state is StageState.UNDER_WAY
            bar.setVisible(under_way)
            bar.setValue(round((stage.fraction or 0.0) * 1000))
            bar.setAccessibleName(stage.name)
            detail.setText(stage.detail if under_way else "")


PAGE: Final = PageKind(NowPage, NowPage.connect_to, NowPage.show_snapshot)
