"""The Pool page, with the loaded model, the machines as a map or as tables, and actions on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QComboBox, QSizePolicy, QStackedWidget, QToolButton, QWidget

from app.api.chat_api import OtherServer
from app.gui.api.node_state import GONE
from app.gui.app.app_context import AppContext
from app.gui.app.navigation import LOG_PAGE
from app.gui.app.page import Page
from app.gui.app.pool_status import other_models
from app.gui.diagnostics.dialogs import open_doctor
from app.gui.look import sizes
from app.gui.look.drawing import icon
from app.gui.look.sentences import model_name, said
from app.gui.look.theme import Theme, set_role
from app.gui.pool import machine_words
from app.gui.pool.headline import Headline, MoveNotice
from app.gui.pool.household_dialogs import AddMachineDialog, LeaveHouseholdDialog
from app.gui.pool.inspector import Inspector
from app.gui.pool.join_dialog import JoinHouseholdDialog
from app.gui.pool.load_forecast import LoadForecast, WhatIf
from app.gui.pool.machine_facts import (
    LenderLink,
    MachineFacts,
    Stranger,
    active_of,
    hosts_of,
    is_foreign,
    lender_links,
    machines_of,
    may_change_household,
    strangers_of,
)
from app.gui.pool.map.map_view import MapView
from app.gui.pool.pool_actions import MachineActions, ModelActions
from app.gui.pool.pool_tables import LinkTable, MachineTable
from app.gui.pool.server_table import ServerTable
from app.gui.widgets.buttons import IconButton, ToolButton, button
from app.gui.widgets.fields import DropDown
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, show_if, tooltip
from app.gui.widgets.layouts import EmptyState, clear_layout, column, layout_widget, row, scrolled

HostName = tuple[str, str]  # ID and name
Placement = tuple[str, str]  # the machine in the center and one of its models, or "" for all
MAP, TABLE = "map", "table"
VIEW = "pool/view"  # key in the preferences
LEAST_HEIGHT = 160  # of the map and the table
MOST_STRANGERS = 4
MOST_LETTERS = 24  # maximum length of a nearby machine's name


class ViewChoice(QWidget):
    """Two buttons that switch between the map and the table by calling `chosen(name)`."""

    def __init__(self, theme: Theme, chosen: Callable[[str], object]) -> None:
        super().__init__()
        self._theme = theme
        self._group = QButtonGroup(self)
        self.buttons: dict[str, QToolButton] = {}
        box = row(gap=sizes.XS)
        for name, words in ((MAP, self.tr("Map")), (TABLE, self.tr("Table"))):
            choice = ToolButton()
            choice.setText(f"\N{EN SPACE}{words}")  # space between icon and text
            choice.setAccessibleName(words)
            choice.setCheckable(True)
            choice.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            choice.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            set_role(choice, "choice")
            choice.clicked.connect(lambda _=False, name=name: chosen(name))
            self._group.addButton(choice)
            self.buttons[name] = choice
            box.addWidget(choice)
        self.setLayout(box)
        theme.changed.connect(self._paint)
        self._paint()

    def show_chosen(self, name: str) -> None:
        if name in self.buttons:
            self.buttons[name].setChecked(True)

    def _paint(self) -> None:
        side = self._theme.px(sizes.SECTION)
        for name, choice in self.buttons.items():
            choice.setIcon(icon(name, self._theme.colors.text))
            choice.setIconSize(QSize(side, side))


class HouseholdViews(QStackedWidget):
    """A stack with the map and the tables of the household, and a note for when the node is unavailable."""

    chosen = Signal(str)  # machine ID, or ""
    opened = Signal(str)
    toggled = Signal(str)
    menu_wanted = Signal(str, QPoint)  # machine ID and screen position

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        self._theme = services.theme
        self.map = MapView(services.theme, services.motion)
        self.table, self.links = MachineTable(services.theme), LinkTable(services.theme)
        self.servers = ServerTable(services.theme)
        self.tables = QWidget()
        self.tables.setLayout(column(self.table, self.links, self.servers, gap=sizes.M))
        self.away = EmptyState(
            self.tr("Waiting for the background service"),
            self.tr("Your household will appear when the background service responds."),
            button(self.tr("Show log"), lambda: services.go(LOG_PAGE)),
        )
        for view in (self.map, self.tables, self.away):
            self.addWidget(view)
        for view in (self.map, self.table):
            view.chosen.connect(self.chosen)
            view.opened.connect(self.opened)
            view.toggled.connect(self.toggled)
            view.menu_wanted.connect(self.menu_wanted)

    def show_household(
        self,
        machines: Sequence[MachineFacts],
        active: frozenset[str],
        links: Sequence[LenderLink],
        servers: Sequence[OtherServer] = (),
    ) -> None:
        """Show the machines and the links between lenders. Highlight the machines in `active`."""
        self.map.show_machines(machines, active, links, servers)
        self.table.show_machines(machines)
        self.links.show_links(links)
        self.servers.show_servers(servers)

    def show_view(self, name: str) -> None:
        """Show the map or the table. "" shows the note that the node is unavailable."""
        view = {MAP: self.map, TABLE: self.tables, "": self.away}.get(name, self.map)
        if self.currentWidget() is not view:
            self.setCurrentWidget(view)

    def select(self, machine: str) -> None:
        """Select a machine in both views. "" clears the selection, but leaves a selected server."""
        if machine or not self.map.has_selected_server:
            self.map.select(machine)
        self.table.select(machine)

    def focus(self, name: str) -> None:
        view = self.table if name == TABLE else self.map
        view.setFocus(Qt.FocusReason.OtherFocusReason)

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        least, current = self._theme.px(LEAST_HEIGHT), self.currentWidget()
        layout = current.layout() if current is not None else None
        return QSize(0, least if layout is None else max(least, layout.minimumSize().height()))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return self.sizeHint()


class PlacementChoice(QWidget):
    """A drop-down list that selects the placement shown on the map.

    It is hidden unless several machines host a model, or this machine hosts several.
    """

    def __init__(self, chosen: Callable[[], object]) -> None:
        super().__init__()
        self._shown: object = None
        self._this = ""
        self._placements: list[Placement] = []
        self.box = DropDown()
        self.box.setAccessibleName(self.tr("Host shown on the map"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.box.activated.connect(lambda _: chosen())
        words = label(self.tr("Show the model of"), "muted")
        words.setBuddy(self.box)
        self.setLayout(Flow(words, self.box))
        self.hide()

    @property
    def center(self) -> str:
        """The host of the selected placement, or "" for this machine if there is no choice."""
        return self._chosen[0]

    @property
    def model(self) -> str:
        """The only model of this machine to show, or "" for all of them."""
        return self._chosen[1]

    @property
    def _chosen(self) -> Placement:
        index = self.box.currentIndex()
        is_only_own = self._placements == [(self._this, "")]
        return ("", "") if index < 0 or is_only_own else self._placements[index]

    def show_hosts(self, hosts: Sequence[HostName], this: str, models: Sequence[str] = ()) -> None:
        """List these hosts and this machine's models. Preserve the current selection if possible."""
        now = (tuple(hosts), this, tuple(models))
        if now == self._shown:
            return
        before, self._shown, self._this = self._chosen, now, this
        self._placements = []
        self.box.clear()
        for key, name in hosts:
            own = self.tr("{name} (this machine)").format(name=name) if key == this else name
            self._add((key, ""), own)
            if key == this and len(models) > 1:
                for model in models:
                    self._add((key, model), self.tr("{name}: {model}").format(name=name, model=model_name(model)))
        self.box.setCurrentIndex(self._placements.index(before) if before in self._placements else 0)
        self.setVisible(len(self._placements) > 1)

    def _add(self, placement: Placement, text: str) -> None:
        self._placements.append(placement)
        self.box.addItem(text)


