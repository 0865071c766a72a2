"""The language of the window. It is the user's choice, or else the system's language if translated, or else English."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator

TRANSLATIONS = Path(__file__).resolve().parents[3] / "resources" / "gui" / "translations"
LANGUAGE = "look/language"  # key in the preferences
PLAIN = "en"  # the source texts are English, so its file contains only plurals
OURS, QTS = "poolhouse", "qtbase"  # Qt has its own translations, for the labels of its buttons
# application property with the names of the installed translators; the last one takes precedence
SPOKEN = "poolhouse-spoken"


class Language(QObject):
    """The language in which new widgets are created."""

    def __init__(self, app: QCoreApplication) -> None:
        super().__init__(app)
        self._app, self._system = app, QLocale()
        self.chosen = ""

    def speak(self, language: str) -> None:
        """Switch to a language such as `de`. "" selects the system's language."""
        self.chosen = language
        locale = QLocale(language) if language else self._system
        codes = [language_tag.split("-")[0] for language_tag in locale.uiLanguages()]
        code = next((known_code for known_code in codes if known_code in _codes()), PLAIN)
        QLocale.setDefault(_speaking(code, locale))
        more = [] if code == PLAIN else [f"{OURS}_{code}", f"{QTS}_{code}"]
        install(self._app, [f"{OURS}_{PLAIN}", *more])


def translate(app: QCoreApplication, language: str) -> Language:
    """Set the initial language. Call this before the first widget is created."""
    made = Language(app)
    made.speak(language)
    return made


def is_english() -> bool:
    """Return whether the window is in English."""
    return QLocale().language() in (QLocale.Language.English, QLocale.Language.C)


def install(app: QCoreApplication, names: list[str]) -> list[str]:
    """Install these of our translators and remove all others. Return the names of those installed before."""
    known = translators(app)
    before: list[str] = app.property(SPOKEN) or []
    for name in before:
        app.removeTranslator(known[name])
    now = [name for name in names if name in known]
    for name in now:
        app.installTranslator(known[name])
    app.setProperty(SPOKEN, now)
    return before


def translators(app: QCoreApplication) -> dict[str, QTranslator]:
    """Return all our translators by name. Call this once before any Qt thread can translate text.

    On first use of a translator, PySide checks whether Python overrides `translate`, and waits for the GIL while
    holding Qt's lock on the translators. If Qt's HTTP thread did this while the main thread, holding the GIL,
    waited for that lock to install a translator, the window would deadlock. The first call here therefore triggers
    the check.
    """
    known = {
        translator.objectName(): translator for translator in app.findChildren(QTranslator) if translator.objectName()
    }
    if not known:
        for file in _files():
            made = QTranslator(app)
            made.setObjectName(file.stem)
            if made.load(str(file)):
                known[file.stem] = made
                app.installTranslator(made)
        QCoreApplication.translate("", app.objectName())  # no translator knows this text, so Qt asks all of them
        for made in known.values():
            app.removeTranslator(made)
    return known


def _speaking(code: str, locale: QLocale) -> QLocale:
    """Return a locale for this language, with the user's number format if Qt supports the combination."""
    words = QLocale(code).language()
    return locale if locale.language() == words else QLocale(words, locale.territory())


def _codes() -> list[str]:
    return sorted(file.stem.split("_")[1] for file in TRANSLATIONS.glob(f"{OURS}_*.qm"))


def _files() -> list[Path]:
    qts = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath))
    ours = [TRANSLATIONS / f"{OURS}_{code}.qm" for code in _codes()]
    return [*ours, *(qts / f"{QTS}_{code}.qm" for code in _codes() if code != PLAIN)]
