"""Unusual or malicious titles: long, right to left, with markup or emoji. Plain text, and nothing is cut off."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QProgressBar, QWidget

import snapshots as shots
from manifests import raw
from skep.recipes.registry import parse_manifest
from skep_gui.app.main_window import MainWindow
from skep_gui.app.tray import Tray
from skep_gui.widgets.parts import tip
from skep_gui.words.now import History
from skep_gui.words.speaker import english
from skep_gui.words.translation import Translation
from window_sight import cut, show_all

VOICE = Translation(english)
TITLES = {
    "long": "A very long title that goes on and on " * 3,
    "without a space": "Averylongtitlewithoutanyspace" * 4,
    "right to left": "مشروع تدريب نموذج لغوي صغير",
    "overridden": "safe\u202egnp.exe\u200b\ufeff",
    "markup": '<b>bold</b> <img src="file:///etc/passwd"> <a href="x">y</a>',
    "entities": "&lt;b&gt; Rock &amp; roll & more",
    "emoji": "🐝🐝 Bees 👩‍👩‍👧‍👦 \N{COMBINING ACUTE ACCENT}",
}


@pytest.fixture(params=TITLES.values(), ids=TITLES)
def title(request):
    return request.param[:80]


def project(title):
    text = raw(title=title, summary=title, publisher__name=title, license=title[:64])
    return replace(shots.PROJECT, title=title, manifest=parse_manifest(text))


@pytest.fixture
def window(dressed, qtbot):
    made = MainWindow(VOICE)
    qtbot.addWidget(made)
    made.show()
    return made


def test_a_title_is_plain_text_everywhere_and_nothing_is_cut(window, title, qtbot):
    odd = project(title)
    known = [replace(shots.KNOWN[0], project=odd)]
    window.resize(1024, 552)
    for snapshot in (shots.IDLE, replace(shots.SLOWED, project=odd), replace(shots.JOINING, project=odd)):
        window.projects.show_projects(known, snapshot)
        window.stats.show_record(shots.record(), window.projects.titles())
        window.show_snapshot(snapshot, History(), shots.NOW)
        for _ in show_all(window):
            qtbot.waitUntil(lambda: not cut(window.pages.currentWidget(), window), timeout=5000)
    assert {each.textFormat() for each in window.findChildren(QLabel)} == {Qt.TextFormat.PlainText}
    assert not any(mark in text for text in everything(window) for mark in "\u202e\ufeff")


def everything(window):
    labels = [each.text() for each in window.findChildren(QLabel)]
    tips = [text for each in window.findChildren(QWidget) for text in (each.toolTip(), each.accessibleName())]
    return [*labels, *tips, *(each.accessibleName() for each in window.findChildren(QProgressBar))]


def test_a_title_in_the_tray_is_one_short_line(dressed, title):
    tray = Tray(VOICE.now, "#6B665E")
    tray.show_snapshot(replace(shots.SLOWED, project=project(title)), shots.NOW)
    assert len(tray.first.text().replace("&&", "&")) <= 72
    assert "\n" not in tray.first.text()
    assert "\u202e" not in tray.first.text()
    # a single ampersand makes the next letter an access key
    assert "&" not in tray.first.text().replace("&&", "")
    # desktops show it as rich text, which can load a picture
    assert not set("<>") & set(tray.icon.toolTip())


def test_a_tooltip_shows_markup_as_it_was_written(dressed, qtbot):
    widget = QWidget()
    qtbot.addWidget(widget)
    tip(widget, "<b>bold</b> & more")
    assert widget.toolTip() == "<p>&lt;b&gt;bold&lt;/b&gt; &amp; more</p>"
    assert widget.accessibleDescription() == "<b>bold</b> & more"
    tip(widget, "")
    assert widget.toolTip() == ""
