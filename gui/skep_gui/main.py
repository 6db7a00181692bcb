"""The console script `skep-gui`. The tray is shown before anything else is loaded."""

from __future__ import annotations

import argparse
import signal
import sys

from PySide6.QtWidgets import QApplication

from skep_gui.app import interpreter
from skep_gui.app.garbage import GarbageCollector
from skep_gui.app.language import Language
from skep_gui.app.tray import Tray
from skep_gui.widgets import accessible, theme
from skep_gui.words.now import Now


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="skep-gui", description="skep in the tray and a window.")
    made.add_argument("--home", metavar="DIR", help="skep's folder (SKEP_HOME, or the system's place for data)")
    made.add_argument("--hidden", action="store_true", help="stay in the tray, without opening the window")
    made.add_argument(
        "link", metavar="LINK", nargs="?", default="", help="a skep:// link, a .skep file or a manifest to look at"
    )
    return made


def run() -> int:
    """Run the app of this process; returns the exit code."""
    chosen = parser().parse_args()
    interpreter.prepare()
    qt = QApplication(sys.argv[:1])
    accessible.guard()
    GarbageCollector(qt)
    language = Language(qt)
    tongue = language.speak("system")
    tray = Tray(Now(tongue), theme.chosen("system").panel)
    tray.show()
    qt.processEvents()
    from skep_gui.app.app import App  # noqa: PLC0415 - the tray need not wait for it

    app = App(qt, tray, language, home=chosen.home, hidden=chosen.hidden, link=chosen.link)
    app.ended.connect(lambda: qt.exit(0))
    # Python handles a signal only while it runs bytecode; the app's timer makes that happen
    signal.signal(signal.SIGINT, lambda *_: app.quit())
    signal.signal(signal.SIGTERM, lambda *_: app.quit())
    app.start()
    return qt.exec()


if __name__ == "__main__":
    sys.exit(run())
