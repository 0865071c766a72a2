"""The support bundle, a single file with versions, settings, checks and logs, but without names, addresses or chats.

It is built from files in the data folder, so it works while the node is down. The user can read all of it first.
"""

from __future__ import annotations

import getpass
import json
import platform
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QSettings, QUrl, qVersion
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QListWidget, QListWidgetItem, QPlainTextEdit, QSplitter, QWidget

from app import __version__
from app.core.diagnostics import Check
from app.core.errors import AppError
from app.core.log_redaction import PrivateNames, readable_line, redact
from app.decoding import decode
from app.gui.app.app_context import AppContext
from app.gui.app.pool_status import current_status
from app.gui.diagnostics.background_job import Job
from app.gui.look import formats, sizes
from app.gui.widgets.buttons import button
from app.gui.widgets.dialog import Dialog
from app.gui.widgets.files import LastFolder
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import column, layout_widget, scrolled
from app.gui.widgets.notice import Notice

Json = dict[str, Any]
LOG_BYTES = 512 << 10  # maximum size of the end of each log that is included
MAX_LOGS = 6
APPEARANCE_KEYS = ("look/scheme", "look/text_scale", "look/language", "look/reduce_motion")
# None of these contains text written by the user.
INCLUDED_SETTINGS = (*APPEARANCE_KEYS, "window/page", "first_run/done", "first_run/role")


@dataclass(frozen=True, slots=True)
class NodeReport:
    """The window's information about the node, which is mostly empty while the node is unreachable."""

    home: Path
    current_status: str = ""
    snapshot: Json = field(default_factory=dict)
    checks: tuple[Json, ...] = ()


def gather(report: NodeReport) -> dict[str, str]:
    """Return the contents of the bundle keyed by file name. Blocks until all files are read. Raises OSError."""
    texts = {"about.txt": _about(report)}
    if report.snapshot:
        texts["state.json"] = _json(report.snapshot)
    if report.checks:
        texts["checks.json"] = _json(list(report.checks))
    texts |= _settings(report.home)
    texts |= {f"logs/{path.name}": _end_of(path) for path in _logs(report.home)}
    return redact(texts, _known(report))


def write(path: Path, files: Mapping[str, str]) -> None:
    """Write the bundle as a zip file. On failure, raises OSError and leaves any existing file unchanged."""
    part = path.with_name(f"{path.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, text in files.items():
                packed.writestr(name, text)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _about(report: NodeReport) -> str:
    lines = {
        "Poolhouse": __version__,
        "System": platform.platform(),
        "Processor": platform.machine(),
        "Python": sys.version.split()[0],
        "Qt": qVersion(),
        "State": report.current_status,
    }
    return "".join(f"{name}: {value}\n" for name, value in lines.items())


def _settings(home: Path) -> dict[str, str]:
    """Return the node's settings, and the window's settings except those with text written by the user."""
    files: dict[str, str] = {}
    if (file := home / "settings.json").is_file():
        files["settings.json"] = file.read_text("utf-8", "replace")
    kept = QSettings(str(home / "window" / "window.ini"), QSettings.Format.IniFormat)
    chosen = [f"{name}={kept.value(name)}\n" for name in INCLUDED_SETTINGS if kept.contains(name)]
    if chosen:
        files["window.ini"] = "".join(chosen)
    return files


def _logs(home: Path) -> list[Path]:
    """Return the latest log files, newest first."""
    files = [path for path in (home / "logs").glob("*.log*") if path.is_file()]
    return sorted(files, key=lambda path: -path.stat().st_mtime)[:MAX_LOGS]


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_BYTES))
        text = file.read().decode("utf-8", "replace")
    return "\n".join(map(readable_line, text.split("\n")))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _known(report: NodeReport) -> PrivateNames:
    """Return all private names that may occur in the bundle and must be redacted."""
    machines = {*_names([report.snapshot.get(part) for part in ("node", "machines", "strangers")])}
    for file in (report.home / "settings.json", report.home / "household" / "household.json"):
        machines |= set(_names_of_file(file))
    people = {_user(), platform.node(), platform.node().partition(".")[0]}
    folders = (*_chosen_folders(report.home), str(report.home), str(Path.home()))
    return PrivateNames(tuple(machines), tuple(people - {""}), folders)


def _chosen_folders(home: Path) -> Iterator[str]:
    """Yield the model folders outside the data folder, because their paths may contain names of people and disks."""
    try:
        models = decode((home / "settings.json").read_bytes(), dict[str, Any])["models"]
        folders = [models.get("path"), *models.get("former", [])]
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return
    yield from (folder for folder in folders if isinstance(folder, str) and folder)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""  # the system does not know the user's name


def _names_of_file(file: Path) -> Iterator[str]:
    try:
        read = decode(file.read_bytes(), dict[str, Any])
    except (OSError, ValueError):
        return
    yield from _names(read)
    operations = read.get("operations")
    for line in operations if isinstance(operations, list) else ():
        try:
            yield from _names(decode(line, dict[str, Any]))
        except (TypeError, ValueError):
            continue


def _names(value: object, key: str = "") -> Iterator[str]:
    """Yield all text values with the key `name`, at any depth."""
    if isinstance(value, dict):
        for inner, item in value.items():
            yield from _names(item, inner)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item, key)
    elif isinstance(value, str) and key == "name" and value:
        yield value


WIDTH, HEIGHT, LIST_WIDTH = 820, 580, 240
SHOWN_CHARACTERS = 200_000  # maximum shown of each file; all of it is saved


class SaveDialog(Dialog):
    """A dialog that shows and saves the files of the bundle, which are gathered in the background."""

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
        self.text.setAccessibleName(self.tr("Contents of the selected file"))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setFont(services.theme.code_font())
        self.button = button(self.tr("Save as…"), self._save, "primary")
        self.button.setEnabled(False)
        self._fill(px(LIST_WIDTH))
        self._gather(checks)

    def save_to(self, path: Path) -> None:
        """Write the bundle to this file."""
        files = dict(self.files)
        Job(lambda: write(path, files), lambda _: self._saved(path), self._failed, self)

    def _fill(self, list_width: int) -> None:
        about = paragraph(
            self.tr(
                "Creates one file to send to someone who is helping you. Names, addresses and folders are replaced, "
                "and your chats are not included. Review the file before you save it."
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
        self._view = scrolled(layout_widget(inner))
        box = column(self._view, feet, gap=sizes.L)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.XL)
        self.setLayout(box)

    def _gather(self, checks: Sequence[Check]) -> None:
        services = self._services
        report = NodeReport(
            services.launcher.home,
            current_status(services.pool).sentence,
            msgspec.to_builtins(services.pool.now) if services.pool.is_there else {},
            tuple(asdict(check) for check in checks),
        )
        self._size.setText(self.tr("Gathering…"))
        Job(lambda: gather(report), self._show, self._failed, self)

    def _show(self, files: dict[str, str]) -> None:
        self.files = files
        for name in files:
            self.list.addItem(QListWidgetItem(name))
        self.list.setCurrentRow(0)
        self.button.setEnabled(True)
        total = sum(len(text.encode()) for text in files.values())
        words = self.tr("%n file(s), {size} before compression", "", len(files))
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
        words = self.tr("The file could not be saved: {why}. Choose another folder.")
        self.notice.say(words.format(why=error.strerror or str(error)), "error")

    def _leave_for(self, page: str) -> None:
        """Close the dialog, which covers all pages, and show the given page."""
        self.reject()
        self._services.go(page)
