"""All files on their way, below the list; nothing is shown while there are none."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QObject, QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStyle, QWidget

from app.core.errors import AppError
from app.gui.api.node_state import GONE
from app.gui.app.app_context import AppContext
from app.gui.app.mending_places import LOG
from app.gui.look import theme as sizes
from app.gui.look.theme import set_role
from app.gui.models.folder_dialog import choose_folder
from app.gui.models.importing import Importing
from app.gui.models.node_calls import Calls
from app.gui.models.transfer_row import TransferRow, of_download, of_import
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import card, column
from app.gui.widgets.scroll_area import ScrollArea

# Scrolled views inside a card: the card's own surface shows through.


class Inside(ScrollArea):
    """Scrolls up and down. `want` says how high it would like to be."""

    def __init__(self, content: QWidget) -> None:
        super().__init__(content)
        self._wanted = 0
        for widget in (self, content):
            set_role(widget, "inside")
        for widget in (self.viewport(), content):
            widget.setAutoFillBackground(False)

    def want(self, height: int, least: int) -> None:
        """Not more than `height`, and where there is no room for that, `least`."""
        if height != self._wanted:
            self._wanted = height
            self.setMaximumHeight(height)
            self.setMinimumHeight(min(least, height))
            self.updateGeometry()

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        hint = super().sizeHint()
        return QSize(hint.width(), self._wanted) if self._wanted else hint

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        """So wide that the bar covers nothing: across nobody can scroll."""
        content, least = self.widget(), super().minimumSizeHint()
        if content is None:
            return least
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        return QSize(max(least.width(), content.minimumSizeHint().width() + bar), least.height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)


Json = dict[str, Any]
IMPORT_ID = "import"
MUCH_BYTES = 256 << 20  # not thrown away without a question
SHOWN = 3  # rows at once; more scroll


class Transfers(QWidget):
    """Downloads of the node, and the file that is imported."""

    failed = Signal(object)  # AppError
    cancel_asked = Signal(object)  # Json of a download of which much is here already

    def __init__(self, services: AppContext, importing: Importing) -> None:
        super().__init__()
        self._services, self._importing, self._calls = services, importing, Calls()
        self.rows: dict[str, TransferRow] = {}
        self._box = column(gap=sizes.M)
        inner = QWidget()
        inner.setLayout(column(self._box, None, gap=0))
        self._area = Inside(inner)
        self.setLayout(column(card(label(self.tr("Downloads"), "section"), self._area, gap=sizes.S)))
        services.pool.changed.connect(self.tell)
        services.pool.link_changed.connect(self.tell)
        importing.changed.connect(self.tell)
        self.tell()

    def downloads(self) -> list[Json]:
        """None once the node has gone: it shows them again when it is back."""
        pool = self._services.pool
        return [] if pool.link in GONE else list((pool.snapshot.get("downloads") or {}).values())

    def begin(self, body: Json) -> None:
        """Download a file; the node shows it in its snapshot from then on."""
        call = self._services.client.post("/downloads", body, _quiet, self._refused)
        self._calls.keep(f"begin {body['file']}", call)

    def resume(self, ident: str) -> None:
        """Go on where it stopped."""
        self._act(ident, "resume")

    def tell(self) -> None:
        """How they stand."""
        now = [of_download(one) for one in self.downloads()]
        if self._importing.paths:
            now.append(of_import(self._importing, IMPORT_ID))
        for gone in set(self.rows) - {one.id for one in now}:
            widget = self.rows.pop(gone)
            self._box.removeWidget(widget)
            widget.deleteLater()
        for one in now:
            if one.id in self.rows:
                self.rows[one.id].tell(one)
            else:
                self.rows[one.id] = TransferRow(self._services.theme, self._act, one)
                self._box.addWidget(self.rows[one.id])
        self.setVisible(bool(now))
        self._fit()

    def end(self) -> None:
        self._calls.end_all()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """As high as its rows, up to three; more scroll."""
        width = max(1, self._area.viewport().width())
        heights = [_height(one, width) + self._box.spacing() for one in self.rows.values()]
        shown = sum(heights[:SHOWN]) - self._box.spacing()
        self._area.want(max(0, shown), heights[0] if heights else 0)

    def _act(self, ident: str, what: str) -> None:
        if ident == IMPORT_ID:
            deed = self._importing.resume if what == "resume" else self._importing.cancel
            deed()
            return
        if what == "folder":
            choose_folder(self._services, self)
            return
        if what == "log":
            self._services.go(LOG)
            return
        if what != "cancel":
            path = f"/downloads/{ident}/{what}"
            call = self._services.client.post(path, None, _quiet, self._refused)
            self._calls.keep(f"{what} {ident}", call)
            return
        one = next((one for one in self.downloads() if one["id"] == ident), None)
        if one and one["state"] != "done" and one["done_bytes"] >= MUCH_BYTES:
            self.cancel_asked.emit(one)
        else:
            self.drop(ident)

    def drop(self, ident: str) -> None:
        """Cancel a download; what came of it is deleted."""
        call = self._services.client.delete(f"/downloads/{ident}", _quiet, self._refused)
        self._calls.keep(f"drop {ident}", call)

    def _refused(self, error: AppError) -> None:
        self.failed.emit(error)


def _quiet(_: Json) -> None:
    """The snapshot shows what came of it."""


def _height(row: TransferRow, width: int) -> int:
    layout = row.layout()
    assert layout is not None
    return layout.heightForWidth(width) if layout.hasHeightForWidth() else row.sizeHint().height()
