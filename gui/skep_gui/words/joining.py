"""The five stages of joining as a checklist."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from skep.core.plain_text import plain
from skep.core.session.phases import Phase, Stage
from skep.core.session.snapshot import Snapshot
from skep_gui.words.speaker import Speaker


class Mark(StrEnum):
    DONE = "done"
    UNDER_WAY = "under way"
    TO_COME = "to come"
    FAILED = "failed"


@dataclass(frozen=True)
class StageRow:
    """`fraction` is 0..1 of the stage under way, None where it tells none yet."""

    name: str
    mark: Mark
    fraction: float | None = None
    detail: str = ""


def risen(snapshot: Snapshot) -> float:
    """How much of joining is done, 0..1, each stage counting the same."""
    current = snapshot.stage
    if current is None:
        return 0.0
    fraction = current.fraction if math.isfinite(current.fraction) else 0.0
    return (list(Stage).index(current.stage) + min(1.0, max(0.0, fraction))) / len(Stage)


class Joining(Speaker):
    def stages(self, snapshot: Snapshot) -> list[StageRow]:
        """All five in their order; what failed is marked where it happened, and is tried again."""
        order = list(Stage)
        current = snapshot.stage
        position = order.index(current.stage) if current is not None else 0
        rows = []
        for index, stage in enumerate(order):
            if index != position:
                rows.append(StageRow(self.name(stage), Mark.DONE if index < position else Mark.TO_COME))
                continue
            failed = snapshot.phase is Phase.RECOVERING
            fraction = current.fraction if current is not None and math.isfinite(current.fraction) else None
            detail = plain(self.said(current.detail)) if current is not None else ""
            rows.append(StageRow(self.name(stage), Mark.FAILED if failed else Mark.UNDER_WAY, fraction, detail))
        return rows

    def name(self, stage: Stage) -> str:
        match stage:
            case Stage.HARDWARE:
                return self.tr("Check this computer")
            case Stage.DATA:
                return self.tr("Fetch training data")
            case Stage.PEERS:
                return self.tr("Reach the swarm")
            case Stage.WARM_UP:
                return self.tr("Warm up")
            case Stage.STATE:
                return self.tr("Load the model's state")
