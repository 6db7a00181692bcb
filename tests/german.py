"""The app's German for tests: its tongue, and the files of the pages' own strings."""

import subprocess
import sysconfig
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLocale

from skep_gui.app.language import FOLDER, Language

PAGES = FOLDER.parent
TS = FOLDER / "skep_de.ts"
ENGLISH_DESKTOP = QLocale(QLocale.Language.English, QLocale.Country.UnitedStates)


def linguist(tool, *arguments):
    """Run lupdate or lrelease with what `make translations` gives it."""
    subprocess.run(
        [Path(sysconfig.get_path("scripts")) / f"pyside6-{tool}", "-silent", *map(str, arguments)], check=True
    )


class German:
    """While it is entered, Qt speaks German; `tongue` is what pages are made with."""

    def __enter__(self):
        before = QLocale()
        self._language, self._before = Language(QCoreApplication.instance(), ENGLISH_DESKTOP), before
        self.tongue = self._language.speak("de")
        return self.tongue

    def __exit__(self, *_):
        self._language.speak("en")
        QLocale.setDefault(self._before)
