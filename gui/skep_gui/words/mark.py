"""The state that the mark shows, one of six, and the mark as SVG text: the only source of every icon. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skep.core.session.deadlines import ORDINARY
from skep.core.session.phases import Phase, Stage
from skep.core.session.snapshot import Snapshot

BANDS: Final = 4
AS_GRANTED: Final = frozenset({"away", "paused"})
"""Rules that do not count as slowed: full permission, and a pause by the user."""


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
    """The state of the tray's icon. A failure that stopped the training takes precedence, then a pause, then the
    share.
    """
    match snapshot.phase:
        case Phase.IDLE:
            return Look(State.PROBLEM if snapshot.problem is not None else State.IDLE)
        case Phase.RECOVERING:
            return Look(State.PROBLEM)
        case Phase.JOINING:
            return Look(State.JOINING, _joining_bands(snapshot))
        case Phase.PAUSED:
            return Look(State.PROBLEM if snapshot.on_a_break else State.PAUSED)
        case Phase.LEAVING:  # nothing is computed while the last round is awaited, or a state is handed over
            return Look(State.PAUSED)
        case Phase.TRAINING:
            return _working(snapshot)


def _working(snapshot: Snapshot) -> Look:
    if snapshot.allowance.share <= 0 or snapshot.saving:
        return Look(State.PAUSED)
    if snapshot.waiting:  # nothing is trained, as in a pause or after a failure
        return Look(State.PAUSED if snapshot.waiting in ORDINARY else State.PROBLEM)
    state = State.TRAINING if snapshot.allowance.rule in AS_GRANTED else State.SLOWED
    return Look(state, quarters(snapshot.allowance.share))


def quarters(share: float) -> int:
    """How many of four bands stand for a share 0..1: none for 0, otherwise at least one."""
    return min(BANDS, max(1, math.ceil(share * BANDS - 1e-9))) if share > 0 else 0


def _joining_bands(snapshot: Snapshot) -> int:
    if snapshot.stage is None:
        return 1
    return min(BANDS, 1 + list(Stage).index(snapshot.stage.stage))


PIXELS: Final = 16
SHADE: Final = "#B87503"
DOOR: Final = "#1F1D1A"
"""Colours of the app's icon, which does not depend on the theme."""
_EDGES: Final = ((4.0, 8.0), (2.0, 12.0), (1.0, 14.0), (0.0, 16.0))
"""Left edge and width of the bands, from the top."""
_TOPS: Final = (1.0, 5.0, 9.0, 13.0)
_HEIGHT: Final = 3.0
_OPEN_DOOR: Final = "M6 16V12a2 2 0 0 1 4 0V16Z"
_WIDE_DOOR: Final = "M4 16V11a4 4 0 0 1 8 0V16Z"


def panel(look: Look, colour: str) -> str:
    """The mark in one colour, for a panel or tray."""
    parts = [_band(index, filled=BANDS - index <= look.bands, look=look) for index in range(BANDS)]
    return _svg(
        f'<defs>{_mask(look.state)}</defs><g fill="{colour}" stroke="{colour}" stroke-width="0">'
        f'<g mask="url(#m)">{"".join(parts)}</g>{_added(look.state)}</g>'
    )


def app(honey: str, shade: str, door: str) -> str:
    """The app's icon in colour: all bands filled, each with a darker lower edge."""
    bands = []
    for (left, width), top in zip(_EDGES, _TOPS, strict=True):
        bands.append(_rounded(left, top, width, _HEIGHT, honey))
        bands.append(_rounded(left + 0.8, top + 2.1, width - 1.6, 0.5, shade))
    return _svg(f'{"".join(bands)}<path d="{_OPEN_DOOR}" fill="{door}"/>')


def _svg(body: str) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PIXELS} {PIXELS}">{body}</svg>\n'


def _band(index: int, *, filled: bool, look: Look) -> str:
    (left, width), top = _EDGES[index], _TOPS[index]
    if filled:
        return _rounded(left, top, width, _HEIGHT)
    if look.state is State.JOINING:
        return _rounded(left + 1.5, top + 1, width - 3, 1.0)
    # inset by half the line width, so that the outline covers the same pixels as a filled band
    return (
        f'<rect x="{left + 0.5:g}" y="{top + 0.5:g}" width="{width - 1:g}" height="{_HEIGHT - 1:g}" rx="1" '
        'fill="none" stroke-width="1"/>'
    )


def _rounded(left: float, top: float, width: float, height: float, fill: str = "") -> str:
    colour = f' fill="{fill}"' if fill else ""
    return (
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="{min(1.5, height / 2):g}"{colour}/>'
    )


def _mask(state: State) -> str:
    cut = {State.JOINING: "", State.PAUSED: f'<path d="{_WIDE_DOOR}" fill="#000"/>'}.get(
        state, f'<path d="{_OPEN_DOOR}" fill="#000"/>'
    )
    if state is State.PROBLEM:
        cut += '<circle cx="12.5" cy="3.5" r="4.5" fill="#000"/>'
    return f'<mask id="m" maskUnits="userSpaceOnUse" x="0" y="0" width="16" height="16"><rect width="16" height="16" fill="#fff" stroke="none"/>{cut}</mask>'


def _added(state: State) -> str:
    match state:
        case State.PAUSED:
            return '<rect x="5" y="9" width="2" height="7"/><rect x="9" y="9" width="2" height="7"/>'
        case State.SLOWED:
            return '<rect x="6" y="13" width="4" height="2"/>'
        case State.PROBLEM:
            return '<circle cx="12.5" cy="3.5" r="3"/>'
        case State.IDLE | State.JOINING | State.TRAINING:
            return ""
