"""The language of the window: a person's choice, or the system's where we have it; English beneath it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator

TRANSLATIONS = Path(__file__).resolve().parents[2] / "resources" / "gui" / "translations"
LANGUAGE = "look/language"  # in the preferences
PLAIN = "en"  # the words in the source are English; the file holds its plurals


class Language(QObject):
    """What is made after `speak` is in that language; it may be called again."""

    def __init__(self, app: QCoreApplication) -> None:
        super().__init__(app)
        self._app, self._system = app, QLocale()
        self._spoken: list[QTranslator] = []

    def speak(self, language: str) -> None:
        """From now on `language` (`de`), or the system's for ""."""
        before, self._spoken = self._spoken, []
        for one in before:
            self._app.removeTranslator(one)
            one.setParent(None)
        locale = QLocale(language) if language else self._system
        QLocale.setDefault(locale)
        self._install(QLocale(PLAIN), "poolhouse", TRANSLATIONS)
        if locale.language() is not QLocale.Language.English:
            own = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
            if self._install(locale, "poolhouse", TRANSLATIONS):
                self._install(locale, "qtbase", Path(own))  # the words on Qt's own buttons

    def _install(self, locale: QLocale, name: str, folder: Path) -> bool:
        translator = QTranslator(self)
        self._spoken.append(translator)
        return translator.load(locale, name, "_", str(folder)) and self._app.installTranslator(
            translator
        )


def translate(app: QCoreApplication, language: str) -> Language:
    """Show everything in `language`. Before the first widget is made."""
    made = Language(app)
    made.speak(language)
    return made
