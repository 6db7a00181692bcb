"""Readable colours, distinguishable icons, and the files that contain them."""

import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from skep_gui.widgets import icons, theme
from skep_gui.words import mark
from skep_gui.words.mark import Look, State
from skep_gui.words.stats import nice_top

TEXTS = ("ink", "soft", "honey", "well", "problem", "paused")
LOOKS = [
    Look(State.IDLE),
    Look(State.PAUSED),
    Look(State.PROBLEM),
    *(Look(state, bands) for state in (State.JOINING, State.TRAINING, State.SLOWED) for bands in range(1, 5)),
]
ROOT = Path(__file__).resolve().parents[3]


def luminance(colour: str) -> float:
    """WCAG 2 relative luminance of "#RRGGBB", 0..1."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio, 1..21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK])
@pytest.mark.parametrize("ground", ["ground", "card"])
@pytest.mark.parametrize("text", TEXTS)
def test_every_text_stands_out_from_what_is_behind_it(colours, ground, text):
    assert contrast(getattr(colours, text), getattr(colours, ground)) >= 4.5


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK])
def test_text_on_the_primary_button_and_on_the_rail_can_be_read(colours):
    assert contrast(colours.on_fill, colours.fill) >= 4.5
    assert contrast(colours.ink, colours.line) >= 4.5


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK])
def test_the_mark_can_be_seen_on_its_panel(colours):
    assert contrast(colours.panel, colours.ground) >= 4.5


def test_contrast_is_the_webs():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


def shape(look, size=16):
    image = icons.image(mark.panel(look, "#000000"), size)
    return [image.pixelColor(x, y).alpha() > 127 for y in range(size) for x in range(size)]


def test_at_16_pixels_all_states_differ_in_shape(qapp):
    shapes = {look: shape(look) for look in LOOKS}
    for (one, first), (other, second) in combinations(shapes.items(), 2):
        different = sum(a != b for a, b in zip(first, second, strict=True))
        assert different >= 6, f"{one} and {other} differ in {different} pixels only"


def test_the_icons_in_assets_are_the_ones_that_are_drawn(tmp_path):
    code = "import sys; sys.path.insert(0, 'assets'); import draw_icons, json; print(json.dumps(draw_icons.drawings()))"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    drawn = json.loads(out)
    assert {path.name: path.read_text() for path in (ROOT / "assets/icons").glob("*.svg")} == drawn


def test_colours_are_written_in_the_theme_alone():
    allowed = {"theme.py", "mark.py"}  # the app's icon does not use the theme
    folder = ROOT / "gui/skep_gui"
    found = [path.name for path in folder.rglob("*.py") if re.search(r"#[0-9A-Fa-f]{6}\b", path.read_text())]
    assert set(found) <= allowed


@pytest.mark.parametrize(("most", "top"), [(0, 1), (0.3, 0.4), (1, 1), (41.3, 60), (87, 100), (float("nan"), 1)])
def test_the_axis_ends_at_a_round_number(most, top):
    assert nice_top(most) == pytest.approx(top)
