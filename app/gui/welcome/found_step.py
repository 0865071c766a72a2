"""Second step: what this computer has for a model, and which models are on it already."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QStorageInfo, Qt
from PySide6.QtWidgets import QWidget

from app.core.errors import AppError
from app.gui.api.node_client import Call, Json
from app.gui.app.app_context import AppContext
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.icons import icon
from app.gui.look.theme import Theme
from app.gui.models.folder_dialog import choose_folder, choose_words
from app.gui.this_computer.hardware_words import unused_graphics
from app.gui.welcome.already_here import AlreadyHere
from app.gui.welcome.other_models import OtherModels
from app.gui.welcome.step import Step
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, column, row

FEW_BYTES = 20 << 30  # a model of 8 GB, its reserve, and some room for the owner


class Found(QWidget):
    """One thing that was found: a picture, what it is, how much of it."""

    def __init__(self, theme: Theme, picture: str, title: str) -> None:
        super().__init__()
        self._theme, self._name = theme, picture
        self._picture = label()
        self.value = paragraph("")
        self.setAccessibleName(title)
        words = column(label(title, "caption"), self.value, gap=0)
        box = row(self._picture, gap=sizes.M)
        box.addLayout(words, 1)
        box.setAlignment(self._picture, Qt.AlignmentFlag.AlignVCenter)
        self.setLayout(box)
        theme.changed.connect(self._paint)
        self._paint()

    def _paint(self) -> None:
        side = self._theme.px(sizes.XL)
        colour = self._theme.colours.accent
        self._picture.setPixmap(icon(self._name, colour).pixmap(side, side))


class FoundStep(Step):
    """Device and memory from the node, the disk from the system."""

    def __init__(self, services: AppContext, others: OtherModels) -> None:
        super().__init__(
            services,
            self.tr("What this computer has"),
            self.tr("A model needs memory most of all. You decide later how much of it is lent."),
        )
        theme = services.theme
        self._asked: Call | None = None
        self.device = Found(theme, "processor", self.tr("Computes with"))
        self.unused = paragraph("", "warning")
        self.unused.hide()
        self.memory = Found(theme, "memory", self.tr("Memory"))
        self.disk = Found(theme, "disk", self.tr("Disk for models"))
        self.choose = button(choose_words(), lambda: choose_folder(services, self))
        self.few = paragraph(
            self.tr("That is little for models. Another disk of this computer may have more room."), "warning"
        )
        below = row(self.choose, None)
        computer = card(self.device, self.unused, self.memory, self.disk, self.few, below, gap=sizes.L)
        self.content.addWidget(computer)
        self._others = others
        self.content.addWidget(AlreadyHere(others))
        services.pool.changed.connect(self._tell)
        self._tell()

    def entered(self) -> None:
        self._others.look()
        self._tell()

    def _tell(self) -> None:
        looking = self.tr("Still looking…")
        this = next((one for one in self.services.pool.machines if one.get("this")), {})
        lending = self.services.pool.node.get("lending") or {}
        self.device.value.setText(str(this.get("device") or looking))
        memory = looking
        if total := lending.get("total_bytes"):
            free = formats.size(lending.get("free_bytes") or 0)
            words = self.tr("{free} of {total} are free now")
            memory = words.format(free=free, total=formats.size(total))
        self.memory.value.setText(memory)
        self.disk.value.setText(self._disk())
        if self.isVisible() and self._asked is None and self.services.pool.is_there:
            self._asked = self.services.client.get("/machine", self._tell_unused, self._not_told)

    def _tell_unused(self, machine: Json) -> None:
        """Who has a card and is told of a processor only would look for a fault."""
        self.unused.setText(unused_graphics(machine))
        self.unused.setVisible(bool(self.unused.text()))

    def _not_told(self, _error: AppError) -> None:
        self._asked = None  # the next news of the node asks again

    def _disk(self) -> str:
        now = self.services.pool.snapshot.get("models_folder") or {}
        disk = QStorageInfo(_existing(str(now.get("folder") or self.services.launcher.home)))
        there = disk.isValid() and now.get("there", True)
        low = there and disk.bytesAvailable() < FEW_BYTES
        self.few.setVisible(low)
        self.choose.setVisible(self.services.pool.is_there and (low or not now.get("default", True)))
        if not there:
            return self.tr("The disk could not be read")
        return self.tr("{free} are free").format(free=formats.size(disk.bytesAvailable()))


def _existing(folder: str) -> str:
    """The folder, or the nearest one above it that is there: it may be made with the first download."""
    paths = (Path(folder), *Path(folder).parents)
    return str(next((one for one in paths if one.is_dir()), folder))
