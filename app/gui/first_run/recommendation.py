"""One model of the catalogue that fits this computer today: offered, never fetched unasked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.gui import formats
from app.gui import theme as sizes
from app.gui.first_run.offer import Offer
from app.gui.node_client import Json
from app.gui.parts.buttons import button
from app.gui.parts.layouts import card, column, row
from app.gui.parts.text import label, paragraph
from app.gui.services import Services
from app.gui.shelf.about_view import about_of
from app.gui.shelf.item import Item, offer_item
from app.gui.shelf.judging import HANDY_BYTES, MOST_SKETCHES
from app.gui.shelf.sketches import sketch


class Recommendation(Offer):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._items: list[Item] = []
        self.title, self.about = label("", "section"), paragraph("")
        self.fetch = paragraph("", "caption")
        show = button(self.tr("Show it on the page Models"), self.wanted.emit)
        inner = card(self.title, self.about, self.fetch, row(show, None), gap=sizes.S)
        self.setLayout(column(inner))

    def look(self) -> None:
        """Ask once."""
        if not self._items and self._call is None:
            self._call = self._client.get("/catalogue", self._listed, self._none)

    def _listed(self, answer: Json) -> None:
        self._items = [offer_item(offer) for offer in answer["models"]]
        asked = [one for item in self._items if (one := sketch(item, item.file(), item.key))]
        body = {"sketches": asked[:MOST_SKETCHES]}
        self._call = self._client.post("/verdicts", body, self._judged, self._none)

    def _judged(self, answer: Json) -> None:
        self._call = None
        item = best(self._items, answer["verdicts"])
        if item is None:
            return
        words = self.tr("Fits today: {name}")
        self.title.setText(words.format(name=item.name))
        self.about.setText(about_of(item.facts))
        self.fetch.setText(
            self.tr("{size} from huggingface.co, when you say so.").format(
                size=formats.size(_size(item))
            )
        )
        self.show()


def best(items: Sequence[Item], verdicts: Mapping[str, Json]) -> Item | None:
    """The largest that fits with room to spare, can chat, and is not too slow to be the first one."""
    fitting = [
        item
        for item in items
        if verdicts.get(item.key, {}).get("word") == "fits"
        and "chat" in (item.facts.get("good_at") or [])
        and not item.facts.get("gated")
        and 0 < _size(item) <= HANDY_BYTES
    ]
    return max(fitting, key=_size, default=None)


def _size(item: Item) -> int:
    return int((item.file() or {}).get("size_bytes") or 0)
