"""The app's German for tests: its tongue, and the tool that keeps it up to date."""

import importlib.util
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLocale

from skep_gui.language import Language

ROOT = Path(__file__).resolve().parent.parent
ENGLISH_DESKTOP = QLocale(QLocale.Language.English, QLocale.Country.UnitedStates)


def tool():
    """assets/translations.py as a module."""
    spec = importlib.util.spec_from_file_location("translations_tool", ROOT / "assets" / "translations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
