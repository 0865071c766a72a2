"""Second step: what this computer has for a model."""

from __future__ import annotations

from PySide6.QtCore import QStorageInfo, Qt
from PySide6.QtWidgets import QWidget

from app.gui import formats
from app.gui import theme as sizes
from app.gui.first_run.step import Step
from app.gui.icons import icon
from app.gui.parts.layouts import card, column, row
from app.gui.parts.text import label, paragraph
from app.gui.services import Services
from app.gui.theme import Theme


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

    def __init__(self, services: Services) -> None:
        super().__init__(
            services,
            self.tr("What this computer has"),
            self.tr("A model needs memory most of all. You decide later how much of it is lent."),
        )
        theme = services.theme
        self.device = Found(theme, "processor", self.tr("Computes with"))
        self.memory = Found(theme, "memory", self.tr("Memory"))
        self.disk = Found(theme, "disk", self.tr("Disk for models"))
        self.content.addWidget(card(self.device, self.memory, self.disk, gap=sizes.L))
        services.pool.changed.connect(self._tell)
        self._tell()

    def entered(self) -> None:
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

    def _disk(self) -> str:
        disk = QStorageInfo(str(self.services.launcher.home))
        if not disk.isValid():
            return self.tr("The disk could not be read")
        return self.tr("{free} are free").format(free=formats.size(disk.bytesAvailable()))
