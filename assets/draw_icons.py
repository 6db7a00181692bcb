"""Writes the mark's icons into assets/icons: the app's in colour, the panel's for each state and share.

    python assets/draw_icons.py

The app draws the same ones from `skep_gui.words.mark` while it runs; these are for desktop files, packages and the
README.
"""

from __future__ import annotations

from pathlib import Path

from skep_gui.widgets.theme import LIGHT
from skep_gui.words import mark
from skep_gui.words.mark import BANDS, Look, State

FOLDER = Path(__file__).resolve().parent / "icons"


def drawings() -> dict[str, str]:
    """Every icon's file name and content. `currentColor` lets the panel set the colour."""
    looks = [Look(State.IDLE), Look(State.PAUSED), Look(State.PROBLEM)]
    for state in (State.JOINING, State.TRAINING, State.SLOWED):
        looks += [Look(state, bands) for bands in range(1, BANDS + 1)]
    named = {f"skep-{look.state}{f'-{look.bands}' if look.bands else ''}-symbolic.svg": look for look in looks}
    panel = {name: mark.panel(look, "currentColor") for name, look in named.items()}
    return {"skep.svg": mark.app(LIGHT.fill, mark.SHADE, mark.DOOR), **panel}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, content in drawings().items():
        (FOLDER / name).write_text(content)


if __name__ == "__main__":
    main()
