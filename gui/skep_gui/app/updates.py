"""Updates of skep in the app: a daily check if the settings allow it, and installation when the user asks for it.

Which version is newer and what a connection may be used for is decided by `skep.services.updating` and the settings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal

from skep.core.policy.conditions import Condition
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem
from skep_gui.app.background import Background
from skep_gui.words.notices import STARTS_NEXT, UNDER_WAY, Update, UpdateStage

if TYPE_CHECKING:
    from skep.services.updating import Found
    from skep_gui.app.controller import Controller

FIRST: Final = 20_000
"""Milliseconds from the start to the first check, so that it does not slow the start."""
HOURLY: Final = 3_600_000
"""Interval in milliseconds at which it is tested whether a day has passed."""
STEP: Final = 0.01
"""Progress, as part of a stage, between two updates of the display."""


class Updating(QObject):
    changed = Signal(object)
    """An Update: its current state."""
    restart_wanted = Signal()
    _went = Signal(object)

    def __init__(self, background: Background, known: Callable[[], Snapshot], parent: QObject) -> None:
        super().__init__(parent)
        self.controller: Controller | None = None
        self.update = Update()
        self._background, self._known = background, known
        self._found: Found | None = None
        self._cancel = threading.Event()
        self._went.connect(self._show)
        self.timer = QTimer(self, interval=FIRST)
        self.timer.timeout.connect(self._by_itself)

    def start(self, controller: Controller) -> None:
        self.controller = controller
        self.timer.start()

    # --- checking

    def _by_itself(self) -> None:
        self.timer.setInterval(HOURLY)
        if (
            (controller := self.controller) is None
            or self.update.stage not in (UpdateStage.NONE, UpdateStage.NEWEST, UpdateStage.FAILED)
            or not may_look(self._known())
        ):
            return
        # an automatic check ignores a server that cannot be reached
        self._background.run(controller.updates.look_when_due, self._unasked, slow=True)

    def _unasked(self, found: Found | None) -> None:
        if found is not None:
            self._tell(found)

    def end(self) -> None:
        """Cancel the current work."""
        self._cancel.set()
        self.timer.stop()

    def look(self) -> None:
        """Check immediately, as the user asked."""
        if (controller := self.controller) is None or self.update.stage in UNDER_WAY:
            return

        def answered(found: Found | None) -> None:
            if found is None:
                self._show(Update(UpdateStage.NEWEST, controller.updates.version))
            else:
                self._tell(found)

        self._background.run(controller.updates.look, answered, self._failed, slow=True)

    def _tell(self, found: Found) -> None:
        self._found = found
        stage = UpdateStage.FOUND if found.installs else UpdateStage.TOLD
        self._show(Update(stage, found.release.version, found.release.notes))

    # --- installing

    def act(self) -> None:
        """The strip's first button was pressed."""
        if self.update.stage in STARTS_NEXT:
            self.restart_wanted.emit()
        elif self.update.stage is UpdateStage.FOUND:
            self._install()

    def close(self) -> None:
        """The strip's last button was pressed."""
        if self.update.stage in UNDER_WAY:
            self._cancel.set()
        else:
            self._show(Update())

    def _install(self) -> None:
        if (controller := self.controller) is None or (found := self._found) is None:
            return
        self._cancel.clear()
        begun = Update(UpdateStage.FETCHING, found.release.version, found.release.notes)
        self._show(begun)
        said = begun

        def went(stage: UpdateStage, came: int, of: int) -> bool:
            """Called in the installing thread: reports the progress, and returns whether to go on."""
            nonlocal said
            part = min(1.0, came / max(1, of))
            if stage is not said.stage or part - said.part >= STEP:
                said = replace(said, stage=stage, part=part, size=of)
                self._went.emit(said)
            return not self._cancel.is_set()

        def done(installed: bool) -> None:  # noqa: FBT001 - an answer from the background
            self._show(Update(UpdateStage.INSTALLED, begun.version) if installed else Update())

        fetched, unpacked = partial(went, UpdateStage.FETCHING), partial(went, UpdateStage.UNPACKING)
        self._background.run(
            lambda: controller.updates.install(found.release, fetched, unpacked), done, self._failed, slow=True
        )

    def go_back(self) -> None:
        if (controller := self.controller) is None or self.update.stage in UNDER_WAY:
            return

        self._background.run(
            controller.updates.go_back,
            lambda version: self._show(Update(UpdateStage.WENT_BACK, version)),
            self._failed,
            slow=True,
        )

    def _failed(self, problem: Problem) -> None:
        self._show(Update(UpdateStage.FAILED, problem=problem))

    def _show(self, update: Update) -> None:
        self.update = update
        self.changed.emit(update)


def may_look(snapshot: Snapshot) -> bool:
    """Whether the settings allow an automatic check over the current connection."""
    return snapshot.settings.get("app.check_updates", True) is True and not is_metered(snapshot)


def is_metered(snapshot: Snapshot) -> bool:
    """Whether the settings spare the current connection."""
    pauses = snapshot.settings.get("network.metered_pause", True) is True
    return pauses and snapshot.conditions[Condition.METERED].value is True