class Nearby(QWidget):
    """A row of nearby machines outside the household. Their announced facts are unverified.

    A click calls `chosen(stranger)`. The row is hidden if there are no such machines.
    """

    def __init__(self, chosen: Callable[[Stranger], object]) -> None:
        super().__init__()
        self._chosen = chosen
        self._row = Flow()
        self.setLayout(self._row)
        self._shown: tuple[Stranger, ...] | None = None
        self.show_strangers(())

    def show_strangers(self, strangers: Sequence[Stranger]) -> None:
        """Show the first MOST_STRANGERS machines, and how many more there are."""
        if tuple(strangers) == self._shown:
            return
        self._shown = tuple(strangers)
        clear_layout(self._row)
        self.setVisible(bool(strangers))
        self._row.addWidget(label(self.tr("Nearby machines that are not in this household"), "caption"))
        same_title = Counter[str]()  # machines with the same title are told apart by number
        for stranger in self._shown[:MOST_STRANGERS]:
            title = self._title(stranger)
            same_title[title] += 1
            self._row.addWidget(self._entry(stranger, title, same_title[title]))
        if len(strangers) > MOST_STRANGERS:
            self._row.addWidget(label(self.tr("and %n more", "", len(strangers) - MOST_STRANGERS), "caption"))

    def _entry(self, stranger: Stranger, title: str, number: int) -> QWidget:
        """Return a button for a machine, with the system and hardware that the machine claims to have."""
        if number > 1:
            title = self.tr("{machine} (number {number})").format(machine=title, number=number)
        choice = button(title, partial(self._chosen, stranger), "link")
        if not stranger.claims:
            return choice
        claims = self.tr("{claims} (reported by that machine)").format(claims=stranger.claims)
        choice.setToolTip(tooltip(claims))
        choice.setAccessibleDescription(claims)
        return layout_widget(row(choice, label(stranger.claims, "caption"), gap=sizes.XS))

    def _title(self, stranger: Stranger) -> str:
        """Return the name or the address of a machine. Its ID would mean nothing to users."""
        by_address = self.tr("A machine at {address}").format(address=stranger.address) if stranger.address else ""
        name = stranger.name[:MOST_LETTERS] if stranger.name else by_address or machine_words.unnamed_machine()
        if stranger.pairing_address:
            return self.tr("{name} is ready to pair").format(name=name.replace("&", "&&"))
        return by_address or name


