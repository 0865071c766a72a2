"""The language of the window: a person's choice, or the system's where we have it; English beneath it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator

TRANSLATIONS = Path(__file__).resolve().parents[3] / "resources" / "gui" / "translations"
LANGUAGE = "look/language"  # in the preferences
PLAIN = "en"  # the words in the source are English; the file holds its plurals
OURS, QTS = "poolhouse", "qtbase"  # the words on Qt's own buttons are Qt's
SPOKEN = "poolhouse-spoken"  # a property of the application: names of its translators, the last one is asked first


class Language(QObject):
    """What is made after `speak` is in that language; it may be called again."""

    def __init__(self, app: QCoreApplication) -> None:
        super().__init__(app)
        self._app, self._system = app, QLocale()
        self.chosen = ""

    def speak(self, language: str) -> None:
        """From now on `language` (`de`), or the system's for ""."""
        self.chosen = language
        locale = QLocale(language) if language else self._system
        codes = [one.split("-")[0] for one in locale.uiLanguages()]
        code = next((one for one in codes if one in _codes()), PLAIN)
        QLocale.setDefault(_speaking(code, locale))
        more = [] if code == PLAIN else [f"{OURS}_{code}", f"{QTS}_{code}"]
        install(self._app, [f"{OURS}_{PLAIN}", *more])


def translate(app: QCoreApplication, language: str) -> Language:
    """Show everything in `language`. Before the first widget is made."""
    made = Language(app)
    made.speak(language)
    return made


def is_english() -> bool:
    """Whether the window speaks it."""
    return QLocale().language() in (QLocale.Language.English, QLocale.Language.C)


def install(app: QCoreApplication, names: list[str]) -> list[str]:
    """These translators and no others of ours; those that were there before."""
    known = translators(app)
    before: list[str] = app.property(SPOKEN) or []
    for one in before:
        app.removeTranslator(known[one])
    now = [one for one in names if one in known]
    for one in now:
        app.installTranslator(known[one])
    app.setProperty(SPOKEN, now)
    return before


def translators(app: QCoreApplication) -> dict[str, QTranslator]:
    """By name, all that may ever be installed. Call it first before a thread of Qt's may have something to say.

    PySide asks each translator once whether Python has a `translate` for it, and for that waits for the interpreter,
    inside Qt's lock on translators: where that is Qt's HTTP thread, with the word for an error, and we install the next
    one, which waits for that lock and holds the interpreter, the window stands still for ever. So they are asked here.
    """
    known = {one.objectName(): one for one in app.findChildren(QTranslator) if one.objectName()}
    if not known:
        for file in _files():
            made = QTranslator(app)
            made.setObjectName(file.stem)
            if made.load(str(file)):
                known[file.stem] = made
                app.installTranslator(made)
        QCoreApplication.translate("", app.objectName())  # which none of them has: so all are asked
        for made in known.values():
            app.removeTranslator(made)
    return known


def _speaking(code: str, locale: QLocale) -> QLocale:
    """Dates and sentences in the language of the words, numbers as the country has them where Qt knows that."""
    words = QLocale(code).language()
    return locale if locale.language() == words else QLocale(words, locale.territory())


def _codes() -> list[str]:
    return sorted(file.stem.split("_")[1] for file in TRANSLATIONS.glob(f"{OURS}_*.qm"))


def _files() -> list[Path]:
    qts = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath))
    ours = [TRANSLATIONS / f"{OURS}_{code}.qm" for code in _codes()]
    return [*ours, *(qts / f"{QTS}_{code}.qm" for code in _codes() if code != PLAIN)]
