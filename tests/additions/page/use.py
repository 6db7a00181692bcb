"""The page is in the navigation, has a shortcut, shows the snapshot and sends requests. Exits with 3 without it."""

import sys
from dataclasses import fields

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

import snapshots as shots
from skep_gui.app.main_window import MainWindow
from skep_gui.pages.registry import Requests
from skep_gui.words.speaker import english
from skep_gui.words.translation import Translation

app = QApplication([])
window = MainWindow(Translation(english))
titles = [window.rail.item(row).text() for row in range(window.rail.count())]
if "Peers" not in titles:
    sys.exit(3)
window.show()
QTest.qWaitForWindowActive(window)
QTest.keyClick(window, Qt.Key(ord("1") + titles.index("Peers")), Qt.KeyboardModifier.ControlModifier)
page = window.pages.currentWidget()
assert type(page).__name__ == "PeersPage"
window.show_snapshot(shots.TRAINING, shots.history(), shots.NOW)
assert page.count.text().endswith(" peers"), page.count.text()

asked = []
window.connect_pages(Requests(**{each.name: lambda *_: None for each in fields(Requests)} | {"pause": asked.append}))
page.pause.click()
assert asked == [None]
