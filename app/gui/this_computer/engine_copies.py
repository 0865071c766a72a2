"""The dialogs and the progress row for copying an engine pack from another machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QCoreApplication, QDate, QLocale, Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app.api.engine_packs import EngineCopy, EngineOffer, EngineOffers
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import paragraph
from app.gui.widgets.layouts import clear_layout, column, layout_widget, line
from app.gui.widgets.progress import Progress

GROUP_CHARACTERS = 8  # of a checksum, so that people can compare it and lines can break


class OffersDialog(Sheet):
    """A dialog that lists the engine packs offered by other machines. `chosen` is called with the pack to copy."""

    chosen = Signal(object)

    def __init__(self, services: AppContext, parent: QWidget) -> None:
        sentence = _tr("Other machines in your household can give this computer their engine packs.")
        super().__init__(services, _tr("Copy an engine pack"), sentence, parent)
        self.copies: list[QPushButton] = []
        self._rows = column(paragraph(_tr("Asking the other machines…"), "muted"), gap=sizes.M)
        self.add(layout_widget(self._rows))
        self.offer(_tr("Cancel"))
        self.came_back()

    def came_back(self) -> None:
        """Ask the other machines again after the node has been unavailable."""
        self.keep(self.services.client.get("/engines/offers", self._show, self.fail, answer=EngineOffers))

    def _show(self, there: EngineOffers) -> None:
        clear_layout(self._rows)
        self.copies.clear()
        if not there.offers:
            none = _tr(
                "No connected machine offers a pack for this computer. A machine offers its packs once you allow "
                "copies there: Settings > Models."
            )
            self._rows.addWidget(paragraph(none, "muted"))
        for number, offer in enumerate(there.offers):
            if number:
                self._rows.addWidget(line())
            self._rows.addWidget(self._row(offer))
        self.fit()
        if self.copies:
            self.copies[0].setFocus()

    def _row(self, offer: EngineOffer) -> QWidget:
        title = _tr("{name} from {machine}, {size}")
        words = title.format(name=offer.label, machine=offer.name, size=formats.size(offer.size_bytes))
        parts: list[QWidget] = [paragraph(words), paragraph(offer_details(offer), "caption")]
        if offer.problem_facts is not None:
            parts.append(paragraph(said(offer.problem_facts), "error"))
        elif not offer.installed:
            copy = button(_tr("Copy…"), partial(self._choose, offer))
            copy.setAccessibleName(_tr("Copy {pack} from {machine}").format(pack=offer.pack, machine=offer.name))
            self.copies.append(copy)
            parts.append(layout_widget(Flow(copy)))
        row = QWidget()
        row.setLayout(column(*parts, gap=sizes.XS))
        return row

    def _choose(self, offer: EngineOffer) -> None:
        self.accept()
        self.chosen.emit(offer)


class ConfirmCopyDialog(Sheet):
    """A dialog that asks for consent to run another machine's pack, which is code.

    `agree` is called with the offer.
    """

    def __init__(
        self, services: AppContext, offer: EngineOffer, agree: Callable[[EngineOffer], object], parent: QWidget
    ) -> None:
        title = _tr("Copy {name} from {machine}").format(name=offer.label, machine=offer.name)
        sentence = _tr(
            "An engine pack is a program that runs on this computer with your permissions. This "
            "one comes from {machine}, and Poolhouse can't check what it does. Copy it only if you "
            "trust everyone who uses {machine}."
        )
        super().__init__(services, title, sentence.format(machine=offer.name), parent)
        self._offer, self._agree = offer, agree
        self.add(paragraph(offer_details(offer), "muted"))
        if offer.copied_from:
            came = _tr("{machine} copied it from {other}.").format(machine=offer.name, other=offer.copied_from)
            self.add(paragraph(came, "muted"))
        self.add(paragraph(checksum_line(offer.sha256), "caption"))
        self.act = button(_tr("Copy and use"), self._agreed, "primary")
        self.offer(_tr("Cancel"), self.act)

    def _agreed(self) -> None:
        self.accept()
        self._agree(self._offer)


class CopyRow(QWidget):
    """A row with the progress of a copy and a Cancel button."""

    def __init__(self, cancel: Callable[[], object]) -> None:
        super().__init__()
        self.words = paragraph()
        self.bar = Progress(_tr("Copy of an engine pack"))
        self.cancel = button(_tr("Cancel"), cancel)
        self.cancel.setAccessibleName(_tr("Cancel the copy of the engine pack"))
        self.setLayout(column(self.words, self.bar, layout_widget(Flow(self.cancel)), gap=sizes.XS))
        self.hide()

    def show_copy(self, copy: EngineCopy | None) -> None:
        """Show the progress of a copy. Hide the row when the copy has ended."""
        if copy is None or copy.is_over:
            self.hide()
            return
        self.words.setText(copy_progress(copy))
        is_known = copy.state == "copying" and copy.total_bytes > 0
        self.bar.tell(copy.done_bytes / copy.total_bytes if is_known else None)
        self.show()


def copy_progress(copy: EngineCopy) -> str:
    """Describe the current step of a copy."""
    if copy.held_up_facts is not None:
        return said(copy.held_up_facts)
    if copy.state == "testing":
        return _tr("Testing the pack…")
    if not copy.total_bytes:
        return _tr("Asking {machine} for the pack…").format(machine=copy.machine)
    words = _tr("Copying {name} from {machine}: {done} of {total}")
    done, total = formats.size(copy.done_bytes), formats.size(copy.total_bytes)
    return words.format(name=copy.label, machine=copy.machine, done=done, total=total)


def copy_outcome(copy: EngineCopy) -> tuple[str, str]:
    """Return a text about how a copy ended, and the role of that text."""
    if copy.problem_facts is not None:
        return said(copy.problem_facts), "error"
    if copy.state == "canceled":
        return _tr("The copy was canceled."), "muted"
    return _tr("{name} from {machine} is in use.").format(name=copy.label, machine=copy.machine), "muted"


def offer_details(offer: EngineOffer) -> str:
    """Return the name and date of an offered pack, and a note if it is already installed here."""
    day = QDate.fromString(offer.built, Qt.DateFormat.ISODate)
    built = QLocale().toString(day, QLocale.FormatType.ShortFormat)
    words = _tr("Built on {date}: {name}").format(date=built, name=offer.pack)
    if offer.installed:
        return f"{words}. {_tr('This pack is already installed.')}"
    if offer.here_bytes:
        begun = _tr("{size} of it is already on this computer.").format(size=formats.size(offer.here_bytes))
        return f"{words}. {begun}"
    return words


def checksum_line(sha256: str) -> str:
    """Return the line with a pack's checksum, which users can compare with the one on another computer."""
    return _tr("Checksum: {hash}").format(hash=grouped(sha256))


def grouped(sha256: str) -> str:
    """Return a checksum in groups that are easy to compare."""
    return " ".join(sha256[start : start + GROUP_CHARACTERS] for start in range(0, len(sha256), GROUP_CHARACTERS))


def _tr(text: str) -> str:
    return QCoreApplication.translate("Engines", text)
