"""Saves what a helper needs as one file: everything in it can be read here first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QListWidget, QListWidgetItem, QPlainTextEdit, QSplitter, QWidget

from app.core.diagnostics import Check
from app.core.errors import AppError
from app.gui.app.app_context import AppContext
from app.gui.app.pool_status import standing
from app.gui.diagnostics.background_job import Job
from app.gui.diagnostics.support_bundle import Told, gathered, write
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.widgets.buttons import button
from app.gui.widgets.dialog import Dialog
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column, held, scrolled
from app.gui.widgets.notice import Notice
from app.gui.widgets.save_file import LastFolder

WIDTH, HEIGHT, LIST_WIDTH = 820, 580, 240
SHOWN_CHARACTERS = 200_000  # of one file; the whole of it is saved


class SaveDialog(Dialog):
    """`files` fills a moment after it is shown."""

    def __init__(self, services: AppContext, parent: QWidget | None = None, checks: Sequence[Check] = ()) -> None:
        super().__init__(parent)
        self._services = services
        self.files: dict[str, str] = {}
        px = services.theme.px
        self.setWindowTitle(self.tr("Save diagnostics"))
        self.begin_at(px(WIDTH), px(HEIGHT))
        self.notice = Notice(services.theme)
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Files that will be saved"))
        self.list.currentTextChanged.connect(self._chosen)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setAccessibleName(self.tr("What stands in the chosen file"))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setFont(services.theme.code_font())
        self.button = button(self.tr("Save as…"), self._save, "primary")
        self.button.setEnabled(False)
        self._fill(px(LIST_WIDTH))
        self._gather(checks)

    def save_to(self, path: Path) -> None:
        """Write the zip."""
        files = dict(self.files)
        Job(lambda: write(path, files), lambda _: self._saved(path), self._failed, self)

    # inside

    def _fill(self, list_width: int) -> None:
        about = paragraph(
            self.tr(
                "One file for whoever helps you. Names, addresses and folders are replaced, and no "
                "text of your chats is in it. Look before you save."
            ),
            "muted",
        )
        split = QSplitter()
        split.addWidget(self.list)
        split.addWidget(self.text)
        split.setSizes([list_width, WIDTH - list_width])
        split.setChildrenCollapsible(False)
        self._size = label("", "caption")
        cancel = button(self.tr("Cancel"), self.reject)
        feet = Flow(self._size, cancel, self.button, right_from=1)
        inner = column(about, self.notice, split, gap=sizes.L)
        inner.setStretch(2, 1)
        self._view = scrolled(held(inner))
        box = column(self._view, feet, gap=sizes.L)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.XL)
        self.setLayout(box)

    def _gather(self, checks: Sequence[Check]) -> None:
        services = self._services
        told = Told(
            services.launcher.home,
            standing(services.pool).sentence,
            dict(services.pool.snapshot) if services.pool.is_there else {},
            tuple(asdict(check) for check in checks),
        )
        self._size.setText(self.tr("Gathering…"))
        Job(lambda: gathered(told), self._show, self._failed, self)

    def _show(self, files: dict[str, str]) -> None:
        self.files = files
        for name in files:
            self.list.addItem(QListWidgetItem(name))
        self.list.setCurrentRow(0)
        self.button.setEnabled(True)
        total = sum(len(text.encode()) for text in files.values())
        words = self.tr("%n file(s), {size} before packing", "", len(files))
        self._size.setText(words.format(size=formats.size(total)))

    def _chosen(self, name: str) -> None:
        self.text.setPlainText(self.files.get(name, "")[-SHOWN_CHARACTERS:])

    def _save(self) -> None:
        last = LastFolder(self._services.preferences, "diagnostics")
        proposed = last.offered(Path(time.strftime("poolhouse-%Y-%m-%d-%H%M.zip")))
        chosen, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save diagnostics"), str(proposed), self.tr("Zip files (*.zip)")
        )
        if chosen:
            last.keep(Path(chosen))
            self.save_to(Path(chosen))

    def _saved(self, path: Path) -> None:
        folder = QUrl.fromLocalFile(str(path.parent))
        show = (self.tr("Show in folder"), lambda: QDesktopServices.openUrl(folder))
        self.notice.say(self.tr("Saved as {path}.").format(path=path), "info", show)

    def _failed(self, error: OSError | AppError) -> None:
        if isinstance(error, AppError):
            self.notice.fail(error, self._leave_for)
            return
        words = self.tr("This could not be saved: {why}. Choose another folder.")
        self.notice.say(words.format(why=error.strerror or str(error)), "error")

    def _leave_for(self, page: str) -> None:
        """This dialog is in front of every page."""
        self.reject()
        self._services.go(page)
