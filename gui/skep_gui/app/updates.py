"""Updates of skep in the app: looks by itself once a day where that is wanted, installs when a person says so.

It must not decide what is newer, nor what may be asked over this connection; `skep.services.updating` and the settings do.
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
from skep_gui.words.notices import STARTS_NEXT, UNDER_WAY, Stage, Update

if TYPE_CHECKING:
    from skep.services.updating import Found
    from skep_gui.app.controller import Controller

FIRST: Final = 20_000
"""Milliseconds after the start until it is looked for the first time: a person is waiting for other things then."""
HOURLY: Final = 3_600_000
"""Milliseconds between two looks at whether a day is over."""
STEP: Final = 0.01
"""Part of a stage between two drawings."""


class Updating(QObject):
    changed = Signal(object)
    """An Update: where it is now."""
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

    # --- looking

    def _by_itself(self) -> None:
        self.timer.setInterval(HOURLY)
        if (
            (controller := self.controller) is None
            or self.update.stage is not Stage.NONE
            or not may_look(self._known())
        ):
            return
        # where nobody asked, a server that cannot be reached is passed over
        self._background.run(controller.updates.look_when_due, self._unasked, slow=True)

    def _unasked(self, found: Found | None) -> None:
        if found is not None:
            self._tell(found)

    def end(self) -> None:
        """Break off what is under way."""
        self._cancel.set()
        self.timer.stop()

    def look(self) -> None:
        """A person wants to know now."""
        if (controller := self.controller) is None or self.update.stage in UNDER_WAY:
            return

        def answered(found: Found | None) -> None:
            if found is None:
                self._show(Update(Stage.NEWEST, controller.updates.version))
            else:
                self._tell(found)

        self._background.run(controller.updates.look, answered, self._failed, slow=True)

    def _tell(self, found: Found) -> None:
        self._found = found
        stage = Stage.FOUND if found.installs else Stage.TOLD
        self._show(Update(stage, found.release.version, found.release.notes))

    # --- installing

    def act(self) -> None:
        """What the strip's first button says."""
        if self.update.stage in STARTS_NEXT:
            self.restart_wanted.emit()
        elif self.update.stage is Stage.FOUND:
            self._install()

    def close(self) -> None:
        """What its last button says."""
        if self.update.stage in UNDER_WAY:
            self._cancel.set()
        else:
            self._show(Update())

    def _install(self) -> None:
        if (controller := self.controller) is None or (found := self._found) is None:
            return
        self._cancel.clear()
        begun = Update(Stage.FETCHING, found.release.version, found.release.notes)
        self._show(begun)
        said = begun

        def went(stage: Stage, came: int, of: int) -> bool:
            """In the thread that installs: tell how far it is, and whether it shall go on."""
            nonlocal said
            part = min(1.0, came / max(1, of))
            if stage is not said.stage or part - said.part >= STEP:
                said = replace(said, stage=stage, part=part, size=of)
                self._went.emit(said)
            return not self._cancel.is_set()

        def done(installed: bool) -> None:  # noqa: FBT001 - an answer from the background
            self._show(Update(Stage.INSTALLED, begun.version) if installed else Update())

        fetched, unpacked = partial(went, Stage.FETCHING), partial(went, Stage.UNPACKING)
        self._background.run(
            lambda: controller.updates.install(found.release, fetched, unpacked), done, self._failed, slow=True
        )

    def go_back(self) -> None:
        if (controller := self.controller) is None or self.update.stage in UNDER_WAY:
            return

        self._background.run(
            controller.updates.go_back,
            lambda version: self._show(Update(Stage.WENT_BACK, version)),
            self._failed,
            slow=True,
        )

    def _failed(self, problem: Problem) -> None:
        self._show(Update(Stage.FAILED, problem=problem))

    def _show(self, update: Update) -> None:
        self.update = update
        self.changed.emit(update)


def may_look(snapshot: Snapshot) -> bool:
    """Whether the person lets skep look by itself, over the connection that there is now."""
    settings = snapshot.settings
    metered = (
        snapshot.conditions[Condition.METERED].value is True and settings.get("network.metered_pause", True) is True
    )
    return settings.get("app.check_updates", True) is True and not metered
