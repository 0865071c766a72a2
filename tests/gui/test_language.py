"""Which words the window shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, QTranslator
from PySide6.QtWidgets import QApplication

from app.gui.language import translate
from app.gui.settings.household import kept


@pytest.fixture
def as_it_was(qapp: QApplication) -> Iterator[QApplication]:
    """Nothing of it stays for other tests."""
    before, locale = set(qapp.findChildren(QTranslator)), QLocale()
    yield qapp
    for translator in set(qapp.findChildren(QTranslator)) - before:
        qapp.removeTranslator(translator)
        translator.setParent(None)
    QLocale.setDefault(locale)


def shown(context: str, words: str, n: int = -1) -> str:
    return QCoreApplication.translate(context, words, "", n)


@pytest.mark.parametrize("language", ["en", "C", "fr"])
def test_english_has_plurals_where_there_is_no_other_language(
    as_it_was: QApplication, language: str
) -> None:
    translate(as_it_was, language)
    assert shown("Sidebar", "Pool") == "Pool"
    words = {shown("Answer", "%n token(s)", n) for n in (1, 2)}
    assert words == {"1 token", "2 tokens"}


def test_german(as_it_was: QApplication) -> None:
    translate(as_it_was, "de")
    assert kept("in the system keyring") == "Im Schlüsselbund des Systems"
    assert kept("in a file only you can read") == "In einer Datei, die nur Sie lesen können"
    assert shown("Sidebar", "Settings") == "Einstellungen"
    assert QLocale().language() is QLocale.Language.German
