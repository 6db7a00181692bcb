"""The mark as SVG text: a skep, a dome of four woven bands with an arched door. Pure; the one source of every icon.

Drawn on a grid of 16 units, so that at 16 px each band is 3 px high with 1 px between. The states differ in shape:

    idle      four hollow bands, open door             slowed    filled bands by share, a bar across the door
    joining   bands rising, no door, the rest dashes   paused    hollow bands, two upright bars in a wide door
    training  filled bands by share, open door         problem   a notch at the top right with a dot
"""

from __future__ import annotations

from typing import Final

from skep_gui.words.state import BANDS, Look, State

PIXELS: Final = 16
SHADE: Final = "#B87503"
DOOR: Final = "#1F1D1A"
"""Of the app's icon, which looks the same everywhere and follows no theme."""
_EDGES: Final = ((4.0, 8.0), (2.0, 12.0), (1.0, 14.0), (0.0, 16.0))
"""Left edge and width of the bands, from the top."""
_TOPS: Final = (1.0, 5.0, 9.0, 13.0)
_HEIGHT: Final = 3.0
_OPEN_DOOR: Final = "M6 16V12a2 2 0 0 1 4 0V16Z"
_WIDE_DOOR: Final = "M4 16V11a4 4 0 0 1 8 0V16Z"


def panel(look: Look, colour: str) -> str:
    """The mark in one colour for a panel or tray."""
    parts = [_band(index, filled=BANDS - index <= look.bands, look=look) for index in range(BANDS)]
    return _svg(
        f'<defs>{_mask(look.state)}</defs><g fill="{colour}" stroke="{colour}" stroke-width="0">'
        f'<g mask="url(#m)">{"".join(parts)}</g>{_added(look.state)}</g>'
    )


def app(honey: str, shade: str, door: str) -> str:
    """The app's icon in colour: all bands filled, the lower edge of each a shade darker."""
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
    # inset by half the line, so that the outline fills the same pixels as a filled band
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
