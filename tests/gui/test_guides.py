"""The guide to the app matches the app: its pictures and the texts of the buttons."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guide-app.md"
TEXT = GUIDE.read_text()
WORDS = "\n".join(path.read_text() for path in (ROOT / "gui/skep_gui").rglob("*.py"))


def test_every_picture_is_described_and_made_by_the_studio():
    pictures = re.findall(r"!\[([^\]]*)\]\(../assets/screenshots/([^)]+)\)", TEXT)
    assert len(pictures) >= 10
    assert all(words for words, _ in pictures)
    studio = (ROOT / "assets/screenshots.py").read_text()
    taken = set(re.findall(r'"([a-z-]+)"', studio)) | {f"first-run-{step}" for step in (1, 2, 3)}
    assert {Path(name).stem for _, name in pictures} <= taken


@pytest.mark.parametrize(
    "word",
    ["Start and join", "Look and join", "Pause", "Resume", "Leave", "Leave now", "Quit", "Start with the defaults"],
)
def test_what_it_calls_a_button_is_what_the_button_says(word):
    assert f"**{word}**" in TEXT
    assert f'"{word}"' in WORDS
