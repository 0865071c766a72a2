"""The steps of the first run, from naming this computer to the final step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QStorageInfo, Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QButtonGroup, QFrame, QRadioButton, QVBoxLayout, QWidget

from app.api.computer import Computer
from app.api.models import Catalog, Starter, StarterResponse
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app import navigation
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.drawing import icon
from app.gui.look.sentences import GUIDE
from app.gui.look.theme import Theme, set_role
from app.gui.models.details.about_view import about_of
from app.gui.models.folder_dialog import choose_folder, choose_folder_text
from app.gui.models.starter_card import why
from app.gui.pool import machine_words
from app.gui.pool.household_dialogs import AddMachineDialog
from app.gui.pool.join_dialog import JoinHouseholdDialog
from app.gui.pool.machine_facts import machines_of, may_change_household
from app.gui.settings.updates import DailyCheck
from app.gui.this_computer.hardware_card import unused_graphics
from app.gui.this_computer.rule_controls import AutostartSwitch
from app.gui.welcome.other_models import OtherModels, OtherModelsCard
from app.gui.widgets.buttons import button
from app.gui.widgets.fields import MachineName
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, column, row

# Room for a model of 8 GB, the reserve that downloads leave free, and some more for the user.
LOW_SPACE_BYTES = 20 << 30
ROLE_KEY, BOTH, LEND = "first_run/role", "both", "lend"
Then = Callable[[], None]
Failed = Callable[[AppError], None]


class Step(QWidget):
    """A step of the first run, with a title, a sentence, its content, and an action for the Next button.

    Subclasses fill `content`. The user can leave every choice at its default.
    """

    leave = Signal(str)  # end the first run and open this page
    validity_changed = Signal()  # `is_valid` may have changed

    def __init__(self, services: AppContext, title: str, sentence: str) -> None:
        super().__init__()
        self.services = services
        self.title = label(title, "title")
        self.sentence = paragraph(sentence, "muted")
        self.content: QVBoxLayout = column(gap=sizes.M)
        box = column(self.title, self.sentence, gap=sizes.S)
        box.addSpacing(sizes.M)
        box.addLayout(self.content)
        box.addStretch(1)
        self.setLayout(box)
        self._call: Call | None = None

    @property
    def next_label(self) -> str:
        """The label of the primary button."""
        return self.tr("Next")

    @property
    def is_valid(self) -> bool:
        """Return whether the input is valid. If not, the step itself shows the reason."""
        return True

    @property
    def next_page(self) -> str:
        """The page to open after the last step, or an empty string for the default page."""
        return ""

    def entered(self) -> None:
        """Prepare the step before it is shown."""

    def apply(self, then: Then, failed: Failed) -> None:
        """Apply the user's choice and call `then`. On failure, call `failed`, and the user stays on this step."""
        then()

    def post(self, path: str, body: dict[str, object], then: Then, failed: Failed) -> None:
        """Send a request, canceling the previous one."""
        self.cancel()
        self._call = self.services.client.post(path, body, lambda _: then(), failed)

    def cancel(self) -> None:
        """Cancel the pending request."""
        if self._call is not None and self._call.running:
            self._call.cancel()
        self._call = None


class PendingName(QObject):
    """A name for this machine that was entered before the node was running, and is sent as soon as it is.

    Its parent is the pool, because the first run may end before the node is running.
    """

    refused = Signal(object)  # AppError

    def __init__(self, services: AppContext) -> None:
        super().__init__(services.pool)
        self._services, self._name = services, ""
        services.pool.changed.connect(self._send)

    def set(self, name: str) -> None:
        """Set the name to send, replacing any earlier one. If it is empty, nothing is sent."""
        self._name = name

    def _send(self) -> None:
        name, node_id = self._name, self._services.pool.now.node.id
        if name and node_id:
            self._name = ""
            path = f"/machines/{node_id}/name"
            self._services.client.post(path, {"name": name}, lambda _: None, self.refused.emit)


