"""Updates of skep in the app: looks by itself once a day where that is wanted, installs when a person says so.

It must not decide what is newer, nor what may be asked over this connection; `skep.services.updating` and the settings do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal

from skep.core.policy.conditions import Condition
from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem
from skep_gui.app.background import Errands
from skep_gui.words.notices import STARTS_NEXT, UNDER_WAY, Stage, Update

if TYPE_CHECKING:
    from skep.services.updating import Found
    from skep_gui.app.controller import Desk

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

    def __init__(self, errands: Errands, known: Callable[[], Snapshot], parent: QObject) -> None:
        super().__init__(parent)
        self.desk: Desk | None = None
        self.update = Update()
        self._errands, self._known = errands, known
        self._found: Found | None = None
        self._cancel = threading.Event()
        self._went.connect(self._show)
        self.timer = QTimer(self, interval=FIRST)
        self.timer.timeout.connect(self._by_itself)

    def start(self, desk: Desk) -> None:
        self.desk = desk
        self.timer.start()

    # --- looking

    def _by_itself(self) -> None:
        self.timer.setInterval(HOURLY)
        if (desk := self.desk) is None or self.update.stage is not Stage.NONE or not may_look(self._known()):
            return
        # a server that cannot be reached is nobody's trouble but its own
        self._errands.run(desk.updates.look_when_due, self._unasked, _nothing, slow=True)

    def _unasked(self, found: Found | None) -> None:
        if found is not None:
            self._tell(found)

    def end(self) -> None:
        """Break off what is under way."""
        self._cancel.set()
        self.timer.stop()

    def look(self) -> None:
        """A person wants to know now."""
        if (desk := self.desk) is None or self.update.stage in UNDER_WAY:
            return

        def answered(found: Found | None) -> None:
            if found is None:
                self._show(Update(Stage.NEWEST, desk.updates.version))
            else:
                self._tell(found)

        self._errands.run(desk.updates.look, answered, self._failed, slow=True)

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
        if (desk := self.desk) is None or (found := self._found) is None:
            return
        self._cancel.clear()
        begun = Update(Stage.FETCHING, found.release.version, found.release.notes)
        self._show(begun)
        work = _Work(begun, self._cancel.is_set, self._went.emit)

        def done(installed: bool) -> None:  # noqa: FBT001 - an errand's answer
            self._show(Update(Stage.INSTALLED, begun.version) if installed else Update())

        self._errands.run(
            lambda: desk.updates.install(found.release, work.fetched, work.unpacked), done, self._failed, slow=True
        )

    def go_back(self) -> None:
        if (desk := self.desk) is None or self.update.stage in UNDER_WAY:
            return

        def done(version: str) -> None:
            self._show(Update(Stage.WENT_BACK, version))

        self._errands.run(desk.updates.go_back, done, self._failed, slow=True)

    def _failed(self, problem: Problem) -> None:
        self._show(Update(Stage.FAILED, problem=problem))

    def _show(self, update: Update) -> None:
        self.update = update
        self.changed.emit(update)


class _Work:
    """Tells how far an installation is, from its own thread, and breaks it off when it is cancelled."""

    def __init__(self, begun: Update, cancelled: Callable[[], bool], tell: Callable[[Update], None]) -> None:
        self._said, self._cancelled, self._tell = begun, cancelled, tell

    def fetched(self, came: int, of: int) -> bool:
        return self._go_on(Stage.FETCHING, came, of)

    def unpacked(self, came: int, of: int) -> bool:
        return self._go_on(Stage.UNPACKING, came, of)

    def _go_on(self, stage: Stage, came: int, of: int) -> bool:
        part = min(1.0, came / max(1, of))
        if stage is not self._said.stage or part - self._said.part >= STEP:
            self._said = replace(self._said, stage=stage, part=part, size=of)
            self._tell(self._said)
        return not self._cancelled()


def may_look(snapshot: Snapshot) -> bool:
    """Whether the person lets skep look by itself, over the connection that there is now."""
    settings = snapshot.settings
    metered = (
        snapshot.conditions[Condition.METERED].value is True and settings.get("network.metered_pause", True) is True
    )
    return settings.get("app.check_updates", True) is True and not metered


def _nothing(_problem: Problem) -> None:
    pass
