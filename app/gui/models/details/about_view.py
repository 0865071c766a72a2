"""What a model is: its name, its facts in a line, who made it, under which licence."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication, QLocale, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import here
from app.gui.models.model_item import Item, Kind, parameters
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import Elided, paragraph, tooltip
from app.gui.widgets.layouts import column, row

Json = dict[str, Any]
translate = QCoreApplication.translate
SHOWN = 80  # characters of a licence as a file states it


def in_language(facts: Json, language: str) -> str:
    """What a model is good for, in the window's language where the catalogue has it, else in English."""
    return str((facts.get("about_in") or {}).get(language) or facts.get("about") or "")


def about_of(facts: Json) -> str:
    """What a model is good for, for whoever looks at the window."""
    return in_language(facts, QLocale().name()[:2])


class AboutView(QWidget):
    """`recommend` is asked to show a model that does more than the Guide."""

    recommend = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.name = Elided("", "title")
        self._facts, self._about = paragraph("", "muted"), paragraph("")
        self._licence = Elided("", "caption")
        self.notes = paragraph("", "muted")
        self._page = button(self.tr("Model page"), self._open, "link")
        self._address = ""
        self._guide = QWidget()
        words = self.tr(
            "This model is built in, small, and for learning the app. For real questions take a larger one."
        )
        self.better = button(self.tr("Look for one that fits"), self.recommend.emit, "inline")
        better = row(self.better, None)
        self._guide.setLayout(column(paragraph(words), better, gap=0))
        foot = row(self._licence, self._page, gap=sizes.S)
        foot.setStretch(0, 1)
        box = column(self.name, self._facts, self._about, self.notes, gap=sizes.XS)
        box.addLayout(foot)
        box.addWidget(self._guide)
        self.setLayout(box)

    def show_item(self, item: Item) -> None:
        """Another model."""
        self.name.say(item.title)
        self._facts.setText(" · ".join(self._parts(item)))
        about = about_of(item.facts)
        problem = here(str(item.facts.get("missing") or ""))
        if item.kind is Kind.OTHER_APP:
            words = self.tr("Belongs to {app}. It is used where it lies, and never moved or changed.")
            unusable = here(str(item.facts.get("reason") or ""))
            about = unusable or words.format(app=item.facts["app"])
        self._about.setText(problem or about)
        self._about.setVisible(bool(problem or about))
        self.tell_notes(item, None)
        self._guide.setVisible(item.is_guide)
        licence = str(item.facts.get("licence") or "")[:SHOWN]
        known = self.tr("Licence: {licence}").format(licence=licence)
        unknown = self.tr("Licence: not stated")
        self._licence.say(known if licence else unknown)
        self._licence.setVisible(item.kind is not Kind.OTHER_APP)
        self._address = str(item.facts.get("page") or "")
        self._page.setVisible(bool(self._address))
        self._page.setToolTip(tooltip(self._address))

    def tell_notes(self, item: Item, loaded: Json | None) -> None:
        """Show what a person should know of its file. loaded: how it stands, once it is loaded."""
        notes = [] if item.facts.get("missing") else [*_file_notes(item), *_template_notes(loaded)]
        self.notes.setText(" ".join(notes))
        self.notes.setVisible(bool(notes))

    def _parts(self, item: Item) -> list[str]:
        facts = item.facts
        found = [
            str(facts.get("maker") or ""),
            parameters(facts.get("parameters")),
            str(facts.get("quantisation") or ""),
            formats.size(facts["file_bytes"]) if facts.get("file_bytes") else "",
            formats.size(facts["size_bytes"]) if facts.get("size_bytes") else "",
        ]
        if facts.get("n_layers"):
            found.append(self.tr("{count} layers").format(count=int(facts["n_layers"])))
        if facts.get("splits") is False:
            found.append(self.tr("runs whole on one machine"))
        if item.is_here and not item.is_guide:
            found += self._origin(facts)
        return [part for part in found if part]

    def _origin(self, facts: Json) -> list[str]:
        brought = facts.get("from") not in (None, "Poolhouse")
        return [
            self.tr("from {app}").format(app=facts["from"]) if brought else "",
            "" if facts.get("in_catalogue") else self.tr("not in the catalogue"),
        ]

    def _open(self) -> None:
        if self._address.startswith("https://"):
            QDesktopServices.openUrl(QUrl(self._address))


def _file_notes(item: Item) -> list[str]:
    """Before it is fetched, or used."""
    facts, file = item.facts, item.file()
    if item.kind is Kind.OFFER and file is not None and file.get("sha256") is None:
        return [translate("Models", "The hash of its file is not known yet. The first download pins it.")]
    if item.is_here and facts.get("ranks"):
        return [translate("Models", "A reranker: it scores texts for programs and can't chat.")]
    if item.is_here and facts.get("writes", True) and facts.get("has_template") is False:
        return [translate("Models", "Its file has no chat template, so chats are written as ChatML.")]
    return []


def _template_notes(loaded: Json | None) -> list[str]:
    """Say what the chat template of a loaded model cannot do, as far as the node has read it."""
    told = loaded or {}
    tools = translate("Models", "Its chat template can't call tools.")
    thinking = translate("Models", "Its chat template has no thinking mode.")
    return [*([tools] if told.get("tools") is False else []), *([thinking] if told.get("thinks") is False else [])]
