"""The panel below the model list that shows downloads and imports in progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.api.downloads import Download, DownloadTotals, totals
from app.core.errors import AppError
from app.gui.api.node_client import Calls
from app.gui.api.node_state import GONE
from app.gui.app.app_context import AppContext
from app.gui.app.navigation import INTERNAL_ERRORS, LOG_PAGE, log_button_text
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.look.theme import Theme
from app.gui.models.folder_dialog import FOLDER_ERRORS, choose_folder, choose_folder_text
from app.gui.models.importing import ImportQueue
from app.gui.widgets.buttons import IconButton, button, wrapping
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import ElidedLabel, label, paragraph
from app.gui.widgets.layouts import card, column, row
from app.gui.widgets.progress import Progress
from app.gui.widgets.scroll_area import CardScrollArea

translate = QCoreApplication.translate
IMPORT_ID = "import"
CONFIRM_CANCEL_BYTES = 256 << 20  # ask before deleting at least this much
MAX_VISIBLE_ROWS = 3  # maximum number of visible rows; the rest can be scrolled to


class Transfers(QWidget):
    """The panel with a row for each download and for the current import. It is hidden if there are none."""

    failed = Signal(object)  # AppError
    cancel_asked = Signal(object)  # the Download, which has already received a lot of data

    def __init__(self, services: AppContext, importing: ImportQueue) -> None:
        super().__init__()
        self._services, self._importing, self._calls = services, importing, Calls()
        self.rows: dict[str, TransferRow] = {}
        self._box = column(gap=sizes.M)
        inner = QWidget()
        inner.setLayout(column(self._box, None, gap=0))
        self._area = CardScrollArea(inner)
        self.sum = ElidedLabel("", "caption")
        self.pause_all = button(self.tr("Pause all"), lambda: self._act_on_all("pause"), "inline")
        self.resume_all = button(self.tr("Resume all"), lambda: self._act_on_all("resume"), "inline")
        head = row(label(self.tr("Downloads"), "section"), None, self.pause_all, self.resume_all, gap=sizes.S)
        self.setLayout(column(card(column(head, self.sum, gap=0), self._area, gap=sizes.S)))
        services.pool.changed.connect(self.refresh)
        services.pool.link_changed.connect(self.refresh)
        importing.changed.connect(self.refresh)
        self.refresh()

    def downloads(self) -> list[Download]:
        """Return the node's downloads, or an empty list while the node is unreachable."""
        pool = self._services.pool
        return [] if pool.link in GONE else sorted(pool.now.downloads.values(), key=lambda each: each.place)

    def begin(self, body: dict[str, Any]) -> None:
        """Start a download. Its progress then appears in the node's snapshots."""
        call = self._services.client.post("/downloads", body, _quiet, self._refused)
        self._calls.keep(f"begin {body['file']}", call)

    def resume(self, ident: str) -> None:
        """Resume a paused or failed download."""
        self._act(ident, "resume")

    def refresh(self) -> None:
        """Update the rows to reflect all current transfers, in the order in which they run."""
        downloads = self.downloads()
        now = [*map(of_download, downloads)]
        self._show_totals(totals(downloads))
        movable = [download.id for download in downloads if not download.is_over]
        if self._importing.paths:
            now.append(of_import(self._importing, IMPORT_ID))
        for gone in set(self.rows) - {transfer.id for transfer in now}:
            widget = self.rows.pop(gone)
            self._box.removeWidget(widget)
            widget.deleteLater()
        for transfer in now:
            if transfer.id in self.rows:
                self.rows[transfer.id].show_transfer(transfer)
            else:
                self.rows[transfer.id] = TransferRow(self._services.theme, self._act, transfer)
                self._box.addWidget(self.rows[transfer.id])
        self._place(now, movable)
        self.setVisible(bool(now))
        self._fit()

    def _show_totals(self, sums: DownloadTotals) -> None:
        """Show the totals of several downloads, and the buttons that pause or resume all of them."""
        several = sums.n > 1
        self.sum.say(totals_words(sums))
        self.sum.setVisible(several)
        self.pause_all.setVisible(several and bool(sums.n_going))
        self.resume_all.setVisible(several and sums.n_going < sums.n)

    def _place(self, now: list[Transfer], movable: list[str]) -> None:
        """Arrange the rows in order, and tell each row whether it can move up or down."""
        for place, transfer in enumerate(now):
            widget = self.rows[transfer.id]
            if self._box.indexOf(widget) != place:
                self._box.removeWidget(widget)
                self._box.insertWidget(place, widget)
            at = movable.index(transfer.id) if transfer.id in movable else -1
            widget.show_place(is_first=at == 0, is_last=at == len(movable) - 1, moves=at >= 0 and len(movable) > 1)

    def _act_on_all(self, action: str) -> None:
        call = self._services.client.post(f"/downloads/{action}", None, _quiet, self._refused)
        self._calls.keep(f"{action} all", call)

    def _move(self, ident: str, *, up: bool) -> None:
        """Swap a download with its neighbor in the list."""
        order = [download.id for download in self.downloads() if not download.is_over]
        at = order.index(ident)
        behind = order[at + 2] if at + 2 < len(order) else None
        before = order[at - 1] if up else behind
        call = self._services.client.post(f"/downloads/{ident}/move", {"before": before}, _quiet, self._refused)
        self._calls.keep(f"move {ident}", call)

    def end(self) -> None:
        self._calls.end_all()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Set the height of the list to that of its first rows, up to MAX_VISIBLE_ROWS. More rows scroll."""
        width = max(1, self._area.viewport().width())
        heights = [_height(row, width) + self._box.spacing() for row in self.rows.values()]
        shown = sum(heights[:MAX_VISIBLE_ROWS]) - self._box.spacing()
        self._area.want(max(0, shown), heights[0] if heights else 0)

    def _act(self, ident: str, action: str) -> None:
        if ident == IMPORT_ID:
            deed = self._importing.resume if action == "resume" else self._importing.cancel
            deed()
            return
        if action == "folder":
            choose_folder(self._services, self)
            return
        if action == "log":
            self._services.go(LOG_PAGE)
            return
        if action in ("up", "down"):
            self._move(ident, up=action == "up")
            return
        if action != "cancel":
            path = f"/downloads/{ident}/{action}"
            call = self._services.client.post(path, None, _quiet, self._refused)
            self._calls.keep(f"{action} {ident}", call)
            return
        download = next((download for download in self.downloads() if download.id == ident), None)
        if download and download.state != "done" and (download.done_bytes or 0) >= CONFIRM_CANCEL_BYTES:
            self.cancel_asked.emit(download)
        else:
            self.drop(ident)

    def drop(self, ident: str) -> None:
        """Cancel a download and delete its data."""
        call = self._services.client.delete(f"/downloads/{ident}", _quiet, self._refused)
        self._calls.keep(f"drop {ident}", call)

    def _refused(self, error: AppError) -> None:
        self.failed.emit(error)


def _quiet(_: object) -> None:
    """Ignore a reply, because the next snapshot shows the result."""


def _height(row: TransferRow, width: int) -> int:
    layout = row.layout()
    assert layout is not None
    return layout.heightForWidth(width) if layout.hasHeightForWidth() else row.sizeHint().height()


@dataclass(frozen=True, slots=True)
class Transfer:
    """A download or an import, prepared for display."""

    id: str
    name: str
    words: str
    share: float | None  # from 0 to 1; None if unknown
    state: str  # as reported by the node, or "importing" for a local file
    bad: bool = False
    held_up: str = ""  # why no data arrives although the download is still running
    code: str = ""  # code of the reason for a failure

    @property
    def can_pause(self) -> bool:
        return self.state in ("waiting", "starting", "running")

    @property
    def can_resume(self) -> bool:
        return self.state in ("paused", "failed")

    @property
    def is_done(self) -> bool:
        return self.state == "done"


def of_download(download: Download) -> Transfer:
    """Prepare a download for display."""
    done, total = download.done_bytes or 0, download.total_bytes or 0
    return Transfer(
        download.id,
        download.name,
        _download_words(download, done, total),
        min(1.0, done / total) if total else None,
        download.state,
        download.state == "failed",
        _held_up(download),
        download.code or "",
    )


def _held_up(download: Download) -> str:
    if download.held_up_facts is None:
        return ""
    return f"{said(download.held_up_facts)} {translate('Models', 'Poolhouse keeps trying. To stop, click Pause.')}"


def _download_words(download: Download, done: float, total: float) -> str:
    if download.reason_facts is not None:
        return said(download.reason_facts)
    amounts, pace = _amounts(done, total), _pace(download.bytes_per_s, download.seconds_left)
    match download.state:
        case "waiting":
            return translate("Models", "Waiting to start")
        case "starting":
            return translate("Models", "Contacting {source}").format(source=download.source)
        case "paused":
            return translate("Models", "Paused at {amounts}").format(amounts=amounts)
        case "checking":
            words = translate("Models", "Checking the file, {amounts}")
            if not download.sha256:  # there is no checksum to compare with
                words = translate("Models", "Computing the file's checksum, {amounts}")
            return " · ".join([words.format(amounts=amounts), *pace])
        case "done":
            if download.machine:
                return translate("Models", "Copied and verified")
            return translate("Models", "Downloaded and verified")
    source = translate("Models", "from {source}").format(source=download.source)
    return " · ".join([amounts, source, *pace])


def of_import(importing: ImportQueue, ident: str) -> Transfer:
    """Prepare the current or interrupted import for display."""
    if importing.is_broken:
        words = translate("Models", "Interrupted. The import will start again from the beginning.")
        return Transfer(ident, importing.name, words, None, "paused")
    done, total = importing.done_bytes, importing.total_bytes
    share = done / total if total else None
    return Transfer(ident, importing.name, checking_words(importing), share, "importing")


def checking_words(importing: ImportQueue) -> str:
    """Describe the progress of hashing an imported file. Nothing is verified, because there is no known hash."""
    words = translate("Models", "Computing the file's checksum")
    if not importing.total_bytes:
        return words
    pace = _pace(importing.bytes_per_s, importing.seconds_left)
    return " · ".join([words, _amounts(importing.done_bytes, importing.total_bytes), *pace])


def _amounts(done: float, total: float) -> str:
    if not total:
        return formats.size(done)
    return translate("Models", "{done} of {total}").format(done=formats.size(done), total=formats.size(total))


def totals_words(sums: DownloadTotals) -> str:
    """Return the totals of all downloads, such as `3 downloads · 4.1 GiB of 9.8 GiB · 12 min left`."""
    amounts = translate("Models", "{done} of {total}")
    if sums.is_least:
        amounts = translate("Models", "{done} of at least {total}")
    done, total = formats.size(sums.done_bytes), formats.size(sums.total_bytes)
    count = translate("Models", "%n download(s)", "", sums.n)
    pace = _pace(sums.bytes_per_s or None, sums.seconds_left)
    paused = [] if sums.n_going else [translate("Models", "paused")]
    return " · ".join([count, amounts.format(done=done, total=total), *pace, *paused])


def _pace(bytes_per_s: float | None, seconds_left: float | None) -> list[str]:
    """Return texts for the speed and the remaining time, omitting whichever is unknown."""
    parts = [f"{formats.size(bytes_per_s)}/s"] if bytes_per_s else []
    if seconds_left is not None:
        left = formats.whole_seconds(max(1.0, float(seconds_left)))
        parts.append(translate("Models", "{time} left").format(time=left))
    return parts


class TransferRow(QWidget):
    """The row of a transfer.

    `act(id, action)` is called to pause, resume or cancel it, or to open the folder dialog or the log.
    """

    def __init__(self, theme: Theme, act: Callable[[str, str], object], first: Transfer) -> None:
        super().__init__()
        self._act, self._shown = act, first
        self._name, self._words = ElidedLabel(), ElidedLabel("", "caption")
        self._problem = paragraph("", "error")
        self._bar = Progress()
        self.pause = IconButton(theme, "pause", self.tr("Pause"), lambda: self._do("pause"))
        self.resume = IconButton(theme, "play", self.tr("Resume"), lambda: self._do("resume"))
        self.cancel = IconButton(theme, "close", self.tr("Cancel"), lambda: self._do("cancel"))
        self.up = IconButton(theme, "up", self.tr("Earlier"), lambda: self._do("up"))
        self.down = IconButton(theme, "down", self.tr("Later"), lambda: self._do("down"))
        self.folder = wrapping(choose_folder_text(), lambda: self._do("folder"))
        self.log = wrapping(log_button_text(), lambda: self._do("log"))
        head = row(self._name, self.up, self.down, self.pause, self.resume, self.cancel, gap=sizes.XS)
        head.setStretch(0, 1)
        self.setLayout(column(head, self._bar, self._words, self._problem, Flow(self.folder, self.log), gap=sizes.XS))
        self.show_transfer(first)

    def show_transfer(self, now: Transfer) -> None:
        """Show the current state of the transfer."""
        self._shown = now
        self._name.say(now.name)
        self._words.say(now.words)
        self._words.setVisible(not now.bad)
        self._problem.setText(now.words if now.bad else now.held_up)
        self._problem.setVisible(now.bad or bool(now.held_up))
        self.folder.setVisible(now.bad and now.code in FOLDER_ERRORS)
        self.log.setVisible(now.bad and now.code in INTERNAL_ERRORS)
        self._bar.tell(now.share)
        stands = now.state == "paused" and now.share is None
        self._bar.setVisible(not now.is_done and not now.bad and not stands)
        self._bar.setAccessibleName(self.tr("Progress of {name}").format(name=now.name))
        self.pause.setVisible(now.can_pause)
        self.resume.setVisible(now.can_resume)
        again = self.tr("Try {name} again") if now.bad else self.tr("Resume {name}")
        self.resume.rename(again.format(name=now.name))
        self.resume.show_picture("refresh" if now.bad else "play")
        self.pause.rename(self.tr("Pause {name}").format(name=now.name))
        close = self.tr("Clear") if now.is_done else self.tr("Cancel {name}")
        self.cancel.rename(close.format(name=now.name))

    def show_place(self, *, is_first: bool, is_last: bool, moves: bool) -> None:
        """Show the buttons that move the download in the list, if it can be moved."""
        name = self._shown.name
        self.up.rename(self.tr("Download {name} earlier").format(name=name))
        self.down.rename(self.tr("Download {name} later").format(name=name))
        for widget, may in ((self.up, not is_first), (self.down, not is_last)):
            widget.setVisible(moves)
            widget.setEnabled(may)

    def _do(self, action: str) -> None:
        self._act(self._shown.id, action)
