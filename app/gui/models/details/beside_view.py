"""Whether the chosen model fits beside what is loaded, and how fast it would be there: above "Load as well"."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.core.errors import AppError
from app.gui.look import formats
from app.gui.models import verdicts
from app.gui.models.verdicts import Judgement
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import column

Json = dict[str, Any]


class BesideView(QWidget):
    """Hidden by its owner where there is nothing to say. judgement: None where that is not known."""

    def __init__(self) -> None:
        super().__init__()
        self.judgement: Judgement | None = None
        self.words = paragraph("", "muted")
        self.setLayout(column(self.words))
        self.hide()

    def show_found(self, found: Json | AppError | None) -> None:
        """A plan that leaves the others their memory, or why there is none."""
        told = verdicts.of_error(found) if isinstance(found, AppError) else None
        self.judgement = verdicts.of_plan(found) if isinstance(found, dict) else told
        if self.judgement is not None:
            words = QCoreApplication.translate("Models", "Load as well: {verdict}")
            self.words.setText(words.format(verdict=_verdict(self.judgement)))


def _verdict(judgement: Judgement) -> str:
    """`Fits · 1.2 GiB to spare · 12.3 tok/s`"""
    speed = formats.speed(judgement.tok_s) if judgement.tok_s and judgement.fits else ""
    told = verdicts.title(judgement), verdicts.beside(judgement), speed
    return " · ".join(one for one in told if one)
