"""The window in another language, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QLocale, QTranslator
from PySide6.QtWidgets import QApplication

from app.gui.language import translate


@contextmanager
def speaking(app: QApplication, language: str) -> Iterator[None]:
    """What is made inside speaks `language`; afterwards it is as before."""
    with unchanged(app):
        translate(app, language)
        yield


@contextmanager
def unchanged(app: QApplication) -> Iterator[None]:
    """Whatever language is chosen inside, afterwards it is as before."""
    before, locale = set(app.findChildren(QTranslator)), QLocale()
    try:
        yield
    finally:
        for translator in set(app.findChildren(QTranslator)) - before:
            app.removeTranslator(translator)
            translator.setParent(None)
        QLocale.setDefault(locale)
