"""The panel below the map or table, with details of the selected machine and its link, and action buttons."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication, QObject, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QMenu, QWidget

from app.gui.app.app_context import AppContext
from app.gui.look import drawing, formats, sizes
from app.gui.look.drawing import icon
from app.gui.look.theme import Theme, set_role
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import LenderLink, LinkFacts, MachineFacts
from app.gui.pool.pool_actions import MachineActions
from app.gui.widgets.buttons import IconButton, button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import ElidedLabel, label, paragraph, tooltip
from app.gui.widgets.layouts import clear_layout, column, row

COLUMNS, COLUMN_WIDTH = 3, 240  # maximum number of columns; minimum width of each, including the names
LEAST_CHARACTERS = 32  # minimum width of name, state and reason beside the buttons
TITLE_WIDTH = 240
AGES_MS = 30_000
Fact = tuple[str, str]  # name and value


class Inspector(QFrame):
    """The details panel. It is hidden if no machine is selected."""

    def __init__(self, services: AppContext, actions: MachineActions, close: Callable[[], object]) -> None:
        super().__init__()
        set_role(self, "card")
        self.setAccessibleName(self.tr("Details"))
        self._services, self._actions = services, actions
        self._machine: MachineFacts | None = None
        self._lender_links: Sequence[LenderLink] = ()
        self._shown: object = None
        self.title = label("", "section")
        self._picture, self.state = label(), label()
        self.why = ElidedLabel("", "muted")
        self.buttons = MachineButtons(services.theme, actions, self)
        close_button = IconButton(services.theme, "close", self.tr("Close details"), close)
        words = row(self.title, self._picture, self.state, gap=sizes.S)
        words.addWidget(self.why, 1)
        heading = QWidget()
        heading.setLayout(words)
        head = Beside(heading, *self.buttons.all, close_button, gap=sizes.S, least=LEAST_CHARACTERS)
        self.trouble = paragraph("")
        self.use = button("", self._use_interface)
        self._trouble_row = QWidget()
        self._trouble_row.setLayout(Beside(self.trouble, self.use, gap=sizes.S))
        self.facts = FactGrid(services.theme)
        box = column(head, self._trouble_row, self.facts, gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.M, sizes.M, sizes.L)
        self.setLayout(box)
        self._ages = QTimer(self)  # measurements age even without a new snapshot
        self._ages.setInterval(AGES_MS)
        self._ages.timeout.connect(lambda: self.show_machine(self._machine, self._lender_links))
        self.hide()

    def show_machine(self, machine: MachineFacts | None, lender_links: Sequence[LenderLink] = ()) -> None:
        """Show the details of a machine, or hide the panel if `machine` is None.

        lender_links: the machine's links to machines other than the central one.
        """
        self.setVisible(machine is not None)
        if machine is None:
            self._ages.stop()
        elif not self._ages.isActive():
            self._ages.start()
        self._machine, self._lender_links = machine, lender_links
        links = [machine.link if machine else None, *(entry.link for entry in lender_links)]
        ages = [link and machine_words.measured_when(link) for link in links]
        now = (machine, tuple(lender_links), ages, self._actions.testing, self._services.theme.colors)
        if machine is None or now == self._shown:
            return
        self._shown = now
        state = machine_words.state_badge(machine)
        side = self._services.theme.px(sizes.SECTION)
        color = self._services.theme.color(state.color).name()
        self.title.setText(drawing.elided(machine.name, self.title.font(), self._services.theme.px(TITLE_WIDTH)))
        self.title.setToolTip(tooltip(machine.name))
        self._picture.setPixmap(icon(state.icon, color).pixmap(side, side))
        self.state.setText(state.word)
        self.why.say(machine_words.state_reason(machine))
        self.buttons.show_machine(machine)
        self._show_trouble(machine.link)
        facts = _machine_details(machine)
        if machine.link is not None:
            facts += _link_details(machine.link)
        self.facts.show_facts(facts + [_lender_link_detail(machine.id, entry) for entry in lender_links])

    def _show_trouble(self, link: LinkFacts | None) -> None:
        """Show the problem with the link and, if there is a faster interface, a button that switches to it."""
        self._trouble_row.setVisible(link is not None and bool(link.trouble))
        if link is not None:
            self.trouble.setText(link.trouble)
            self.use.setText(self.tr("Use {interface}").format(interface=link.better_interface))
            self.use.setVisible(bool(link.better_interface))
            self.use.setEnabled(not self._actions.testing)

    def _use_interface(self) -> None:
        if self._machine is not None:
            self._actions.use_interface(self._machine)


class MachineButtons(QObject):
    """The buttons for the actions on the selected machine."""

    def __init__(self, theme: Theme, actions: MachineActions, parent: QWidget) -> None:
        super().__init__(parent)
        self._actions = actions
        self._machine: MachineFacts | None = None
        self.again = button(self.tr("Use again"), lambda: self._with_machine(actions.use_again))
        self.leave = button(self.tr("Exclude"), lambda: self._with_machine(actions.toggle))
        self.test = button(self.tr("Test link"), lambda: self._with_machine(actions.test))
        self.unseen = button(self.tr("Find out why…"), lambda: self._with_machine(actions.find_out_why))
        self.pause = button(self.tr("Pause lending"))
        self.resume = button(self.tr("Lend again"), actions.resume)
        self._pauses = QMenu(self.pause)
        self.pause.setMenu(self._pauses)
        self.rename = button(self.tr("Rename"), lambda: self._with_machine(actions.rename))
        self.more = IconButton(theme, "more", self.tr("More"), self._open_more)
        self.all = (self.again, self.leave, self.test, self.unseen, self.pause, self.resume, self.rename, self.more)
        for widget in self.all:
            widget.hide()

    def show_machine(self, machine: MachineFacts) -> None:
        """Show only the buttons that apply to this machine."""
        self._machine = machine
        self.again.setVisible(machine.doubted)
        self.leave.setVisible((machine.lends or machine.left_out) and not machine.doubted)
        self.leave.setText(self.tr("Include again") if machine.left_out else self.tr("Exclude"))
        self.test.setVisible(machine.can_test)
        self.test.setEnabled(not self._actions.testing)
        self.test.setText(self.tr("Testing…") if self._actions.testing else self.tr("Test link"))
        self.unseen.setVisible(not machine.online and not machine.this)
        self.pause.setVisible(machine.this and machine.state != "paused")
        self.resume.setVisible(machine.this and machine.state == "paused")
        self.rename.setVisible(machine.this)
        self.more.setVisible(not machine.this)
        self._pauses.clear()
        self._actions.fill_pause(self._pauses, machine)

    @property
    def first(self) -> QWidget:
        """The first visible button, which gets the keyboard focus when the user opens the details."""
        return next((widget for widget in self.all if widget.isVisible()), self.more)

    def _with_machine(self, action: Callable[[MachineFacts], object]) -> None:
        if self._machine is not None:
            action(self._machine)

    def _open_more(self) -> None:
        if self._machine is not None:
            self._actions.menu(self._machine, self.more.mapToGlobal(self.more.rect().bottomLeft()))


class FactGrid(QWidget):
    """A grid of names and values, with as many columns as fit."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.shown: list[Fact] = []
        self._name_widths, self._value_widths = [0] * COLUMNS, [0] * COLUMNS
        self._n_columns = COLUMNS
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(sizes.S)
        self._grid.setVerticalSpacing(sizes.XS)

    def show_facts(self, facts: list[Fact]) -> None:
        """Fill the grid with these facts, column by column."""
        self.shown = facts
        clear_layout(self._grid)
        n_rows = -(-len(facts) // self._n_columns)
        self._name_widths, self._value_widths = [0] * COLUMNS, [0] * COLUMNS
        for place, (name, value) in enumerate(facts):
            across, down = divmod(place, n_rows)
            name_label, value_label = label(name, "muted"), ElidedLabel(value)
            value_label.setAccessibleName(f"{name}: {value}")
            self._grid.addWidget(name_label, down, 2 * across)
            self._grid.addWidget(value_label, down, 2 * across + 1)
            width = value_label.fontMetrics().horizontalAdvance(value) + 1
            self._name_widths[across] = max(self._name_widths[across], name_label.sizeHint().width())
            self._value_widths[across] = max(self._value_widths[across], width)
        self._share_width()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        n_columns = max(1, min(COLUMNS, self.width() // self._theme.px(COLUMN_WIDTH)))
        if n_columns != self._n_columns:
            self._n_columns = n_columns
            self.show_facts(self.shown)
        self._share_width()

    def _share_width(self) -> None:
        """Divide the width among the columns according to the width of their values."""
        room = self.width() - sum(self._name_widths) - 2 * self._n_columns * sizes.S
        for across, width in enumerate(divided_width(self._value_widths, room)):
            self._grid.setColumnStretch(2 * across + 1, width)


def divided_width(needs: list[int], room: int) -> list[int]:
    """Return the widths of columns that share `room` pixels.

    If not all of them fit, the widest columns are reduced to the same width.
    """
    shares, left = [0] * len(needs), max(0, room)
    for place, index in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        shares[index] = min(needs[index], left // (len(needs) - place))
        left -= shares[index]
    return shares


def _machine_details(machine: MachineFacts) -> list[Fact]:
    hardware, memory = machine.hardware, machine.memory
    details = [(_tr("Device"), hardware.device or _tr("unknown"))]
    if machine.other_version:
        details.append((_tr("Version"), machine.other_version))
    if machine.other_engine:
        details.append((_tr("Engine"), machine.other_engine))
    if hardware.link_mbit:
        details.append((_tr("Network"), machine_words.link_limit(machine)))
    if hardware.watts is not None:
        details.append((_tr("Power"), machine_words.power(machine)))
    if hardware.hottest_c is not None:
        details.append((_tr("Processor"), machine_words.temperature(machine)))
    details.append((_tr("For other computers"), machine_words.lent(machine)))
    if memory.own:
        details.append((_tr("Used by the model"), formats.size(memory.own)))
    details.append((_tr("Memory"), formats.size(memory.total) if memory.total else _tr("unknown")))
    details.append((_tr("Holds"), machine_words.held_models(machine) or _tr("no layers")))
    if machine.held.card:
        details.append((_tr("Computed by"), machine.held.card))
    if share := machine_words.compute_share(machine):
        details.append((_tr("Computing"), _tr("{percent} of the answer time").format(percent=share)))
    if machine.roles:
        details.append((_tr("Permissions"), machine_words.roles_text(machine.roles)))
    if not machine.this:  # the address of this machine is shown in the settings
        details.append((_tr("Address"), machine.address or _tr("unknown")))
    nobody = _tr("no other machine") if machine.this else _tr("nobody")
    details.append((_tr("Used by"), ", ".join(machine.used_by) or nobody))
    return details


def _link_details(link: LinkFacts) -> list[Fact]:
    details = [(_tr("Speed"), _both_ways(link)), (_tr("Round trip"), _round_trip(link))]
    if link.token_s is not None and link.chunk_s is not None:
        text = _tr("{token} per token, {chunk} per {count} prompt tokens")
        token, chunk = machine_words.milliseconds(link.token_s), machine_words.milliseconds(link.chunk_s)
        details.append((_tr("Transfer time"), text.format(token=token, chunk=chunk, count=link.chunk_tokens)))
    details.append((_tr("Connection"), machine_words.link_carrier(link) if link.kind else _tr("not measured")))
    if link.preferred:
        details.append((_tr("Preferred"), link.preferred))
    details.append((_tr("Measured"), machine_words.measured_when(link) or _tr("not yet")))
    if link.share is not None:
        details.append((_tr("Share of answer time"), machine_words.share_badge(link.share).word))
    return details


def _lender_link_detail(machine: str, between: LenderLink) -> Fact:
    """Return the fact about a machine's link to a machine other than the central one."""
    far = between.names[0 if between.ends[1] == machine else 1]
    return _tr("To {name}").format(name=far), machine_words.link_summary(between.link)


def _both_ways(link: LinkFacts) -> str:
    if link.out_bytes_per_s is None or link.in_bytes_per_s is None:
        return _tr("not measured")
    text = _tr("{out} outgoing, {back} incoming")
    return text.format(out=formats.rate(link.out_bytes_per_s), back=formats.rate(link.in_bytes_per_s))


def _round_trip(link: LinkFacts) -> str:
    if link.round_trip_s is None:
        return _tr("not measured")
    median = machine_words.milliseconds(link.round_trip_s)
    if link.slow_round_trip_s is None:
        return median
    text = _tr("{median} (95% under {slow})")
    return text.format(median=median, slow=machine_words.milliseconds(link.slow_round_trip_s))


def _tr(text: str) -> str:
    return QCoreApplication.translate("Household", text)
