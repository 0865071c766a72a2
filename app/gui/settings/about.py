"""The About settings, with the version, the licenses, and the libraries that the app uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from PySide6.QtCore import Qt, qVersion
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QPlainTextEdit, QTreeWidget, QTreeWidgetItem, QWidget

from app import __version__
from app.gui.app.app_context import AppContext
from app.gui.diagnostics.background_job import Job
from app.gui.look import sizes
from app.gui.look.drawing import ICONS_FOLDER
from app.gui.settings.settings_group import Setting, SettingsGroup
from app.gui.widgets.buttons import button
from app.gui.widgets.dialog import Dialog
from app.gui.widgets.layouts import column, row

OURS = "poolhouse"
BESIDE = ("PySide6-Essentials", "llama-cpp-python")  # listed even if the metadata of our installed package is outdated
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TEXTS = re.compile(r"(?:^|/)(?:licen[cs]e|copying|notice|lgpl|gpl)[^/]*$", re.IGNORECASE)
SHIPPED = Path(__file__).resolve().parents[3] / "resources" / "licenses"
FIELDS = ("License-Expression", "License")
UNKNOWN = "see its license text"


@dataclass(frozen=True, slots=True)
class Library:
    """An installed Python package with its license."""

    name: str
    version: str
    license: str


def libraries() -> list[Library]:
    """Return all direct and indirect dependencies, sorted by name. This is slow, because it reads many small files."""
    distributions = {key: metadata.distribution(name) for key, name in _needed()}
    made = [
        Library(distribution.metadata["Name"], distribution.version, license_of(distribution))
        for key, distribution in distributions.items()
        if key != OURS
    ]
    return sorted(made, key=lambda library: library.name.casefold())


def license_text(name: str) -> str:
    """Return the license texts included with a library.

    If an LGPL 3 library includes none, our own copy of that license is returned.
    """
    files = metadata.files(name) or []
    licenses = [file for file in files if _TEXTS.search(str(file)) and file.suffix != ".py"]
    text = "\n\n".join(_read(Path(str(file.locate()))) for file in licenses).strip()
    if not text and "LGPL-3.0" in license_of(metadata.distribution(name)):
        text = "\n\n".join(_read(SHIPPED / file) for file in ("LGPL-3.0.txt", "GPL-3.0.txt"))
    return text


def license_of(distribution: metadata.Distribution) -> str:
    """Return a short name of the license, based on the metadata's license expression, text or classifiers."""
    meta = distribution.metadata
    said = next((meta[field] for field in FIELDS if field in meta), "")
    if said and "\n" not in said and len(said) < 60:
        return str(said)
    classes = [line.rpartition(" :: ")[2] for line in meta.get_all("Classifier") or [] if line.startswith("License ::")]
    return ", ".join(classes) or UNKNOWN


def _needed() -> Iterator[tuple[str, str]]:
    """Yield the normalized name and the original name of each installed dependency, without duplicates."""
    waiting, seen = [OURS, *BESIDE], set[str]()
    while waiting:
        name = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen:
            continue
        seen.add(key)
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        yield key, name
        waiting += [_named(line) for line in required if "extra ==" not in line]


def _named(requirement: str) -> str:
    match = _NAME.match(requirement)
    return match[0] if match else ""


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


LICENSE = Path(__file__).resolve().parents[3] / "LICENSE"
LIST_HEIGHT, TEXT_WIDTH, TEXT_HEIGHT = 320, 680, 520


class About(SettingsGroup):
    """The About settings. The list of libraries is not read until it is shown."""

    can_reset = False

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("About"))
        own = button(self.tr("Show license"), self._own)
        icons = button(self.tr("Show"), lambda: self._text(self.tr("Icons"), _of(ICONS_FOLDER / "LICENSE.md")))
        icons.setAccessibleName(self.tr("Show the license for the icons"))
        qt = button(self.tr("Show"), lambda: self._show_library("PySide6-Essentials"))
        qt.setAccessibleName(self.tr("Show the license for Qt"))
        self.add(
            Setting(
                "Poolhouse",
                self.tr("Version {version}. Free software: Apache License 2.0.").format(version=__version__),
                own,
            ),
            Setting(
                f"Qt {qVersion()}",
                self.tr(
                    "Qt is used unchanged under the LGPL, version 3. Its libraries are separate files next to the "
                    "app, and you can replace them with your own. Source: code.qt.io"
                ),
                qt,
                words="pyside lgpl",
            ),
            Setting(self.tr("Icons"), self.tr("Drawn for Poolhouse."), icons),
        )
        self.list = QTreeWidget()
        self.list.setColumnCount(3)
        self.list.setHeaderLabels([self.tr("Library"), self.tr("Version"), self.tr("License")])
        self.list.setRootIsDecorated(False)
        self.list.setFixedHeight(services.theme.px(LIST_HEIGHT))
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.list.setAccessibleName(self.tr("Libraries and their licenses"))
        self.list.itemActivated.connect(lambda item: self._show_library(item.text(0)))
        self.list.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        text = button(self.tr("Show license text"), self._chosen)
        self.add(
            Setting(
                "", "", column(self.list, row(None, text), gap=sizes.S), wide=True, words=self.tr("Libraries licenses")
            ),
            title=self.tr("Built on"),
        )

    def refresh(self) -> None:
        if not self.list.topLevelItemCount():
            Job(libraries, self._tell, lambda _: None, self)

    def _tell(self, libraries: list[Library]) -> None:
        self.list.clear()
        for library in libraries:
            self.list.addTopLevelItem(QTreeWidgetItem([library.name, library.version, library.license]))

    def _chosen(self) -> None:
        item = self.list.currentItem() or self.list.topLevelItem(0)
        if item is not None:
            self._show_library(item.text(0))

    def _show_library(self, name: str) -> None:
        def show(text: str) -> None:
            self._text(name, text or self.tr("This library comes without a license text."))

        Job(lambda: license_text(name), show, lambda _: None, self)

    def _own(self) -> None:
        self._text("Poolhouse", _of(LICENSE))

    def _text(self, title: str, text: str) -> None:
        TextDialog(self.services, title, text, self.window()).open()


class TextDialog(Dialog):
    """A dialog that shows a long text."""

    def __init__(self, services: AppContext, title: str, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.begin_at(services.theme.px(TEXT_WIDTH), services.theme.px(TEXT_HEIGHT))
        view = QPlainTextEdit(text)
        view.setReadOnly(True)
        view.setTabChangesFocus(True)
        view.setFont(services.theme.code_font())
        view.setAccessibleName(title)
        box = column(view, row(None, button(self.tr("Close"), self.accept)), gap=sizes.L)
        box.setContentsMargins(sizes.XL, sizes.XL, sizes.XL, sizes.L)
        self.setLayout(box)


def _of(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
