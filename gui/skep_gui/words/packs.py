"""The texts of the card about the compute pack in Settings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from skep.core.plain_text import plain
from skep.core.text import NOTHING, Problem, Text
from skep.language import units
from skep_gui.words.speaker import Speaker, filled


class PackStage(Enum):
    NONE = auto()
    """This skep needs no pack."""
    LOOKING = auto()
    OFFERED = auto()
    USED = auto()
    FETCHING = auto()
    LAYING = auto()
    TRYING = auto()
    FAILED = auto()


PACK_UNDER_WAY = (PackStage.FETCHING, PackStage.LAYING, PackStage.TRYING)


@dataclass(frozen=True)
class PackState:
    """What is known of the pack; sizes in bytes, `part` from 0 to 1.

    `used` is the name of the pack that is used; `name` that of the one that suits or is fetched; `why` says why;
    `passed_over` has names and reasons of those that would have been preferred.
    """

    stage: PackStage = PackStage.NONE
    used: str = ""
    name: str = ""
    why: Text = NOTHING
    passed_over: tuple[tuple[str, Text], ...] = ()
    to_fetch: int = 0
    room: int = 0
    folder: str = ""
    part: float = 0.0
    size: int = 0
    seconds_left: float | None = None
    spare: int = 0
    problem: Problem | None = None


@dataclass(frozen=True)
class PackView:
    """Texts of the card; "" hides a button. `part` is the progress from 0 to 1, None without a bar."""

    sentence: str
    details: tuple[str, ...] = ()
    fetch: str = ""
    cancel: str = ""
    free: str = ""
    part: float | None = None


class PackWords(Speaker):
    def view(self, state: PackState) -> PackView | None:
        """None where there is nothing to show."""
        if state.stage is PackStage.NONE:
            return None
        free = filled(self.tr("Free %1"), self.numbers.size(state.spare)) if state.spare else ""
        if state.stage in PACK_UNDER_WAY:
            return PackView(
                filled(self._stage(state.stage), state.name),
                (self._done(state), *self._reasons(state)),
                cancel=self.tr("Cancel"),
                part=None if state.stage is PackStage.TRYING else state.part,
            )
        return PackView(self._sentence(state), self._details(state), self._fetch(state), free=free)

    def _stage(self, stage: PackStage) -> str:
        match stage:
            case PackStage.FETCHING:
                return self.tr("Fetching the compute pack %1")
            case PackStage.LAYING:
                return self.tr("Laying down the compute pack %1")
            case _:
                return self.tr("Trying the compute pack %1")

    def _done(self, state: PackState) -> str:
        if state.stage is PackStage.TRYING:
            return self.tr("A step of training on the device, in a process of its own.")
        done = f"{units.percent(state.part)} · {self.numbers.size(state.size)}"
        if state.seconds_left is None:
            return done
        left = filled(self.tr("about %1 left"), units.span(state.seconds_left))
        return f"{done} · {left}"

    def _sentence(self, state: PackState) -> str:
        if state.stage is PackStage.LOOKING and not state.used:
            return self.tr("Looking for what suits this computer …")
        if not state.used:
            return self.tr("skep needs a compute pack to train: the build of PyTorch that fits this computer.")
        return filled(self.tr("The compute pack %1 is used."), state.used)

    def _details(self, state: PackState) -> tuple[str, ...]:
        lines = []
        if state.problem is not None:
            lines.append(self.tongue.told(state.problem))
        elif state.why:
            lines.append(plain(self.said(state.why)))
        if state.stage is PackStage.OFFERED and state.to_fetch:
            size, room = self.numbers.size(state.to_fetch), self.numbers.size(state.room)
            lines.append(filled(self.tr("%1 would be fetched; it needs %2 of the disk."), size, room))
            lines.append(filled(self.tr("It would lie in %1"), state.folder))
        return (*lines, *self._reasons(state))

    def _reasons(self, state: PackState) -> tuple[str, ...]:
        return tuple(f"{name}: {plain(self.said(why))}" for name, why in state.passed_over)

    def _fetch(self, state: PackState) -> str:
        if state.stage is PackStage.OFFERED:
            if not state.to_fetch:
                return filled(self.tr("Use %1"), state.name)
            return filled(self.tr("Fetch %1"), self.numbers.size(state.to_fetch))
        return self.tr("Try again") if state.stage is PackStage.FAILED else ""
