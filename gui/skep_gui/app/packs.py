"""Compute packs in the app: what suits, fetched when asked for or when first needed, with its progress.

Which one suits, and how it is fetched and tried, is decided by `skep.services.packs`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from skep.core.session.snapshot import Snapshot
from skep.core.text import Problem
from skep_gui.app.background import Background
from skep_gui.app.updates import is_metered
from skep_gui.words.packs import PACK_UNDER_WAY, PackStage, PackState

if TYPE_CHECKING:
    from skep.core.pack_choice import Choice, PassedOver
    from skep.services.packs import Offer, Packs
    from skep_gui.app.controller import Controller

STEP: Final = 0.01
"""Progress, as part of a stage, between two updates of the display."""


class Packing(QObject):
    changed = Signal(object)
    """A PackState: what is known now."""
    _went = Signal(object)
    _ended = Signal()

    def __init__(self, background: Background, known: Callable[[], Snapshot], parent: QObject) -> None:
        super().__init__(parent)
        self._known = known
        self.controller: Controller | None = None
        self.state = self._told = PackState()
        self._background = background
        self._cancel = threading.Event()
        self._unasked = False
        self._passed_over: tuple[PassedOver, ...] = ()
        self._began = 0.0
        self._went.connect(self._hear)
        self._ended.connect(self._over)

    def start(self, controller: Controller) -> None:
        """Look at the current pack, which a new driver may have broken; a broken one is replaced."""
        from skep.services.packs import Progress  # noqa: PLC0415 - the controller has brought it

        if controller.packs.own_stack:
            return
        self.controller = controller
        controller.pack_progress = Progress(
            chosen=self._chosen,
            fetched=lambda done, total: self._moved(PackStage.FETCHING, done, total),
            laid=lambda done, total: self._moved(PackStage.LAYING, done, total),
            tried=lambda pack: self._tell(replace(self._told, stage=PackStage.TRYING, name=pack.name)),
            waited=self._goes_on,
            passed_over=self._hear_passed_over,
        )
        controller.pack_ended = self._ended.emit
        self._unasked = True

        def mended() -> bool:
            if not controller.packs.must_be_tried():
                return False
            controller.ready_pack()
            return True

        def over(_mended: bool) -> None:  # noqa: FBT001 - an answer from the background
            self._unasked = False

        self._background.run(mended, over, self._failed, slow=True)

    def end(self) -> None:
        """Cancel the current work."""
        self._cancel.set()

    def look(self) -> None:
        """Find out what suits, for the page that is shown."""
        if (controller := self.controller) is None or self.state.stage in (PackStage.LOOKING, *PACK_UNDER_WAY):
            return
        self._show(replace(self.state, stage=PackStage.LOOKING, problem=None))
        packs = controller.packs
        self._background.run(lambda: looked_at(packs), self._show, self._failed, slow=True)

    def fetch(self) -> None:
        """Get the pack that suits, as the user asked."""
        if (controller := self.controller) is not None and self.state.stage not in PACK_UNDER_WAY:
            self._run(lambda: controller.packs.fetch(controller.pack_progress))

    def cancel(self) -> None:
        self._cancel.set()

    def free(self) -> None:
        """Remove the packs that are not used."""
        if (controller := self.controller) is not None and self.state.stage not in PACK_UNDER_WAY:
            packs = controller.packs

            def freed() -> PackState:
                packs.free()
                return looked_at(packs)

            self._background.run(freed, self._show, self._failed, slow=True)

    # --- how

    def _run(self, work: Callable[[], object]) -> None:
        self._unasked = False
        self._background.run(work, lambda _: self._over(), self._failed, slow=True)

    def _over(self) -> None:
        self._show(replace(self.state, stage=PackStage.USED))
        self.look()

    def _failed(self, problem: Problem) -> None:
        self._unasked = False
        self._show(replace(self.state, stage=PackStage.FAILED, problem=problem))

    def _show(self, state: PackState) -> None:
        self._told = state
        self._hear(state)

    def _hear(self, state: PackState) -> None:
        self.state = state
        self.changed.emit(state)

    # --- called in the thread that works, which may be ahead of what has been heard

    def _tell(self, state: PackState) -> None:
        self._told = state
        self._went.emit(state)

    def _chosen(self, choice: Choice) -> None:
        if self._told.stage not in PACK_UNDER_WAY:
            self._cancel.clear()
            self._passed_over = ()
        self._began = time.monotonic()
        name = choice.pack.name if choice.pack is not None else ""
        self._tell(replace(self._told, stage=PackStage.FETCHING, name=name, why=choice.why, part=0.0, size=0))

    def _moved(self, stage: PackStage, done: int, total: int) -> bool:
        part, known = min(1.0, done / max(1, total)), self._told
        if stage is not known.stage or part - known.part >= STEP or part == 1.0:
            if stage is not known.stage:
                self._began = time.monotonic()
            left = (time.monotonic() - self._began) * (1 - part) / part if part > STEP else None
            self._tell(replace(known, stage=stage, part=part, size=total, seconds_left=left))
        return self._goes_on()

    def _goes_on(self) -> bool:
        return not self._cancel.is_set() and not (self._unasked and is_metered(self._known()))

    def _hear_passed_over(self, pack: PassedOver) -> None:
        self._passed_over = (*self._passed_over, pack)
        passed = tuple((each.pack.name, each.why) for each in self._passed_over)
        self._tell(replace(self._told, passed_over=passed))


def looked_at(packs: Packs) -> PackState:
    """What is used and what suits. Raises SkepError."""
    used = next((each.pack for each in packs.installed() if each.is_current), None)
    spare = packs.spare
    name = used.name if used is not None else ""
    offer: Offer = packs.look()
    choice = offer.choice
    suits = choice.pack is not None and (used is None or choice.pack.digest != used.digest)
    return PackState(
        PackStage.OFFERED if suits else PackStage.USED,
        used=name,
        name=choice.pack.name if choice.pack is not None else "",
        why=choice.why,
        passed_over=tuple((each.pack.name, each.why) for each in choice.passed_over),
        to_fetch=offer.to_fetch or 0,
        room=offer.room or 0,
        folder=str(offer.folder or ""),
        spare=spare,
    )
