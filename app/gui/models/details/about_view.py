"""The description of a model in words: its maker, strengths, license, languages, size and context."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QLocale, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.api.models import CatalogModel, FoundFile, HubModel, ShelfModel
from app.api.plans import LoadedModel
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.models.badges import good_at_words, languages_words, license_of, license_words, maker_of
from app.gui.models.model_item import ItemKind, ModelItem, count_words, parameters
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import ElidedLabel, label, paragraph, tooltip
from app.gui.widgets.layouts import column, row

translate = QCoreApplication.translate
MAX_LICENSE_CHARACTERS = 80  # maximum length of a license name, which comes from the file
WORDS_PER_TOKEN = 0.75  # of English text


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
        self.card = ModelCard()
        self.notes = paragraph("", "muted")
        self._page = button(self.tr("Model page"), self._open, "link")
        self._address = ""
        self._guide = QWidget()
        words = self.tr("This small built-in model is for learning the app. For other questions, use a larger one.")
        self.better = button(self.tr("Find a model that fits"), self.recommend.emit, "inline")
        better = row(self.better, None)
        self._guide.setLayout(column(paragraph(words), better, gap=0))
        box = column(self.name, self._facts, self._about, self.notes, self.card, gap=sizes.S)
        box.addLayout(row(self._page, None))
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
        self.card.show_item(item)
        self._address = item.remote.page if item.remote is not None else ""
        self._page.setVisible(bool(self._address))
        self._page.setToolTip(tooltip(self._address))

    def _about_words(self, item: ModelItem) -> str:
        facts = item.facts
        match facts:
            case ShelfModel():
                if facts.missing_facts is not None:
                    return said(facts.missing_facts)
                base = self.tr("This is a base model. It completes text and doesn't chat.")
                return base if item.is_base else ""
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
        if isinstance(facts, ShelfModel | FoundFile | CatalogModel) and facts.n_layers:
            parts.append(self.tr("{count} layers").format(count=facts.n_layers))
        if not item.splits:
            parts.append(self.tr("runs on one machine only"))
        if isinstance(facts, ShelfModel) and not facts.builtin:
            if facts.source not in (None, "Poolhouse"):
                parts.append(self.tr("from {app}").format(app=facts.source))
            if facts.shipped:
                parts.append(self.tr("came with Poolhouse"))
            elif not facts.in_catalog:
                parts.append(self.tr("not in the catalog"))
        return [part for part in parts if part]

    def _open(self) -> None:
        if self._address.startswith("https://"):
            QDesktopServices.openUrl(QUrl(self._address))


class ModelCard(QWidget):
    """The facts that help a user choose a model, one per line. Unknown facts are left out."""

    def __init__(self) -> None:
        super().__init__()
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(sizes.M)
        self._grid.setVerticalSpacing(sizes.XS)
        self._grid.setColumnStretch(1, 1)
        self._lines: list[tuple[QLabel, QLabel]] = []
        for place in range(len(card_lines(None))):
            name, words = label("", "muted"), paragraph("")
            self._grid.addWidget(name, place, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(words, place, 1)
            self._lines.append((name, words))
        self.setLayout(self._grid)

    def show_item(self, item: ModelItem) -> None:
        for (name, words), (title, text) in zip(self._lines, card_lines(item), strict=True):
            name.setText(title)
            words.setText(text)
            words.setAccessibleName(f"{title}: {text}")
            name.setVisible(bool(text))
            words.setVisible(bool(text))

    @property
    def text(self) -> str:
        """The card as text, one line for each fact."""
        return "\n".join(f"{name.text()}: {words.text()}" for name, words in self._lines if words.text())


def card_lines(item: ModelItem | None) -> list[tuple[str, str]]:
    """Return the name and text of each line of a model's card. A line without text is not shown."""
    return [
        (translate("Models", "Made by"), maker_of(item) if item else ""),
        (translate("Models", "Good at"), good_at_words(item) if item else ""),
        (translate("Models", "Languages"), languages_words(item) if item else ""),
        (translate("Models", "Size"), _size_words(item) if item else ""),
        (translate("Models", "Context"), _context_words(item) if item else ""),
        (translate("Models", "License"), _license_words(item) if item else ""),
    ]


def _size_words(item: ModelItem) -> str:
    facts = item.facts
    count = facts.n_parameters if isinstance(facts, ShelfModel) else None
    if isinstance(facts, CatalogModel | HubModel):
        count = facts.parameters
    size = formats.size(item.file_bytes) if item.file_bytes else ""
    words = ", ".join(part for part in (size, parameters(count)) if part)
    if isinstance(facts, CatalogModel) and facts.active_parameters:
        active = translate("Models", "of which {active} are used for each word")
        words += ", " + active.format(active=count_words(facts.active_parameters))
    return words


def _context_words(item: ModelItem) -> str:
    most = item.facts.context_length
    if not most:
        return ""
    words = translate("Models", "up to {tokens} tokens, about {words} English words")
    about = round(most * WORDS_PER_TOKEN, -2 if most < 100_000 else -3)
    return words.format(tokens=formats.number(most), words=formats.number(about))


def _license_words(item: ModelItem) -> str:
    if item.kind is ItemKind.OTHER_APP:
        return ""
    name = license_of(item)[:MAX_LICENSE_CHARACTERS]
    if not name:
        return translate("Models", "not stated")
    words = license_words(name)
    return f"{name}. {words}" if words else name


def _file_notes(item: ModelItem) -> list[str]:
    file, model = item.file(), item.shelf
    if item.kind is ItemKind.OFFER and file is not None and file.sha256 is None:
        return [
            translate("Models", "The file's checksum is not known yet. Poolhouse records it during the first download.")
        ]
    if model is not None and model.ranks:
        return [translate("Models", "This is a reranker. It scores texts for other programs and can't chat.")]
    return []


def _template_notes(loaded: LoadedModel | None) -> list[str]:
    """Return notes on features that the chat template of a loaded model lacks."""
    notes = []
    if loaded is not None and loaded.tools is False:
        notes.append(translate("Models", "The model's chat template does not support tool calls."))
    if loaded is not None and loaded.thinks is False:
        notes.append(translate("Models", "The model's chat template has no thinking mode."))
    return notes
