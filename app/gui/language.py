"""The language of the window: a person's choice, or the system's where we have it; English beneath it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

TRANSLATIONS = Path(__file__).resolve().parents[2] / "resources" / "gui" / "translations"
PLAIN = "en"  # the words in the source are English; the file holds its plurals


def translate(app: QCoreApplication, language: str) -> None:
    """Show everything in `language` (`de`), or in the system's for "". Before the first widget is made."""
    locale = QLocale(language) if language else QLocale()
    if language:
        QLocale.setDefault(locale)
    _install(app, QLocale(PLAIN), "poolhouse", TRANSLATIONS)
    if locale.language() is not QLocale.Language.English:
        own = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
        if _install(app, locale, "poolhouse", TRANSLATIONS):
            _install(app, locale, "qtbase", Path(own))  # the words on Qt's own buttons


def _install(app: QCoreApplication, locale: QLocale, name: str, folder: Path) -> bool:
    translator = QTranslator(app)
    return translator.load(locale, name, "_", str(folder)) and app.installTranslator(translator)
