"""German for tests of the app: its translator, and the files with the pages' own strings."""

import subprocess
import sysconfig
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLocale

from skep_gui.app.language import FOLDER, Language

PAGES = FOLDER.parent
TS = FOLDER / "skep_de.ts"
ENGLISH_DESKTOP = QLocale(QLocale.Language.English, QLocale.Country.UnitedStates)


def linguist(tool, *arguments):
    """Run lupdate or lrelease with the arguments that `make translations` uses."""
    subprocess.run(
        [Path(sysconfig.get_path("scripts")) / f"pyside6-{tool}", "-silent", *map(str, arguments)], check=True
    )


class German:
    """Inside the context Qt uses German; pages are made with `tongue`."""

    def __enter__(self):
        before = QLocale()
        self._language, self._before = Language(QCoreApplication.instance(), ENGLISH_DESKTOP), before
        self.tongue = self._language.speak("de")
        return self.tongue

    def __exit__(self, *_):
        self._language.speak("en")
        QLocale.setDefault(self._before)
