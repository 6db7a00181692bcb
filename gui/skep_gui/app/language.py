"""The language of the app: installs Qt's translators for it, and returns the `Tongue` that the pages use.

The source texts are English; every other language is a .qm file. This module knows no page: pages ask for a tongue, and
ask again when the language changes.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from PySide6.QtCore import QCoreApplication, QDate, QLibraryInfo, QLocale, QTime, QTranslator

from skep.language.translator import ENGLISH, LANGUAGES
from skep.language.units import Numbers
from skep_gui.words.speaker import Tongue, core_translator, english

FOLDER: Final = Path(__file__).parent.parent / "translations"


class Language:
    """Installs and owns the translators for the setting app.language; keep a reference to it."""

    def __init__(self, app: QCoreApplication, system: QLocale | None = None) -> None:
        self._app = app
        self._system = system or QLocale.system()
        self._installed: list[QTranslator] = []
        self.code = ""

    def speak(self, wanted: str) -> Tongue:
        """Switch to a language, "system" for the desktop's, and return its tongue."""
        self.code = self._code(wanted)
        self._clear()
        locale = self._system if wanted == "system" else self._locale(self.code)
        QLocale.setDefault(locale)
        numbers = _numbers(locale)
        if self.code == ENGLISH:
            return Tongue(core=core_translator(ENGLISH, numbers), numbers=numbers)
        self._install(str(FOLDER), f"skep_{self.code}")
        # Qt's own dialogs and menus
        self._install(QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath), f"qtbase_{self.code}")
        core = core_translator(self.code, numbers, QLocale(self.code).quoteString)
        return Tongue(QCoreApplication.translate, core, numbers)

    def _code(self, wanted: str) -> str:
        """The first of the user's preferred languages that has a translation; the language of the formats may
        differ.
        """
        preferred = [wanted, *(each.partition("-")[0] for each in self._system.uiLanguages())]
        return next((each for each in preferred if each in LANGUAGES), ENGLISH)

    def _clear(self) -> None:
        for each in self._installed:
            self._app.removeTranslator(each)
        self._installed = []

    def _install(self, folder: str, name: str) -> None:
        translator = QTranslator()
        if translator.load(name, folder):
            self._app.installTranslator(translator)
            self._installed.append(translator)

    def _locale(self, code: str) -> QLocale:
        """The system's locale if it has this language, otherwise this language in the system's country."""
        wanted = QLocale(code).language()
        if self._system.language() == wanted:
            return self._system
        if code == ENGLISH and self._system.language() is QLocale.Language.C:
            return QLocale.c()
        return QLocale(wanted, self._system.territory())


def _numbers(locale: QLocale) -> Numbers:
    if locale.language() is QLocale.Language.C:
        return english.numbers

    def time(moment: datetime) -> str:
        return locale.toString(QTime(moment.hour, moment.minute), QLocale.FormatType.ShortFormat)

    def date(moment: datetime) -> str:
        return locale.toString(QDate(moment.year, moment.month, moment.day), QLocale.FormatType.ShortFormat)

    return Numbers(locale.decimalPoint(), time, date)
