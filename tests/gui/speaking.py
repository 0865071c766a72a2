"""The window in another language, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication

from app.gui.look.language import SPOKEN, install, translate


@contextmanager
def speaking(app: QApplication, language: str) -> Iterator[None]:
    """Create the window's parts in `language` during the block, and restore the previous one."""
    with unchanged(app):
        translate(app, language)
        yield


@contextmanager
def unchanged(app: QApplication) -> Iterator[None]:
    """Whatever language is chosen inside, afterwards it is as before."""
    before, locale = app.property(SPOKEN) or [], QLocale()
    try:
        yield
    finally:
        install(app, before)
        QLocale.setDefault(locale)
