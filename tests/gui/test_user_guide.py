"""The user guide speaks of what is there: its pictures, its links, and the words of the app."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/user-guide.md"
TEXT = GUIDE.read_text()
WORDS = "\n".join(path.read_text() for path in (ROOT / "gui/skep_gui").rglob("*.py"))


def links(path):
    found = re.findall(r"!?\[[^\]]*\]\(([^)\s]+)\)", path.read_text())
    return [each.partition("#")[0] for each in found if "://" not in each and not each.startswith("#")]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_every_file_that_is_linked_exists(page):
    missing = [each for each in links(page) if not (page.parent / each).exists()]
    assert missing == []


def test_every_picture_is_described_and_made_by_the_studio():
    pictures = re.findall(r"!\[([^\]]*)\]\(../assets/screenshots/([^)]+)\)", TEXT)
    assert len(pictures) >= 10
    assert all(words for words, _ in pictures)
    studio = (ROOT / "assets/screenshots.py").read_text()
    taken = set(re.findall(r'"([a-z-]+)"', studio)) | {f"first-run-{step}" for step in (1, 2, 3)}
    assert {Path(name).stem for _, name in pictures} <= taken


@pytest.mark.parametrize(
    "word",
    ["Start and join", "Look and join", "Pause", "Resume", "Leave", "Leave now", "Quit", "Begin with the defaults"],
)
def test_what_it_calls_a_button_is_what_the_button_says(word):
    assert f"**{word}**" in TEXT
    assert f'"{word}"' in WORDS
