"""The console script `skep-gui`. The tray is on screen before anything else is loaded."""

from __future__ import annotations

import argparse
import signal
import sys

import skep_gui.plain_imports  # noqa: F401 - before anything of Qt's

# isort: split
from PySide6.QtWidgets import QApplication

from skep_gui import theme
from skep_gui.kept_singletons import keep_singletons
from skep_gui.language import Language
from skep_gui.present.now import Now
from skep_gui.present.pauses import Pauses
from skep_gui.tray import Tray


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
    keep_singletons()
    qt = QApplication(sys.argv[:1])
    language = Language(qt)
    tongue = language.speak("system")
    tray = Tray(Now(tongue), Pauses(tongue), theme.chosen("system").panel)
    tray.show()
    qt.processEvents()
    from skep_gui.app import App, Options  # noqa: PLC0415 - the tray need not wait for it

    app = App(qt, Options(home=chosen.home, hidden=chosen.hidden, link=chosen.link), tray, language)
    # Python sees a signal only when it runs; the app's beat lets it
    signal.signal(signal.SIGINT, lambda *_: app.quit())
    signal.signal(signal.SIGTERM, lambda *_: app.quit())
    app.start()
    return qt.exec()


if __name__ == "__main__":
    sys.exit(run())
