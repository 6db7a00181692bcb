"""The language of the app: what is installed in Qt for it, and the tongue that the pages' words speak.

English is what stands in the source; every other language is a .qm file beside it. It must not know a page: who shows
words asks for a tongue, and asks again when the language changes.
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
    """Give it what the setting app.language says. The translators are its own, so it must be kept."""

    def __init__(self, app: QCoreApplication, system: QLocale | None = None) -> None:
        self._app = app
        self._system = system or QLocale.system()
        self._installed: list[QTranslator] = []
        self.code = ""

    def speak(self, wanted: str) -> Tongue:
        """Switch to a language, "system" for that of the desktop; the tongue that speaks it."""
        self.code = self._code(wanted)
        self._clear()
        locale = self._system if wanted == "system" else self._locale(self.code)
        QLocale.setDefault(locale)
        numbers = _numbers(locale)
        if self.code == ENGLISH:
            return Tongue(core=core_translator(ENGLISH, numbers), numbers=numbers)
        self._install(str(FOLDER), f"skep_{self.code}")
        # the words of Qt's own dialogs and menus
        self._install(QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath), f"qtbase_{self.code}")
        core = core_translator(self.code, numbers, QLocale(self.code).quoteString)
        return Tongue(QCoreApplication.translate, core, numbers)

    def _code(self, wanted: str) -> str:
        """The first language that the person prefers and there are words for; that of the formats may be another."""
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
        """The system's, where it is this language's; else as the language is written in this country."""
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
