"""The first page of the first run, with the name, hardware and intended use of this computer."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QStorageInfo, QSysInfo, Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QButtonGroup, QWidget

from app.api.computer import Computer
from app.core.errors import AppError
from app.core.machine_names import friendly_name, is_generated
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.drawing import icon
from app.gui.look.theme import Theme
from app.gui.models.folder_dialog import choose_folder, choose_folder_text
from app.gui.pool import machine_words
from app.gui.settings.updates import DailyCheck
from app.gui.this_computer.hardware_card import unused_graphics
from app.gui.this_computer.rule_controls import AutostartSwitch
from app.gui.welcome.household_picture import HouseholdPicture
from app.gui.welcome.option import Option
from app.gui.welcome.step import BOTH, LEND, ROLE_KEY, Step
from app.gui.widgets.buttons import button
from app.gui.widgets.fields import MachineName
from app.gui.widgets.flow import Flow
from app.gui.widgets.fold import Fold
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, column, layout_widget, row

# Room for a model of 8 GB, the reserve that downloads leave free, and some more for the user.
LOW_SPACE_BYTES = 20 << 30
MOST_SIDE_BY_SIDE = 1.25  # text size up to which two choices fit side by side


class PendingName(QObject):
    """A name that was entered before the node was running. It is sent to the node once the node is running.

    Its parent object is the pool, because the first run may end before the node is running.
    """

    refused = Signal(object)  # AppError

    def __init__(self, services: AppContext) -> None:
        super().__init__(services.pool)
        self._services, self._name, self._proposes = services, "", False
        services.pool.changed.connect(self._send)

    def set(self, name: str) -> None:
        """Set the name to send, replacing any earlier one. If it is empty, nothing is sent."""
        self._name, self._proposes = name, False

    def propose(self) -> None:
        """Send the suggested name, because the user left the page before the node was running."""
        self._name, self._proposes = "", True

    def _send(self) -> None:
        node = self._services.pool.now.node
        if self._proposes and node.name:
            self.set(host_name(node.name))
        name = self._name
        if name and node.id:
            self._name = ""
            path = f"/machines/{node.id}/name"
            self._services.client.post(path, {"name": name}, lambda _: None, self.refused.emit)


def host_name(name: str) -> str:
    """Return the host name to suggest for a machine with a generated name, or "" if it already has a real name.

    name: the current name of the node.
    """
    return friendly_name(QSysInfo.machineHostName()) if is_generated(name) else ""


class FirstPage(Step):
    """The page about this computer. It suggests a name and shows the hardware."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(
            services,
            self.tr("Welcome to Poolhouse"),
            self.tr(
                "Your home computers run one AI model together. Your chats stay on this computer; the others only "
                "process numbers."
            ),
        )
        self._call: Call | None = None
        self.picture = HouseholdPicture(services)
        self.name, self.hardware, self.role = NameField(services), HardwareRow(services), UseChoice(services)
        self.name.field.judged.connect(self._name_changed)
        self.pending_name = PendingName(services)
        self.updates = DailyCheck(services)
        more = layout_widget(column(card(AutostartSwitch(services)), self.updates, gap=sizes.M))
        self.more = Fold(services.theme, self.tr("More settings"), more)
        computer = layout_widget(column(self.picture, self.hardware, gap=sizes.M))
        for part in (computer, self.name, self.role, self.more):
            self.content.addWidget(part)
        services.pool.changed.connect(self._show)
        self._show()

    @property
    def main_enabled(self) -> bool:
        return self.name.field.fits and self._call is None

    @property
    def quiet_label(self) -> str:
        return self.tr("Skip the setup")

    @property
    def can_go_back(self) -> bool:
        return False

    @property
    def first_focus(self) -> QWidget:
        return self.name.field

    def entered(self) -> None:
        self.name.propose()
        self.hardware.refresh()
        self.picture.refresh()
        self.updates.refresh()
        self.name.field.selectAll()
        self._show()

    def press_main(self) -> None:
        """Save the role, and rename this machine now or as soon as the node is running."""
        self.retried.emit()
        self.services.preferences.keep(ROLE_KEY, self.role.chosen)
        name, node = self.name.field.name, self.services.pool.now.node
        self.pending_name.set("")
        if name in ("", node.name):
            if not node.name:
                self.pending_name.propose()
            self.finished.emit()
        elif node.id:
            self._call = self.services.client.post(
                f"/machines/{node.id}/name", {"name": name}, lambda _: self._renamed(), self._not_renamed
            )
            self.changed.emit()
        else:
            self.pending_name.set(name)
            self.finished.emit()

    def press_quiet(self) -> None:
        self.left.emit("")

    def cancel(self) -> None:
        self.updates.end()
        call, self._call = self._call, None
        if call is not None and call.running:
            call.cancel()

    def _renamed(self) -> None:
        self._call = None
        self.changed.emit()
        self.finished.emit()

    def _not_renamed(self, error: AppError) -> None:
        self._call = None
        self.changed.emit()
        self.failed.emit(error)

    def _name_changed(self) -> None:
        self._show()
        self.changed.emit()

    def _show(self) -> None:
        pool = self.services.pool
        own = self.name.field.name or self.tr("This computer")
        self.picture.show_household(pool.now, own)


