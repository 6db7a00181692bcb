"""Which of the six states the mark shows, and how many of its four bands are filled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skep.core.session.phases import Phase, Stage
from skep.core.session.snapshot import Snapshot

BANDS: Final = 4
AS_GRANTED: Final = frozenset({"away", "paused"})
"""Rules that are no slowing down: full permission, and the person's own pause."""


class State(StrEnum):
    IDLE = "idle"
    JOINING = "joining"
    TRAINING = "training"
    SLOWED = "slowed"
    PAUSED = "paused"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Look:
    """The mark's state and how many bands are filled, 0..4."""

    state: State
    bands: int = 0


def look(snapshot: Snapshot) -> Look:
    """What the tray's icon shows. Something that failed and stopped us outweighs all; a pause outweighs a share."""
    match snapshot.phase:
        case Phase.IDLE:
            return Look(State.PROBLEM if snapshot.problem is not None else State.IDLE)
        case Phase.RECOVERING:
            return Look(State.PROBLEM)
        case Phase.JOINING:
            return Look(State.JOINING, _risen(snapshot))
        case Phase.PAUSED:
            return Look(State.PAUSED)
        case Phase.TRAINING | Phase.LEAVING:
            return _working(snapshot)


def _working(snapshot: Snapshot) -> Look:
    if snapshot.allowance.share <= 0:
        return Look(State.PAUSED)
    state = State.TRAINING if snapshot.allowance.rule in AS_GRANTED else State.SLOWED
    return Look(state, quarters(snapshot.allowance.share))


def quarters(share: float) -> int:
    """How many of four bands stand for a share 0..1: none for none, at least one for any."""
    return min(BANDS, max(1, math.ceil(share * BANDS - 1e-9))) if share > 0 else 0


def _risen(snapshot: Snapshot) -> int:
    if snapshot.stage is None:
        return 1
    return min(BANDS, 1 + list(Stage).index(snapshot.stage.stage))
