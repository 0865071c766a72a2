"""Attached pictures, shown small in a message or draft, and enlarged in a separate window."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QSize, Qt
from PySide6.QtGui import QImage, QKeyEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QWidget

from app.core.chat import FORM, HEIGHT, PICTURE, WIDTH, Details
from app.core.errors import AppError, BadInput
from app.core.reasons import os_cause
from app.gui.app.preferences import Preferences
from app.gui.chat.reading.picture_loader import LARGE_SIDE, SMALL_SIDE, Key, PictureLoader
from app.gui.look import sizes
from app.gui.look.drawing import icon
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import IconButton, ToolButton, button
from app.gui.widgets.dialog import Dialog
from app.gui.widgets.files import LastFolder, save_file, with_suffix
from app.gui.widgets.flow import Flow, FlowRow
from app.gui.widgets.layouts import clear_layout, column, row

SIDE = 96  # of a small picture, in pixels at 100 % text size
SUFFIXES: Mapping[str, str] = {"jpeg": ".jpg", "png": ".png"}
KINDS = {suffix: suffix for suffix in (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")}
MOST_NAME = 80
SMALLEST = 160  # of an enlarged picture

Open = Callable[[Details], object]
Remove = Callable[[Details], object]


def picture_name(file: Details) -> str:
    """Return a picture's name and size in pixels, for screen readers and tooltips."""
    words = QCoreApplication.translate("Picture", "Picture {name}, {width} × {height}")
    return words.format(name=file.get("name"), width=file.get(WIDTH) or "?", height=file.get(HEIGHT) or "?")


def file_name(file: Details) -> str:
    """Return a picture's name as a valid file name without folders, or "" if no valid characters remain."""
    name = re.split(r"[/\\]", str(file.get("name")))[-1]
    return re.sub(r'[<>:"|?*\x00-\x1f]', "_", name).strip(" .")[:MOST_NAME]


class PictureButton(ToolButton):
    """A small picture. It calls `open_it` when clicked."""

    def __init__(self, theme: Theme, loader: PictureLoader, file: Details, open_it: Open) -> None:
        super().__init__()
        self._theme, self._loader = theme, loader
        set_role(self, "picture")
        words = picture_name(file)
        self.setAccessibleName(words)
        self.setToolTip(words if "<" not in words else "")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        side = theme.px(SIDE)
        width, height = int(file.get(WIDTH) or side), int(file.get(HEIGHT) or side)
        factor = min(side / max(width, height, 1), 1.0)
        self.setIconSize(QSize(max(sizes.XL, int(width * factor)), max(sizes.XL, int(height * factor))))
        self.clicked.connect(lambda *_: open_it(file))
        self._key = loader.request(file, SMALL_SIDE)
        loader.loaded.connect(self._loaded)
        self._show()

    def _loaded(self, key: Key) -> None:
        if key == self._key:
            self._show()

    def _show(self) -> None:
        image = self._loader.image(self._key)
        self.setIcon(icon("attach", self._theme.colors.muted) if image is None else QPixmap.fromImage(image))


class PictureRow(FlowRow):
    """The pictures of a message or draft, in as many lines as needed.

    If `remove` is set, each has a Remove button.
    """

    def __init__(self, theme: Theme, loader: PictureLoader, open_it: Open, remove: Remove | None = None) -> None:
        super().__init__(Flow())
        self._theme, self._loader, self._open, self._remove = theme, loader, open_it, remove
        self.hide()

    def show_files(self, files: Sequence[Details]) -> None:
        clear_layout(self._flow)
        for file in files:
            self._flow.addWidget(self._item(file))
        self.setVisible(bool(files))
        self.fit()

    def _item(self, file: Details) -> QWidget:
        shown = PictureButton(self._theme, self._loader, file, self._open)
        remove = self._remove
        if remove is None:
            return shown
        frame = QFrame()
        words = QCoreApplication.translate("Composer", "Remove {name}").format(name=file["name"])
        close = IconButton(self._theme, "close", words, lambda: remove(file))
        inner = row(shown, close, gap=0)
        inner.setAlignment(close, Qt.AlignmentFlag.AlignTop)
        frame.setLayout(inner)
        return frame


class PictureWindow(Dialog):
    """A window with an enlarged picture, which can be saved.

    It does not block the conversation. Escape closes it.
    """

    def __init__(
        self,
        theme: Theme,
        loader: PictureLoader,
        file: Details,
        preferences: Preferences,
        failed: Callable[[AppError], object],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._loader, self._file, self._failed = loader, file, failed
        self._last_folder = LastFolder(preferences, "pictures")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(picture_name(file))
        set_role(self, "page")
        self.image = _Scaled(self.tr("Opening the picture…"))
        self.image.setAccessibleName(picture_name(file))
        close = button(self.tr("Close"), self.close)
        self.save = button(self.tr("Save as…"), self._save)
        box = column(self.image, row(None, self.save, close), gap=sizes.M)
        box.setStretch(0, 1)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        width, height = int(file.get(WIDTH) or LARGE_SIDE), int(file.get(HEIGHT) or LARGE_SIDE)
        most = theme.px(sizes.CHAT_WIDTH)
        factor = min(1.0, most / max(width, height, 1))
        self.begin_at(
            max(theme.px(SMALLEST) * 2, int(width * factor) + 2 * sizes.L),
            max(theme.px(SMALLEST), int(height * factor)) + theme.px(sizes.CONTROL_HEIGHT) + 3 * sizes.L,
        )
        self._key = loader.request(file, LARGE_SIDE)
        loader.loaded.connect(self._loaded)
        if not loader.is_pending(self._key):
            self._loaded(self._key)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def _loaded(self, key: Key) -> None:
        if key != self._key:
            return
        image = self._loader.image(key)
        if image is None:
            self.image.setText(self.tr("This picture can't be shown."))
        else:
            self.image.show_image(image)

    def _save(self) -> None:
        offered = Path(file_name(self._file) or self.tr("Picture"))
        suffix = SUFFIXES.get(str(self._file.get(FORM)), ".jpg")
        kinds = {self.tr("Pictures (*{suffix})").format(suffix=suffix): suffix}
        path = save_file(
            self, self.tr("Save the picture"), with_suffix(offered, suffix, KINDS), kinds, self._last_folder
        )
        if path is not None:
            self.write(path)

    def write(self, path: Path) -> None:
        """Write the picture's file to `path`."""
        try:
            path.write_bytes(base64.b64decode(str(self._file[PICTURE]), validate=True))
        except OSError as error:
            self._failed(BadInput("report_unwritten", path=str(path), why=os_cause(error)))
        except (binascii.Error, ValueError):
            self._failed(BadInput("picture_broken"))


class _Scaled(QLabel):
    """A label that scales an image down to fit, but never up."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self._image: QImage | None = None
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setMinimumSize(1, 1)
        set_role(self, "muted")

    def show_image(self, image: QImage) -> None:
        self._image = image
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        if self._image is None:
            return
        ratio = self.devicePixelRatioF()
        room = (self.size() * ratio).boundedTo(self._image.size())
        smooth = Qt.TransformationMode.SmoothTransformation
        shown = self._image.scaled(room, Qt.AspectRatioMode.KeepAspectRatio, smooth)
        shown.setDevicePixelRatio(ratio)
        self.setPixmap(QPixmap.fromImage(shown))