class NameStep(Step):
    """The step that asks for the name of this computer. The node proposes a name."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(
            services,
            self.tr("Welcome to Poolhouse"),
            self.tr(
                "The computers in your home run one language model together. Your chats stay on this computer. The "
                "other computers only process numbers from inside the model."
            ),
        )
        self.field = MachineName(self.tr("Name of this computer"))
        self.field.needed = False  # empty is valid, because the node will propose a name
        self.field.judged.connect(self.validity_changed)
        self.field.setPlaceholderText(self.tr("One moment…"))
        words = label(self.tr("Name of this computer"))
        words.setBuddy(self.field)
        self.content.addWidget(words)
        self.content.addWidget(self.field)
        self.content.addWidget(self.field.problem)
        hint = self.tr("Your other computers see this name. It doesn't have to identify you.")
        self.content.addWidget(paragraph(hint, "caption"))
        self._filled = ""  # the name that the node proposed; any other text was entered by the user
        self.pending_name = PendingName(services)
        services.pool.changed.connect(self._fill)
        self._fill()

    def entered(self) -> None:
        self._fill()
        self.field.setFocus()
        self.field.selectAll()

    @property
    def is_valid(self) -> bool:
        return self.field.fits

    def apply(self, then: Then, failed: Failed) -> None:
        """Rename this machine now, or as soon as the node is running."""
        name, node = self.field.name, self.services.pool.now.node
        self.pending_name.set("")
        if name in ("", self._filled, node.name):
            then()
        elif node.id:
            self.post(f"/machines/{node.id}/name", {"name": name}, then, failed)
        else:
            self.pending_name.set(name)
            then()

    def _fill(self) -> None:
        name = self.services.pool.now.node.name
        if name and self.field.text() == self._filled:
            self._filled = name
            self.field.needed = True
            self.field.setPlaceholderText("")
            self.field.setText(self._filled)


class HardwareItem(QWidget):
    """A row about a hardware component, with an icon, a title and a value."""

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
        color = self._theme.colors.accent
        self._picture.setPixmap(icon(self._name, color).pixmap(side, side))


class HardwareStep(Step):
    """The step that shows the hardware relevant to models.

    The node reports the device and the memory. The free disk space comes from the operating system.
    """

    def __init__(self, services: AppContext, other_models: OtherModels) -> None:
        super().__init__(
            services,
            self.tr("About this computer"),
            self.tr("Memory matters most for models. You can decide later how much of it to lend."),
        )
        theme = services.theme
        self._call_hardware: Call | None = None
        self.device = HardwareItem(theme, "processor", self.tr("Computes with"))
        self.unused = paragraph("", "warning")
        self.unused.hide()
        self.memory = HardwareItem(theme, "memory", self.tr("Memory"))
        self.disk = HardwareItem(theme, "disk", self.tr("Disk for models"))
        self.choose = button(choose_folder_text(), lambda: choose_folder(services, self))
        self.few = paragraph(
            self.tr("That is not much space for models. Another disk on this computer may have more."), "warning"
        )
        below = row(self.choose, None)
        computer = card(self.device, self.unused, self.memory, self.disk, self.few, below, gap=sizes.L)
        self.content.addWidget(computer)
        self._other_models = other_models
        self.content.addWidget(OtherModelsCard(other_models))
        services.pool.changed.connect(self._show)
        self._show()

    def entered(self) -> None:
        self._other_models.search()
        self._show()

    def _show(self) -> None:
        looking = self.tr("Still looking…")
        pool = self.services.pool
        lending, machine = pool.now.node.lending, pool.now.machines.get(pool.now.node.id)
        self.device.value.setText((machine.device if machine else None) or looking)
        memory = looking
        if lending.total_bytes:
            text = self.tr("{free} of {total} is free now")
            memory = text.format(free=formats.size(lending.free_bytes), total=formats.size(lending.total_bytes))
        self.memory.value.setText(memory)
        self.disk.value.setText(self._disk())
        if self.isVisible() and self._call_hardware is None and pool.is_there:
            show, failed = self._show_unused, self._no_hardware
            self._call_hardware = self.services.client.get("/machine", show, failed, answer=Computer)

    def _show_unused(self, computer: Computer) -> None:
        """Explain why a graphics card is not used, so that users do not think it is broken."""
        self.unused.setText(unused_graphics(computer))
        self.unused.setVisible(bool(self.unused.text()))

    def _no_hardware(self, _: AppError) -> None:
        self._call_hardware = None  # requested again at the next change of the node's snapshot

    def _disk(self) -> str:
        models = self.services.pool.now.models_folder
        disk = QStorageInfo(_existing(models.folder or str(self.services.launcher.home)))
        is_there = disk.isValid() and models.there
        is_low = is_there and disk.bytesAvailable() < LOW_SPACE_BYTES
        self.few.setVisible(is_low)
        self.choose.setVisible(self.services.pool.is_there and (is_low or not models.default))
        if not is_there:
            return self.tr("The disk could not be read")
        return self.tr("{free} is free").format(free=formats.size(disk.bytesAvailable()))


def _existing(folder: str) -> str:
    """Return the folder or, if the first download has yet to create it, its nearest existing parent."""
    paths = (Path(folder), *Path(folder).parents)
    return str(next((path for path in paths if path.is_dir()), folder))


class RoleStep(Step):
    """The step that asks whether this computer uses models and lends, or only lends.

    The role determines the page that opens first. Lending itself is configured on the This computer page.
    """

    def __init__(self, services: AppContext) -> None:
        super().__init__(
            services,
            self.tr("How will you use this computer?"),
            self.tr(
                "Either way, your other computers can use this computer's memory. You can pause lending at any time."
            ),
        )
        self._group = QButtonGroup(self)
        self.both = self._choice(
            machine_words.role_name(machine_words.USE_AND_LEND),
            self.tr("You chat on this computer. Your other computers can use its memory while you don't need it."),
        )
        self.lend = self._choice(
            machine_words.role_name(machine_words.LEND),
            self.tr("Nobody chats on this computer. Poolhouse opens on the page that shows its lending."),
        )
        chosen = self.lend if services.preferences.text(ROLE_KEY, BOTH) == LEND else self.both
        chosen.setChecked(True)
        self.content.addSpacing(sizes.S)
        self.content.addWidget(card(AutostartSwitch(services)))
        self.updates = DailyCheck(services)
        self.content.addWidget(self.updates)

    def entered(self) -> None:
        self.updates.refresh()
        button = self._group.checkedButton()
        if button is not None:
            button.setFocus()

    def cancel(self) -> None:
        self.updates.end()
        super().cancel()

    def apply(self, then: Then, failed: Failed) -> None:
        self.services.preferences.keep(ROLE_KEY, LEND if self.lend.isChecked() else BOTH)
        then()

    def _choice(self, title: str, sentence: str) -> QRadioButton:
        option = Option(title, sentence)
        self._group.addButton(option.button)
        self.content.addWidget(option)
        return option.button


class Option(QFrame):
    """A radio button with an explanation, on a card that is clickable everywhere."""

    def __init__(self, title: str, sentence: str) -> None:
        super().__init__()
        self.button = QRadioButton(title)
        self.button.setAccessibleDescription(sentence)
        self.button.toggled.connect(self._paint)
        words = paragraph(sentence, "muted")
        words.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        words.setContentsMargins(sizes.XL + sizes.S, 0, 0, 0)
        box = column(self.button, words, gap=0)
        box.setContentsMargins(sizes.L, sizes.M, sizes.L, sizes.L)
        self.setLayout(box)
        self._paint()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802  Qt's name
        self.button.setChecked(True)
        self.button.setFocus()
        super().mouseReleaseEvent(event)

    def _paint(self) -> None:
        set_role(self, "option-chosen" if self.button.isChecked() else "option")


class PairStep(Step):
    """The step that offers to add another computer. This can wait, because one machine is enough to start."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(
            services,
            self.tr("Do you have another computer?"),
            self.tr(
                "Together, your computers can run larger models. You can also add the other one later on the Pool page."
            ),
        )
        self.joined = label("", "good")
        self._which = label("", "section")
        self._first = card(
            self._which,
            paragraph(self.tr("Shows a code to enter on the other computer."), "muted"),
            row(button(self.tr("Add a machine…"), self._add), None),
            gap=sizes.S,
        )
        self._other = card(
            label(self.tr("Another computer already runs Poolhouse"), "section"),
            paragraph(self.tr("Click “Add a machine” there, and enter the code here."), "muted"),
            row(button(self.tr("Join a household…"), self._join), None),
            gap=sizes.S,
        )
        self.away = paragraph(
            self.tr("Waiting for the background service. Pairing begins when the service responds."), "muted"
        )
        for part in (self.joined, self.away, self._first, self._other):
            self.content.addWidget(part)
        services.pool.changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        machines = machines_of(self.services.pool.now)
        names = [machine.name for machine in machines if not machine.this]
        words = self.tr("Paired with {names}.").format(names=", ".join(names))
        self.joined.setText(words if names else "")
        self.joined.setVisible(bool(names))
        first, more = self.tr("This is the first computer"), self.tr("Add another")
        self._which.setText(more if names else first)
        self._first.setVisible(may_change_household(machines))
        self._other.setVisible(not names)
        self.away.setVisible(not self.services.pool.is_there)
        for part in (self._first, self._other):
            part.setEnabled(self.services.pool.is_there)

    def _add(self) -> None:
        AddMachineDialog(self.services, self).open()

    def _join(self) -> None:
        JoinHouseholdDialog(self.services, self).open()