class PoolPage(Page):
    """The Pool page, which connects the map, the tables, the details panel and the dialogs."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, "")
        self.title.setText(self.tr("Pool"))
        self.machines: tuple[MachineFacts, ...] = ()
        self.lender_links: tuple[LenderLink, ...] = ()
        self._chosen = ""
        self._removed_reason: str | None = None
        self._is_stale = False  # whether something has changed while the page was hidden
        self.load_forecast = LoadForecast(services, self)
        self.machine_actions = MachineActions(self, self.load_forecast, lambda: self.machines)
        self.model_actions = ModelActions(self, self.load_forecast)
        self.destroyed.connect(self.load_forecast.stop)
        self.destroyed.connect(self.machine_actions.stop)
        self.destroyed.connect(self.model_actions.stop)
        self.later(self._make_head, self._make_views, self._make_panels, self._place, self._begin)

    def _begin(self) -> None:
        """Start following the node's snapshots. Called when the page is complete."""
        services = self.services
        for changed in (
            services.pool.changed,
            services.pool.link_changed,
            services.theme.changed,
            self.load_forecast.changed,
            self.machine_actions.changed,
            self.model_actions.changed,
        ):
            changed.connect(self._follow)
        self._show_view(self._usual_view())
        self._show()

    def shown(self) -> None:
        self.load_forecast.forget()  # another page may have measured speeds in the meantime

    def open(self, part: str) -> None:
        """Show the details of the machine whose ID is `part`."""
        if self._is_stale:  # the machine may be new
            self._show()
        self.choose(part)

    @property
    def is_busy(self) -> bool:
        return self.model_actions.is_ours or self.machine_actions.testing

    def choose(self, machine: str) -> None:
        """Select the machine with this ID and show its details. "" clears the selection."""
        if machine != self._chosen:
            self._chosen = machine
            self.views.select(machine)
            self._inspect()

    def add_machine(self) -> None:
        """Open the dialog that shows a pairing code for another machine."""
        self._clear_notice()
        AddMachineDialog(self.services, self).open()

    def join(self, address: str = "") -> None:
        """Open the dialog for joining another household."""
        self._clear_notice()
        JoinHouseholdDialog(self.services, self, address).open()

    def leave(self) -> None:
        """Open the dialog for leaving the household, for example to pair this machine again after its removal."""
        LeaveHouseholdDialog(self.services, self, self.notice.say).open()

    # Parts

    def _make_head(self) -> None:
        self.view_choice = ViewChoice(self.services.theme, self._choose_view)
        self.test = button(self.tr("Test links"), self.machine_actions.test)
        self.joins = button(self.tr("Join a household"), self.join)
        self.add = button(self.tr("Add a machine"), self.add_machine, "primary")
        why = self.tr("Why can't Poolhouse find my other computer?")
        help_ = IconButton(self.services.theme, "info", why, lambda: open_doctor(self.services, self))
        for widget in (help_, self.view_choice, self.test, self.joins, self.add):
            self.head.addWidget(widget)

    def _make_views(self) -> None:
        self.placements = PlacementChoice(self._show)
        self.views = HouseholdViews(self.services)
        self.views.chosen.connect(self.choose)
        self.views.opened.connect(self._open_details)
        self.views.toggled.connect(self._toggle)
        self.views.menu_wanted.connect(self._menu)

    def _make_panels(self) -> None:
        self.headline = Headline(self.services, self.model_actions)
        self.moves = MoveNotice(self.services.theme, self.model_actions.undo_move)
        self.what_if = WhatIf(self.model_actions.load_without, self.load_forecast.include_all)
        add = button(self.tr("Add a machine"), self.add_machine)
        self.alone = EmptyState(self.tr("Only this machine so far"), "", add)
        self.alone.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.nearby = Nearby(self._stranger_chosen)
        self.machine_actions.details.connect(self._open_details)
        self.inspector = Inspector(self.services, self.machine_actions, lambda: self.choose(""))

    def _place(self) -> None:
        body = QWidget()
        parts = (
            self.headline,
            self.moves,
            self.what_if,
            self.placements,
            self.views,
            self.alone,
            self.nearby,
            self.inspector,
        )
        box = column(*parts, gap=sizes.M)
        box.setStretch(parts.index(self.views), 1)
        self.content.addWidget(scrolled(body))  # scrolls if the text is large or the details are open
        body.setLayout(box)

    # Display

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        if self._is_stale:
            self._show()
        super().showEvent(event)

    def _follow(self) -> None:
        """Show the latest snapshot. While the page is hidden, only mark it as outdated."""
        self._is_stale = self.parentWidget() is not None and not self.isVisible()
        if not self._is_stale:
            self._show()

    def _show(self) -> None:
        self._is_stale = False
        pool, snapshot = self.services.pool, self.services.pool.now
        # a restarting node will be back soon, but nothing is known about one that is gone
        is_known = bool(snapshot.machines) and pool.link not in GONE
        self._show_view(self._usual_view() if is_known else "")
        for widget in (self.headline, self.view_choice, self.test, self.joins, self.add):
            show_if(widget, is_known)
        if not is_known:
            self.alone.hide()
            self.moves.show_moves(())
            self.what_if.hide()
            self.placements.show_hosts((), "")
            self.nearby.show_strangers(())
            self.inspector.show_machine(None)
            return
        removal = snapshot.node.reason_facts
        self._say_removed(said(removal) if removal else None)
        chosen = self.placements
        chosen.show_hosts(hosts_of(snapshot), snapshot.node.id, [model.model for model in snapshot.models])
        self.machines = machines_of(snapshot, self.load_forecast.without, chosen.center, chosen.model)
        self.lender_links = lender_links(snapshot, self.machines[0].id)
        self._show_buttons()
        self._show_model()
        is_other = is_foreign(snapshot, chosen.center)
        active = frozenset[str]() if is_other else active_of(snapshot, chosen.model)
        self.views.show_household(self.machines, active, self.lender_links, snapshot.servers)
        self.nearby.show_strangers(strangers_of(snapshot))
        self._inspect()

    def _show_buttons(self) -> None:
        """Show the actions on the household. This machine can join another one only while it is alone."""
        is_alone, testing = len(self.machines) == 1, self.machine_actions.testing
        self.test.setVisible(not is_alone)
        self.test.setEnabled(not testing)
        self.test.setText(self.tr("Testing…") if testing else self.tr("Test links"))
        self.joins.setVisible(is_alone)
        self.add.setVisible(may_change_household(self.machines))
        self.alone.setVisible(is_alone and may_change_household(self.machines))
        text = self.tr("Add another machine to run larger models together.")
        if room_bytes := self.load_forecast.now.room_bytes:
            text = f"{machine_words.largest_model(self.machines[0], room_bytes)} {text}"
        self.alone.sentence.setText(text)

    def _show_model(self) -> None:
        """Show the loaded model and the effect of leaving machines out."""
        pool, snapshot, forecast = self.services.pool, self.services.pool.now, self.load_forecast
        self.headline.show_pool(
            snapshot.loaded,
            forecast.now,
            measuring=self.model_actions.measuring,
            hosts=snapshot.hosts,
            beside=other_models(pool.now),
            failed=snapshot.load_failed,
            shared=snapshot.shared_model(None),
        )
        self.moves.show_moves(snapshot.models)
        self.what_if.show_change(self.machines, forecast.now, forecast.then)
        is_loading = snapshot.loaded is not None and snapshot.loaded.state == "loading"
        self.headline.setVisible(is_loading or not forecast.without)

    def _say_removed(self, reason: str | None) -> None:
        """Report that this machine was removed from its household. This notice takes precedence over all others."""
        if reason != self._removed_reason:
            self._removed_reason = reason
            if reason:
                self.notice.say(reason, "error", (self.tr("Leave the household…"), self.leave))
            else:
                self.notice.clear()

    def _clear_notice(self) -> None:
        """Hide the result of an earlier action, which the next action may make outdated."""
        if not self._removed_reason:
            self.notice.clear()

    def _inspect(self) -> None:
        machine = self._machine(self._chosen)
        if machine is None:
            self._chosen = ""
        self.inspector.show_machine(machine, [link for link in self.lender_links if self._chosen in link.ends])

    # Map or table

    def _usual_view(self) -> str:
        return self.services.preferences.text(VIEW, TABLE if QAccessible.isActive() else MAP)

    def _choose_view(self, name: str) -> None:
        self.services.preferences.keep(VIEW, name)
        self._show_view(name)
        self.views.focus(name)

    def _show_view(self, name: str) -> None:
        self.views.show_view(name)
        self.view_choice.show_chosen(name)

    # User actions

    def _open_details(self, machine: str) -> None:
        self.choose(machine)
        self.inspector.buttons.first.setFocus(Qt.FocusReason.TabFocusReason)

    def _toggle(self, machine: str) -> None:
        if (facts := self._machine(machine)) is not None:
            self.machine_actions.toggle(facts)

    def _menu(self, machine: str, position: QPoint) -> None:
        if (facts := self._machine(machine)) is not None:
            self.choose(machine)
            self.machine_actions.menu(facts, position)

    def _machine(self, key: str) -> MachineFacts | None:
        return next((machine for machine in self.machines if machine.id == key), None)

    def _stranger_chosen(self, stranger: Stranger) -> None:
        """Join the household of a nearby machine, or offer to add that machine to this household.

        Joining is possible only if this machine is alone and the other one has an open pairing window.
        """
        if stranger.pairing_address and len(self.machines) == 1:
            self.join(stranger.pairing_address)
        elif may_change_household(self.machines):
            self.add_machine()
        else:
            self.notice.say(machine_words.not_admin_note(self.machines))