class NameField(QWidget):
    """The field for the name of this computer. It suggests the computer's host name."""

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        self._pool = services.pool
        self.field = MachineName(self.tr("Name of this computer"))
        self.field.needed = False  # empty is valid, because the node will propose a name
        self.field.setPlaceholderText(self.tr("One moment…"))
        words = label(self.tr("Name of this computer"), "section")
        words.setBuddy(self.field)
        hint = paragraph(
            self.tr("Your other computers will see this name. It doesn't have to identify you."), "caption"
        )
        self.setLayout(column(words, self.field, self.field.problem, hint, gap=sizes.XS))
        self._proposed = ""  # the proposed name; any other text was entered by the user
        self._pool.changed.connect(self.propose)
        self.propose()

    def propose(self) -> None:
        """Suggest the host name, unless the user has named this machine or is typing a name."""
        name = self._pool.now.node.name
        if not name or self.field.text() != self._proposed:
            return
        self.field.needed = True
        self.field.setPlaceholderText("")
        if (proposed := host_name(name) or name) != self._proposed:
            self._proposed = proposed
            self.field.setText(proposed)


class HardwareFact(QWidget):
    """A fact about the hardware, with an icon, a title and a value."""

    def __init__(self, theme: Theme, picture: str, title: str) -> None:
        super().__init__()
        self._theme, self._name = theme, picture
        self._picture = label()
        self.value = label("")
        self.setAccessibleName(title)
        words = column(label(title, "caption"), self.value, gap=0)
        box = row(self._picture, gap=sizes.S)
        box.addLayout(words, 1)
        box.setAlignment(self._picture, Qt.AlignmentFlag.AlignVCenter)
        self.setLayout(box)
        theme.changed.connect(self._paint)
        self._paint()

    def _paint(self) -> None:
        side = self._theme.px(sizes.XL)
        self._picture.setPixmap(icon(self._name, self._theme.colors.accent).pixmap(side, side))


