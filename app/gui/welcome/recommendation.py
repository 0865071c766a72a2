"""The model that suits this household today: offered, never fetched unasked."""

from __future__ import annotations

from app.gui.api.node_client import Json
from app.gui.app.app_context import Services
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.models.details.about_view import about_of
from app.gui.models.starter_card import why
from app.gui.welcome.first_offer import Offer
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, column, row


class Recommendation(Offer):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._starter: Json | None = None
        self.title, self.about = label("", "section"), paragraph("")
        self.fetch = paragraph("", "caption")
        show = button(self.tr("Show it on the page Models"), self.wanted.emit)
        inner = card(self.title, self.about, self.fetch, row(show, None), gap=sizes.S)
        self.setLayout(column(inner))

    def look(self) -> None:
        """Ask once."""
        if self._starter is None and self._call is None:
            self._call = self._client.get("/starter", self._named, self._none)

    def _named(self, answer: Json) -> None:
        self._call = None
        self._starter = answer["starter"]
        if self._starter is not None:
            self._call = self._client.get("/catalogue", self._listed, self._none)

    def _listed(self, answer: Json) -> None:
        self._call, starter = None, self._starter
        assert starter is not None
        facts = next(one for one in answer["models"] if one["id"] == starter["id"])
        self.title.setText(self.tr("Recommended: {name}").format(name=starter["name"]))
        self.about.setText(f"{about_of(facts)} {why(starter)}")
        size = formats.size(starter["size_bytes"])
        self.fetch.setText(self.tr("{size} download from huggingface.co.").format(size=size))
        self.show()
