"""Last step: the built-in model answers at once."""

from __future__ import annotations

from app.gui.app import page_names
from app.gui.app.app_context import Services
from app.gui.look import theme as sizes
from app.gui.look.sentences import GUIDE
from app.gui.welcome.already_here import AlreadyHere
from app.gui.welcome.other_models import OtherModels
from app.gui.welcome.recommendation import Recommendation
from app.gui.welcome.role_step import BOTH, KEY, LEND
from app.gui.welcome.step import Step
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card


class ReadyStep(Step):
    """Says what is there now and what comes next."""

    def __init__(self, services: Services, others: OtherModels) -> None:
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
        self._others = others
        self.here, self.recommended = AlreadyHere(others, is_last=True), Recommendation(services)
        for one in (self.here, self.recommended):
            one.wanted.connect(lambda: self.leave.emit(page_names.MODELS))
            self.content.addWidget(one)

    def entered(self) -> None:
        self._others.look()
        self.recommended.look()

    def cancel(self) -> None:
        self.recommended.cancel()
        super().cancel()

    @property
    def next_words(self) -> str:
        return self.tr("Ask the Guide") if self._asks else self.tr("Finish")

    @property
    def leads_to(self) -> str:
        return f"{page_names.CHAT}/{GUIDE}" if self._asks else ""

    @property
    def _asks(self) -> bool:
        """Who only lends does not, and a guest is answered by others."""
        lends = self.services.preferences.text(KEY, BOTH) == LEND
        return not lends and self.services.pool.hosts is None