class HardwareRow(QWidget):
    """The hardware relevant to models in one row. Warnings appear below it only if they apply.

    The node reports the device and the memory. The free disk space comes from the operating system.
    """

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        self._services = services
        self._call: Call | None = None
        theme = services.theme
        self.device = HardwareFact(theme, "processor", self.tr("Runs models on"))
        self.memory = HardwareFact(theme, "memory", self.tr("Memory"))
        self.disk = HardwareFact(theme, "disk", self.tr("Disk for models"))
        self.unused, self.few = paragraph("", "warning"), paragraph("", "warning")
        self.unused.hide()
        self.few.setText(self.tr("That is not much space for models. Another disk on this computer may have more."))
        self.choose = button(choose_folder_text(), lambda: choose_folder(services, self))
        facts = Flow(self.device, self.memory, self.disk, gap=sizes.L)
        self.setLayout(column(facts, self.unused, self.few, row(self.choose, None), gap=sizes.S))
        services.pool.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the currently known hardware."""
        looking = self.tr("Checking…")
        pool = self._services.pool
        lending, machine = pool.now.node.lending, pool.now.machines.get(pool.now.node.id)
        self.device.value.setText((machine.device if machine else None) or looking)
        memory = looking
        if lending.total_bytes:
            text = self.tr("{free} of {total} free")
            memory = text.format(free=formats.size(lending.free_bytes), total=formats.size(lending.total_bytes))
        self.memory.value.setText(memory)
        self.disk.value.setText(self._disk())
        if self.isVisible() and self._call is None and pool.is_there:
            show, failed = self._show_unused, self._no_hardware
            self._call = self._services.client.get("/machine", show, failed, answer=Computer)

    def _show_unused(self, computer: Computer) -> None:
        """Explain why a graphics card is not used, so that users do not think it is broken."""
        self.unused.setText(unused_graphics(computer))
        self.unused.setVisible(bool(self.unused.text()))

    def _no_hardware(self, _: AppError) -> None:
        self._call = None  # requested again at the next change of the node's snapshot

    def _disk(self) -> str:
        models = self._services.pool.now.models_folder
        disk = QStorageInfo(_existing(models.folder or str(self._services.launcher.home)))
        is_there = disk.isValid() and models.there
        is_low = is_there and disk.bytesAvailable() < LOW_SPACE_BYTES
        self.few.setVisible(is_low)
        self.choose.setVisible(self._services.pool.is_there and (is_low or not models.default))
        if not is_there:
            return self.tr("The disk could not be read")
        return self.tr("{free} free").format(free=formats.size(disk.bytesAvailable()))


def _existing(folder: str) -> str:
    """Return the folder or, if the first download has yet to create it, its nearest existing parent."""
    paths = (Path(folder), *Path(folder).parents)
    return str(next((path for path in paths if path.is_dir()), folder))


class UseChoice(QWidget):
    """The choice between using models and lending, or only lending.

    The role determines which page opens first. Lending itself is configured on the This computer page.
    """

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        self._group = QButtonGroup(self)
        both = Option(
            machine_words.role_name(machine_words.USE_AND_LEND),
            self.tr("You chat on this computer. Other computers can use its memory when you don't need it."),
        )
        lend = Option(
            machine_words.role_name(machine_words.LEND),
            self.tr("Nobody chats on this computer. Poolhouse opens on the page that shows what it lends."),
        )
        self.both, self.lend = both.button, lend.button
        for option in (both, lend):
            self._group.addButton(option.button)
        chosen = self.lend if services.preferences.text(ROLE_KEY, BOTH) == LEND else self.both
        chosen.setChecked(True)
        self._theme = services.theme
        self._cards = row(both, lend, gap=sizes.M)
        for place in range(2):
            self._cards.setStretch(place, 1)
        words = label(self.tr("How will you use this computer?"), "section")
        words.setWordWrap(True)
        self.setLayout(column(words, self._cards, gap=sizes.S))
        self._theme.changed.connect(self._arrange)
        self._arrange()

    def _arrange(self) -> None:
        """Stack the choices vertically if the text is too large for them to fit side by side."""
        is_large = self._theme.scale > MOST_SIDE_BY_SIDE
        way = QBoxLayout.Direction.TopToBottom if is_large else QBoxLayout.Direction.LeftToRight
        self._cards.setDirection(way)

    @property
    def chosen(self) -> str:
        return LEND if self.lend.isChecked() else BOTH
