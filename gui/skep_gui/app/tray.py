"""The tray icon: the mark for the current state, one sentence, and a menu with Pause, Resume, Open and Quit."""

from __future__ import annotations

import time
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from skep.core.session.phases import Phase
from skep.core.session.snapshot import Snapshot
from skep_gui.widgets import icons
from skep_gui.widgets.parts import fill_pause_menu
from skep_gui.words.mark import look
from skep_gui.words.now import Now, shortened

UNTAGGED: Final = str.maketrans({"<": "(", ">": ")"})


class Tray(QObject):
    opened = Signal()
    pause_chosen = Signal(object)
    """Wall clock seconds, or None: until Resume."""
    resumed = Signal()
    quit_wanted = Signal()

    def __init__(self, words: Now, colour: str) -> None:
        super().__init__()
        self._words, self._colour = words, colour
        self._snapshot = Snapshot()
        self._line = ""
        self._build_menu()
        self.icon = QSystemTrayIcon(self)
        self.icon.setContextMenu(self.menu)
        self.icon.activated.connect(self._activated)
        self.show_snapshot(Snapshot(), time.time())

    def speak(self, words: Now) -> None:
        """Use another language from now on."""
        self._words, self._line = words, ""
        before = self.menu
        self._build_menu()
        self.icon.setContextMenu(self.menu)
        before.deleteLater()
        self.show_snapshot(self._snapshot, time.time())

    def _build_menu(self) -> None:
        self.menu = QMenu()
        self.first = self.menu.addAction("")
        self.first.setEnabled(False)
        self.menu.addSeparator()
        self.pause = QMenu(self.tr("Pause"), self.menu)
        fill_pause_menu(self.pause, self._words, self.pause_chosen.emit)
        self.menu.addMenu(self.pause)
        self.resume = self.menu.addAction(self.tr("Resume"))
        self.resume.triggered.connect(self.resumed)
        self.menu.addSeparator()
        self.open = self.menu.addAction(self.tr("Open skep"))
        self.open.triggered.connect(self.opened)
        self.quit = self.menu.addAction(self.tr("Quit"))
        self.quit.triggered.connect(self.quit_wanted)

    def show(self) -> None:
        self.icon.show()

    def set_colour(self, colour: str) -> None:
        """Set the mark's colour for this panel."""
        self._colour = colour
        self._draw()

    def show_snapshot(self, snapshot: Snapshot, now: float) -> None:
        self._snapshot = snapshot
        line = self._words.first_line(snapshot, now)
        if line != self._line:
            self._line = line
            # menu texts are not plain: an ampersand would underline the next letter
            self.first.setText(shortened(line, 70).replace("&", "&&"))
            self.icon.setToolTip(f"skep · {line}".translate(UNTAGGED))
        paused = snapshot.pause is not None or snapshot.on_a_break
        self.resume.setVisible(paused)
        self.pause.setEnabled(snapshot.phase is not Phase.LEAVING)
        self._draw()

    def _draw(self) -> None:
        icon = icons.panel(look(self._snapshot), self._colour)
        if self.icon.icon().cacheKey() != icon.cacheKey():
            self.icon.setIcon(icon)

    def tell(self, title: str, hint: str = "") -> None:
        """Show a notification. Desktops interpret its body as markup, so it contains no tag."""
        self.icon.showMessage(title, hint.translate(UNTAGGED), QSystemTrayIcon.MessageIcon.NoIcon)

    def _activated(self, why: QSystemTrayIcon.ActivationReason) -> None:
        if why in (QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick):
            self.opened.emit()
