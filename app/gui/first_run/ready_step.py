"""Last step: the built-in model answers at once."""

from __future__ import annotations

from app.gui import pages
from app.gui import theme as sizes
from app.gui.first_run.already_here import AlreadyHere
from app.gui.first_run.recommendation import Recommendation
from app.gui.first_run.role_step import BOTH, KEY, LEND
from app.gui.first_run.step import Step
from app.gui.parts.layouts import card
from app.gui.parts.text import label, paragraph
from app.gui.services import Services


class ReadyStep(Step):
    """Says what is there now and what comes next."""

    def __init__(self, services: Services) -> None:
        super().__init__(
            services,
            self.tr("Ready"),
            self.tr("The first answer needs no download and no network."),
        )
        about = self.tr(
            "A small model for learning the app is built in. Ask it how Poolhouse works; "
            "for everything else, load a larger one on the page Models."
        )
        guide = card(label(self.tr("The Guide"), "section"), paragraph(about), gap=sizes.S)
        self.content.addWidget(guide)
        self.here, self.recommended = AlreadyHere(services), Recommendation(services)
        for one in (self.here, self.recommended):
            one.wanted.connect(lambda: self.leave.emit(pages.MODELS))
            self.content.addWidget(one)

    def entered(self) -> None:
        self.here.look()
        self.recommended.look()

    def cancel(self) -> None:
        self.here.cancel()
        self.recommended.cancel()
        super().cancel()

    @property
    def next_words(self) -> str:
        lends = self.services.preferences.text(KEY, BOTH) == LEND
        return self.tr("Finish") if lends else self.tr("Ask the Guide")
