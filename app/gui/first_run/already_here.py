"""Models that other programs of this computer hold already: offered before anything is downloaded."""

from __future__ import annotations

from collections.abc import Sequence

from app.gui import theme as sizes
from app.gui.first_run.offer import Offer
from app.gui.node_client import Json
from app.gui.parts.buttons import button
from app.gui.parts.layouts import card, column, row
from app.gui.parts.text import label, paragraph
from app.gui.services import Services

MOST_NAMES = 3


class AlreadyHere(Offer):
    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._has_looked = False
        self.about, self.names = paragraph(""), paragraph("", "caption")
        inner = card(
            label(self.tr("Already on this computer"), "section"), self.about, self.names,
            row(button(self.tr("Show them on the page Models"), self.wanted.emit), None),
            gap=sizes.S,
        )  # fmt: skip
        self.setLayout(column(inner))

    def look(self) -> None:
        """Ask once; it takes some seconds."""
        if not self._has_looked and self._call is None:
            self._call = self._client.get("/found", self._found, self._none)

    def _found(self, answer: Json) -> None:
        self._call, self._has_looked = None, True
        models = usable(answer["files"])
        if not models:
            return
        apps = ", ".join(dict.fromkeys(str(one["app"]) for one in models))
        names = [str(one["name"]) for one in models]
        self.names.setText(", ".join(names[:MOST_NAMES]) + ("…" if len(names) > MOST_NAMES else ""))
        text = self.tr(
            "%n model(s) of {apps} can be used in place, without a download.", "", len(models)
        )
        self.about.setText(text.format(apps=apps))
        self.show()


def usable(files: Sequence[Json]) -> list[Json]:
    """Those that can be taken, the largest first; what is on the shelf is offered there."""
    found = [one for one in files if one["usable"] and not one["on_shelf"]]
    return sorted(found, key=lambda one: -int(one["size_bytes"]))
