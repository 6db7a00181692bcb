"""The two control loops of the policy: the share that limits the temperature, and the use of the GPU's memory. Pure.

Each is a small frozen state that is updated with the current readings; time is `steady` seconds, which never decrease.
A reading that is missing or silent changes nothing: the rules handle it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from skep.core.policy.allowance import GpuMemory

FULL: Final = 1.0

HEAT_SECONDS: Final = 2.0
"""Between two steps down of the heat loop: the temperature takes this long to follow a change of the share."""
COOL_SECONDS: Final = 5.0
"""Between two steps up of the heat loop."""
COOL_MARGIN: Final = 2.0
"""Degrees below the cap before the share goes up again."""
TOO_HOT: Final = 10.0
"""Degrees above the cap at which computing stops."""
STEP_UP: Final = 0.05
LOWEST: Final = 0.05

RELEASE_SECONDS: Final = 3.0
"""How long memory must stay short after the caches were emptied before the model is moved to RAM."""
SETTLING_SECONDS: Final = 5.0
"""After a release, how long memory that becomes free is counted as freed by the worker."""
BACK_SECONDS: Final = 15.0
"""How long enough memory must be free before the worker uses it again."""


@dataclass(frozen=True)
class Heat:
    """State of the heat loop. `limit` is the share allowed, FULL while nothing is too warm; changed at `moved_at`."""

    limit: float = FULL
    moved_at: float = 0.0


def heated(heat: Heat, celsius: float | None, cap: float, share: float, steady: float) -> Heat:
    """The next state of the heat loop. `share` is the current share, at which the first step down starts."""
    if celsius is None:
        return heat
    if celsius >= cap + TOO_HOT:
        return heat if heat.limit == 0.0 else Heat(0.0, steady)
    waited = steady - heat.moved_at
    if celsius >= cap:
        if heat.limit < FULL and waited < HEAT_SECONDS:
            return heat
        lower = min(heat.limit, max(share, LOWEST)) * stronger_with(celsius - cap)
        return Heat(max(lower, LOWEST) if heat.limit else 0.0, steady)
    if heat.limit < FULL and celsius <= cap - COOL_MARGIN and waited >= COOL_SECONDS:
        return Heat(min(FULL, heat.limit + STEP_UP), steady)
    return heat


def stronger_with(excess: float) -> float:
    """The factor of one step down of the share, for a temperature of `excess` degrees above the cap."""
    return 1.0 - min(0.5, 0.1 + 0.05 * excess)


@dataclass(frozen=True)
class Room:
    """State of the memory loop; `since` is when `level` was entered.

    `free_before` was free in bytes when the model was moved; `ours` is what became free then. Since `roomy_since` there
    has continuously been room for it again.
    """

    level: GpuMemory = GpuMemory.KEEP
    since: float = 0.0
    free_before: int = 0
    ours: int = 0
    roomy_since: float | None = None


def roomed(room: Room, free: int | None, reserve: float, steady: float) -> Room:
    """The next state of the memory loop. `free` and `reserve` in bytes."""
    if free is None:
        return room
    match room.level:
        case GpuMemory.KEEP:
            return replace(room, level=GpuMemory.SHRINK, since=steady, roomy_since=None) if free < reserve else room
        case GpuMemory.SHRINK:
            return _shrunk(room, free, reserve, steady)
        case GpuMemory.RELEASE:
            return _released(room, free, reserve, steady)


def _shrunk(room: Room, free: int, reserve: float, steady: float) -> Room:
    if free >= reserve:
        return _back_after_a_while(room, steady)
    room = replace(room, roomy_since=None)
    if steady - room.since < RELEASE_SECONDS:
        return room
    return Room(GpuMemory.RELEASE, steady, free, room.ours)


def _released(room: Room, free: int, reserve: float, steady: float) -> Room:
    if steady - room.since < SETTLING_SECONDS:
        return replace(room, ours=max(room.ours, free - room.free_before))
    if free - room.ours >= reserve:
        return _back_after_a_while(room, steady)
    return replace(room, roomy_since=None)


def _back_after_a_while(room: Room, steady: float) -> Room:
    """The state with all memory once there was room for BACK_SECONDS; keeps how much the worker took."""
    since = steady if room.roomy_since is None else room.roomy_since
    if steady - since < BACK_SECONDS:
        return replace(room, roomy_since=since)
    return Room(GpuMemory.KEEP, steady, 0, room.ours)
