"""The description of a model, with its name, key facts, maker and license."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QLocale, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.api.models import CatalogModel, FoundFile, ShelfModel
from app.api.plans import LoadedModel
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.models.model_item import ItemKind, ModelItem, parameters
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import ElidedLabel, paragraph, tooltip
from app.gui.widgets.layouts import column, row

translate = QCoreApplication.translate
MAX_LICENSE_CHARACTERS = 80  # maximum length of a license name, which comes from the file


def about_of(model: CatalogModel) -> str:
    """Return the description of a catalog model, in the window's language if available."""
    return model.about_in.get(QLocale().name()[:2]) or model.about


class AboutView(QWidget):
    """The description of the selected model. `recommend` is emitted to request a more capable model than the Guide."""

    recommend = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.name = ElidedLabel("", "title")
        self._facts, self._about = paragraph("", "muted"), paragraph("")
        self._license = ElidedLabel("", "caption")
        self.notes = paragraph("", "muted")
        self._page = button(self.tr("Model page"), self._open, "link")
        self._address = ""
        self._guide = QWidget()
        words = self.tr("This small built-in model is for learning the app. For other questions, use a larger one.")
        self.better = button(self.tr("Find a model that fits"), self.recommend.emit, "inline")
        better = row(self.better, None)
        self._guide.setLayout(column(paragraph(words), better, gap=0))
        foot = row(self._license, self._page, gap=sizes.S)
        foot.setStretch(0, 1)
        box = column(self.name, self._facts, self._about, self.notes, gap=sizes.XS)
        box.addLayout(foot)
        box.addWidget(self._guide)
        self.setLayout(box)

    def show_item(self, item: ModelItem) -> None:
        """Show the description of a model."""
        self.name.say(item.title)
        self._facts.setText(" · ".join(self._parts(item)))
        self._about.setText(self._about_words(item))
        self._about.setVisible(bool(self._about.text()))
        self.show_notes(item, None)
        self._guide.setVisible(item.is_guide)
        license_name = "" if isinstance(item.facts, FoundFile) else (item.facts.license or "")[:MAX_LICENSE_CHARACTERS]
        known = self.tr("License: {license}").format(license=license_name)
        self._license.say(known if license_name else self.tr("License: not stated"))
        self._license.setVisible(item.kind is not ItemKind.OTHER_APP)
        self._address = item.remote.page if item.remote is not None else ""
        self._page.setVisible(bool(self._address))
        self._page.setToolTip(tooltip(self._address))

    def _about_words(self, item: ModelItem) -> str:
        facts = item.facts
        match facts:
            case ShelfModel():
                return said(facts.missing_facts) if facts.missing_facts is not None else ""
            case FoundFile():
                words = self.tr("This file belongs to {app}. Poolhouse uses it in place and never moves or changes it.")
                return said(facts.reason_facts) if facts.reason_facts is not None else words.format(app=facts.app)
            case CatalogModel():
                return about_of(facts)
        return ""

    def show_notes(self, item: ModelItem, loaded: LoadedModel | None) -> None:
        """Show notes about the model's file and, if the model is loaded (`loaded`), about its chat template."""
        notes = [] if item.is_missing else [*_file_notes(item), *_template_notes(loaded)]
        self.notes.setText(" ".join(notes))
        self.notes.setVisible(bool(notes))

    def _parts(self, item: ModelItem) -> list[str]:
        facts = item.facts
        parts = [item.quantization]
        if item.remote is not None:
            parts = [item.remote.maker, parameters(item.remote.parameters)]
        elif item.file_bytes:
            parts.append(formats.size(item.file_bytes))
        if isinstance(facts, ShelfModel | FoundFile | CatalogModel) and facts.n_layers:
            parts.append(self.tr("{count} layers").format(count=facts.n_layers))
        if not item.splits:
            parts.append(self.tr("runs on one machine only"))
        if isinstance(facts, ShelfModel) and not facts.builtin:
            if facts.source not in (None, "Poolhouse"):
                parts.append(self.tr("from {app}").format(app=facts.source))
            if not facts.in_catalog:
                parts.append(self.tr("not in the catalog"))
        return [part for part in parts if part]

    def _open(self) -> None:
        if self._address.startswith("https://"):
            QDesktopServices.openUrl(QUrl(self._address))


def _file_notes(item: ModelItem) -> list[str]:
    file, model = item.file(), item.shelf
    if item.kind is ItemKind.OFFER and file is not None and file.sha256 is None:
        return [
            translate("Models", "The file's checksum is not known yet. Poolhouse records it during the first download.")
        ]
    if model is not None and model.ranks:
        return [translate("Models", "This is a reranker. It scores texts for other programs and can't chat.")]
    if model is not None and model.writes and not model.has_template:
        return [translate("Models", "The model's file has no chat template, so chats use the ChatML format.")]
    return []


def _template_notes(loaded: LoadedModel | None) -> list[str]:
    """Return notes on features that the chat template of a loaded model lacks."""
    notes = []
    if loaded is not None and loaded.tools is False:
        notes.append(translate("Models", "The model's chat template does not support tool calls."))
    if loaded is not None and loaded.thinks is False:
        notes.append(translate("Models", "The model's chat template has no thinking mode."))
    return notes
