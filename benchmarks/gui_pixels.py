"""Seconds from a snapshot in another thread until the X server's screen shows it, as a JSON list.

Started by gui.py on a private desktop. The app is the real one with its window open on the page Now and ten minutes of
plots; only the engine is a stand-in, so that it sends nothing in between.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from PySide6.QtCore import QMetaObject, QPoint, Qt, QTimer
from PySide6.QtWidgets import QApplication
from Xlib import X
from Xlib.display import Display

import snapshots as shots
from skep.core.session import messages as m
from skep_gui.app.app import App
from skep_gui.app.interpreter import prepare
from skep_gui.app.language import Language
from skep_gui.app.tray import Tray
from skep_gui.widgets import theme
from skep_gui.words.now import Now

TIMES = 40
STILL = 0.6
"""Seconds after which a window has certainly drawn an update."""


class Watch:
    """Watches the row of buttons, which differs while paused and otherwise does not change."""

    def __init__(self, app: App, corner: QPoint, size: tuple[int, int]) -> None:
        self._app, self._corner, self._size = app, corner, size
        self._root = Display().screen().root

    def seen(self) -> bytes:
        width, height = self._size
        image = self._root.get_image(self._corner.x(), self._corner.y(), width, height, X.ZPixmap, 0xFFFFFF)
        return bytes(image.data)

    def run(self) -> list[float]:
        kinds = (shots.TRAINING, shots.PAUSED)
        looks = []
        for kind in kinds:
            self._app.bridge.observe(m.Tick(), replace(kind))
            time.sleep(STILL)
            looks.append(self.seen())
        if looks[0] == looks[1]:
            raise SystemExit("The two states look the same; there is nothing to time.")
        return [self._timed(replace(kinds[turn % 2]), looks[turn % 2]) for turn in range(TIMES)]

    def _timed(self, snapshot: object, wanted: bytes) -> float:
        began = time.perf_counter()
        self._app.bridge.observe(m.Tick(), snapshot)
        while self.seen() != wanted:
            if time.perf_counter() > began + 10:
                raise SystemExit("A snapshot was not shown within 10 s.")
            time.sleep(0.001)
        took = time.perf_counter() - began
        time.sleep(0.13)  # out of phase with timers
        return took


def main() -> None:
    prepare()
    qt = QApplication(sys.argv[:1])
    app = App(qt, Tray(Now(), theme.LIGHT.panel), Language(qt), home=None)
    late = time.time() - shots.NOW
    app.history.points.extend(replace(each, at=each.at + late) for each in shots.history().points)
    app.open()
    found: list[float] = []

    def watch() -> None:
        head = app.window.now.pause.parentWidget()
        corner = head.mapToGlobal(head.rect().topLeft())
        watching = Watch(app, corner, (head.width(), head.height()))

        def run() -> None:
            try:
                found.extend(watching.run())
            finally:
                QMetaObject.invokeMethod(qt, "quit", Qt.ConnectionType.QueuedConnection)

        threading.Thread(target=run, daemon=True).start()

    app.bridge.observe(m.Tick(), shots.TRAINING)
    QTimer.singleShot(2000, app, watch)
    qt.exec()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