class Recommendation(QWidget):
    """A card with the recommended model, hidden until it is known. Nothing is downloaded without consent."""

    page_requested = Signal()  # the user asked for the Models page

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        self._client = services.client
        self._call: Call | None = None
        self._starter: Starter | None = None
        self.title, self.about = label("", "section"), paragraph("")
        self.fetch = paragraph("", "caption")
        show = button(self.tr("Show on the Models page"), self.page_requested.emit)
        inner = card(self.title, self.about, self.fetch, row(show, None), gap=sizes.S)
        self.setLayout(column(inner))
        self.hide()

    def refresh(self) -> None:
        """Request the recommendation, but only once."""
        if self._starter is None and self._call is None:
            self._call = self._client.get("/starter", self._starter_loaded, self._none, answer=StarterResponse)

    def cancel(self) -> None:
        """Cancel the pending request."""
        call, self._call = self._call, None
        if call is not None and call.running:
            call.cancel()

    def _none(self, _: object) -> None:
        self._call = None

    def _starter_loaded(self, answer: StarterResponse) -> None:
        self._call, self._starter = None, answer.starter
        if self._starter is not None:
            self._call = self._client.get("/catalog", self._catalog_loaded, self._none, answer=Catalog)

    def _catalog_loaded(self, answer: Catalog) -> None:
        self._call, starter = None, self._starter
        assert starter is not None
        model = next(model for model in answer.models if model.id == starter.id)
        self.title.setText(self.tr("Recommended: {name}").format(name=starter.name))
        self.about.setText(f"{about_of(model)} {why(starter)}")
        size = formats.size(starter.size_bytes or 0)
        self.fetch.setText(self.tr("{size} download from huggingface.co.").format(size=size))
        self.show()


