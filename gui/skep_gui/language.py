"""The language of the app: what is installed in Qt for it, and the tongue that the pages' words speak.

English is what stands in the source; every other language is a .qm file beside it. It must not know a page: who shows
words asks for a tongue, and asks again when the language changes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from PySide6.QtCore import QCoreApplication, QDate, QLibraryInfo, QLocale, QTime, QTranslator

from skep_gui.present.numbers import Numbers
from skep_gui.present.speaker import LANGUAGES, Tongue, english

FOLDER: Final = Path(__file__).parent / "translations"
ENGLISH: Final = "en"


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
            return Tongue(numbers=numbers)
        self._install(str(FOLDER), f"skep_{self.code}")
        # the words of Qt's own dialogs and menus
        self._install(QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath), f"qtbase_{self.code}")
        return _tongue(numbers, QLocale(self.code).quoteString)

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


def _tongue(numbers: Numbers, quoted: Callable[[str], str]) -> Tongue:
    hearing: list[Callable[[str], str]] = []

    def translate(context: str, text: str) -> str:
        return QCoreApplication.translate(context, text)

    def said(text: str) -> str:
        if not hearing:
            hearing.append(_hearing(numbers))
        return hearing[0](text)

    return Tongue(translate, said, numbers, quoted)


def _hearing(numbers: Numbers) -> Callable[[str], str]:
    # the tray is on screen before the core says anything, and must not wait for this
    from skep_gui.present.core_sentences import SENTENCES  # noqa: PLC0415
    from skep_gui.present.hearing import CORE, Hearing  # noqa: PLC0415

    return Hearing(SENTENCES, lambda text: QCoreApplication.translate(CORE, text), numbers)


def _numbers(locale: QLocale) -> Numbers:
    if locale.language() is QLocale.Language.C:
        return english.numbers

    def time(moment: datetime) -> str:
        return locale.toString(QTime(moment.hour, moment.minute), QLocale.FormatType.ShortFormat)

    def date(moment: datetime) -> str:
        return locale.toString(QDate(moment.year, moment.month, moment.day), QLocale.FormatType.ShortFormat)

    return Numbers(locale.decimalPoint(), time, date)