class ReadyStep(Step):
    """The final step, which tells what is ready and what to do next."""

    def __init__(self, services: AppContext, other_models: OtherModels) -> None:
        super().__init__(
            services, self.tr("Ready"), self.tr("Your first answer needs no download or network connection.")
        )
        about = self.tr(
            "Ask the small built-in model how Poolhouse works. For everything else, load a larger model on the "
            "Models page."
        )
        guide = card(label(self.tr("The Guide"), "section"), paragraph(about), gap=sizes.S)
        self.content.addWidget(guide)
        self._other_models = other_models
        self.here, self.recommended = OtherModelsCard(other_models, is_last=True), Recommendation(services)
        for offer in (self.here, self.recommended):
            offer.page_requested.connect(lambda: self.leave.emit(navigation.MODELS))
            self.content.addWidget(offer)

    def entered(self) -> None:
        self._other_models.search()
        self.recommended.refresh()

    def cancel(self) -> None:
        self.recommended.cancel()
        super().cancel()

    @property
    def next_label(self) -> str:
        return self.tr("Ask the Guide") if self._asks else self.tr("Finish")

    @property
    def next_page(self) -> str:
        return f"{navigation.CHAT}/{GUIDE}" if self._asks else ""

    @property
    def _asks(self) -> bool:
        """Return whether the Guide will answer next. It will not if this computer only lends or has other hosts."""
        lends = self.services.preferences.text(ROLE_KEY, BOTH) == LEND
        return not lends and self.services.pool.now.hosts is None
