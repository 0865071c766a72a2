"""The Pool page: what is loaded, the machines as a map or a table, what can be done with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QAccessible, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QComboBox, QSizePolicy, QStackedWidget, QToolButton, QWidget

from app.gui.api.node_state import GONE
from app.gui.app import page_names
from app.gui.app.app_context import AppContext
from app.gui.app.mending_places import LOG
from app.gui.app.page import Page
from app.gui.app.pool_status import others_loaded
from app.gui.diagnostics.dialogs import why_unseen
from app.gui.look import theme as sizes
from app.gui.look.icons import icon
from app.gui.look.sentences import here, model_name
from app.gui.look.theme import Theme, set_role
from app.gui.pool import machine_words
from app.gui.pool.headline import Headline, HeadlineActions
from app.gui.pool.household_dialogs import AddSheet, LeaveSheet
from app.gui.pool.inspector import Inspector
from app.gui.pool.join_dialog import JoinSheet
from app.gui.pool.load_forecast import Outlook, WhatIf
from app.gui.pool.machine_facts import (
    Between,
    MachineFacts,
    Stranger,
    active_of,
    between_of,
    hosts_of,
    is_of_another,
    machines_of,
    may_change,
    strangers_of,
)
from app.gui.pool.map.map_view import MapView
from app.gui.pool.pool_actions import MachineActions, ModelActions
from app.gui.pool.pool_tables import LinkTable, MachineTable
from app.gui.widgets.buttons import IconButton, ToolButton, button
from app.gui.widgets.empty_state import EmptyState
from app.gui.widgets.fields import DropDown
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, show_if, tooltip
from app.gui.widgets.layouts import clear, column, held, row, scrolled

HostName = tuple[str, str]  # id and name
Placement = tuple[str, str]  # the machine in the centre, and which of its models; "" for all


class PlacementChoice(QWidget):
    """Hidden while at most one runs; `chosen` is called when a person chooses."""

    def __init__(self, chosen: Callable[[], object]) -> None:
        super().__init__()
        self._told: object = None
        self._this = ""
        self._those: list[Placement] = []
        self.box = DropDown()
        self.box.setAccessibleName(self.tr("Whose model the map shows"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.box.activated.connect(lambda _: chosen())
        words = label(self.tr("Show the model of"), "muted")
        words.setBuddy(self.box)
        self.setLayout(Flow(words, self.box))
        self.hide()

    @property
    def centre(self) -> str:
        """The machine whose placement is shown; "" for this one where there is no other."""
        return self._shown[0]

    @property
    def model(self) -> str:
        """Which model of this machine is shown alone; "" for all of them."""
        return self._shown[1]

    @property
    def _shown(self) -> Placement:
        at = self.box.currentIndex()
        own_alone = self._those == [(self._this, "")]
        return ("", "") if at < 0 or own_alone else self._those[at]

    def show_hosts(self, hosts: Sequence[HostName], this: str, models: Sequence[str] = ()) -> None:
        """Who runs a model, and those of this machine; the choice stays while that is still so."""
        told = (tuple(hosts), this, tuple(models))
        if told == self._told:
            return
        before, self._told, self._this = self._shown, told, this
        self._those = []
        self.box.clear()
        for key, name in hosts:
            own = self.tr("{name} (this machine)").format(name=name) if key == this else name
            self._add((key, ""), own)
            if key == this and len(models) > 1:
                for one in models:
                    alone = self.tr("{name}: {model}").format(name=name, model=model_name(one))
                    self._add((key, one), alone)
        self.box.setCurrentIndex(self._those.index(before) if before in self._those else 0)
        self.setVisible(len(self._those) > 1)

    def _add(self, shown: Placement, text: str) -> None:
        self._those.append(shown)
        self.box.addItem(text)


MOST_SHOWN = 4
MOST_LETTERS = 24


class Nearby(QWidget):
    """`chosen(stranger)` is called when one is pressed."""

    def __init__(self, chosen: Callable[[Stranger], object]) -> None:
        super().__init__()
        self._chosen = chosen
        self._row = Flow()
        self.setLayout(self._row)
        self._shown: tuple[Stranger, ...] | None = None
        self.show_strangers(())

    def show_strangers(self, found: Sequence[Stranger]) -> None:
        """Hidden where nobody is near."""
        if tuple(found) == self._shown:
            return
        self._shown = tuple(found)
        clear(self._row)
        self.setVisible(bool(found))
        self._row.addWidget(label(self.tr("Nearby, not of this household"), "caption"))
        alike = Counter[str]()  # of what is told apart by nothing else: those are numbered
        for one in self._shown[:MOST_SHOWN]:
            title = self._title(one)
            alike[title] += 1
            self._row.addWidget(self._made(one, title, alike[title]))
        if len(found) > MOST_SHOWN:
            self._row.addWidget(label(self.tr("and %n more", "", len(found) - MOST_SHOWN), "caption"))

    def _made(self, one: Stranger, title: str, number: int) -> QWidget:
        """What to press, and beside it what the machine says of itself."""
        if number > 1:
            title = self.tr("{machine}, number {number}").format(machine=title, number=number)
        made = button(title, partial(self._chosen, one), "link")
        if not one.claims:
            return made
        told = self.tr("{claims}: so it says itself").format(claims=one.claims)
        made.setToolTip(tooltip(told))
        made.setAccessibleDescription(told)
        return held(row(made, label(one.claims, "caption"), gap=sizes.XS))

    def _title(self, one: Stranger) -> str:
        """Never the id: nobody knows a machine by it."""
        at = self.tr("A machine at {address}").format(address=one.address)
        name = one.name[:MOST_LETTERS] if one.name else at if one.address else machine_words.nameless()
        if one.pairing_address:
            return self.tr("{name} lets a machine in").format(name=name.replace("&", "&&"))
        return at if one.address else name


MAP, TABLE = "map", "table"


class ViewChoice(QWidget):
    """Two buttons of which one is pressed; `chosen(name)` is called."""

    def __init__(self, theme: Theme, chosen: Callable[[str], object]) -> None:
        super().__init__()
        self._theme = theme
        self._group = QButtonGroup(self)
        self.buttons: dict[str, QToolButton] = {}
        box = row(gap=sizes.XS)
        for name, words in ((MAP, self.tr("Map")), (TABLE, self.tr("Table"))):
            made = ToolButton()
            made.setText(f"\N{EN SPACE}{words}")  # air between picture and word
            made.setAccessibleName(words)
            made.setCheckable(True)
            made.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            made.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            set_role(made, "choice")
            made.clicked.connect(lambda _=False, name=name: chosen(name))
            self._group.addButton(made)
            self.buttons[name] = made
            box.addWidget(made)
        self.setLayout(box)
        theme.changed.connect(self._paint)
        self._paint()

    def show_chosen(self, name: str) -> None:
        if name in self.buttons:
            self.buttons[name].setChecked(True)

    def _paint(self) -> None:
        side = self._theme.px(sizes.SECTION)
        for name, one in self.buttons.items():
            one.setIcon(icon(name, self._theme.colours.text))
            one.setIconSize(QSize(side, side))


Json = dict[str, Any]
VIEW = "pool/view"
LEAST_HEIGHT = 160  # of map and table


class _Views(QStackedWidget):
    """Map or table, in all the room that is left, and never in less than a useful height."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        least, now = self._theme.px(LEAST_HEIGHT), self.currentWidget()
        layout = now.layout() if now is not None else None
        return QSize(0, least if layout is None else max(least, layout.minimumSize().height()))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return self.sizeHint()


class PoolPage(Page):
    """One place for everything about the household."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, "")
        self.title.setText(self.tr("Pool"))
        self.machines: tuple[MachineFacts, ...] = ()
        self.between: tuple[Between, ...] = ()
        self._chosen = ""
        self._dismissed: str | None = None
        self._is_stale = False  # what it shows
        self.outlook = Outlook(services, self)
        self.acts = MachineActions(self, self.outlook, lambda: self.machines)
        self.loading = ModelActions(self, self.outlook)
        self.destroyed.connect(self.outlook.stop)
        self.destroyed.connect(self.acts.stop)
        self.destroyed.connect(self.loading.stop)
        self.later(self._make_head, self._make_views, self._make_panels, self._place, self._begin)

    def _begin(self) -> None:
        """All parts are there."""
        services = self.services
        for changed in (
            services.pool.changed,
            services.pool.link_changed,
            services.theme.changed,
            self.outlook.changed,
            self.acts.changed,
            self.loading.changed,
        ):
            changed.connect(self._follow)
        self._show_view(self._usual_view())
        self._tell()

    def shown(self) -> None:
        self.outlook.forget()  # another page may have measured meanwhile

    def open(self, part: str) -> None:
        """A machine with its details, by its id; also one that came while nobody saw the page."""
        if self._is_stale:
            self._tell()
        self.choose(part)

    @property
    def is_busy(self) -> bool:
        return self.loading.is_ours or self.acts.testing

    def choose(self, machine: str) -> None:
        """Show its details; "" for none."""
        if machine != self._chosen:
            self._chosen = machine
            self.map.select(machine)
            self.table.select(machine)
            self._inspect()

    def add_machine(self) -> None:
        """Show a code."""
        AddSheet(self.services, self).open()

    def join(self, address: str = "") -> None:
        """Ask for the code of another household."""
        JoinSheet(self.services, self, address).open()

    def leave(self) -> None:
        """Of a machine that was removed, so that it can be paired again."""
        LeaveSheet(self.services, self, self.notice.say).open()

    # Parts

    def _make_head(self) -> None:
        self.views = ViewChoice(self.services.theme, self._choose_view)
        self.test = button(self.tr("Test links"), self.acts.test)
        self.joins = button(self.tr("Join a household"), self.join)
        self.add = button(self.tr("Add a machine"), self.add_machine, "primary")
        why = self.tr("Why can it not see my other computer?")
        help_ = IconButton(self.services.theme, "info", why, lambda: why_unseen(self.services, self))
        for one in (help_, self.views, self.test, self.joins, self.add):
            self.head.addWidget(one)

    def _make_views(self) -> None:
        services = self.services
        self.map = MapView(services.theme, services.motion)
        self.table, self.links = MachineTable(services.theme), LinkTable(services.theme)
        self.tables = QWidget()
        self.tables.setLayout(column(self.table, self.links, gap=sizes.M))
        self.away = EmptyState(
            self.tr("Waiting for the background service"),
            self.tr("The household is shown as soon as it answers."),
            button(self.tr("Show its log"), lambda: services.go(LOG)),
        )
        self.placements = PlacementChoice(self._tell)
        self.stack = _Views(services.theme)
        for view in (self.map, self.tables, self.away):
            self.stack.addWidget(view)
        for view in (self.map, self.table):
            view.chosen.connect(self.choose)
            view.opened.connect(self._open)
            view.toggled.connect(self._toggle)
            view.menu_wanted.connect(self._menu)

    def _make_panels(self) -> None:
        services = self.services
        acts = HeadlineActions(
            lambda: services.go(page_names.MODELS),
            self.loading.unload,
            self.loading.again,
            self.loading.cancel,
            self.loading.measure,
            lambda: services.go(LOG),
        )
        self.headline = Headline(services.theme, acts)
        self.what_if = WhatIf(self.loading.load_without, self.outlook.take_all_back)
        adds = button(self.tr("Add a machine"), self.add_machine)
        self.alone = EmptyState(self.tr("Only this machine so far"), "", adds)
        self.alone.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.nearby = Nearby(self._near_chosen)
        self.acts.details.connect(self._open)
        self.inspector = Inspector(services, self.acts, lambda: self.choose(""))

    def _place(self) -> None:
        body = QWidget()
        parts = (self.headline, self.what_if, self.placements, self.stack, self.alone, self.nearby, self.inspector)
        box = column(*parts, gap=sizes.M)
        box.setStretch(parts.index(self.stack), 1)
        self.content.addWidget(scrolled(body))  # large text, with a machine's details
        body.setLayout(box)

    # What is shown

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802  Qt's name
        if self._is_stale:
            self._tell()
        super().showEvent(event)

    def _follow(self) -> None:
        """News: nobody reads a page behind another one, or in a window that is hidden."""
        self._is_stale = self.parentWidget() is not None and not self.isVisible()
        if not self._is_stale:
            self._tell()

    def _tell(self) -> None:
        self._is_stale = False
        pool, outlook = self.services.pool, self.outlook
        # a service that is being started again is there within a moment; of one that is not, nothing is known
        there = bool(pool.snapshot) and pool.link not in GONE
        self._show_view(self._usual_view() if there else "")
        for one in (self.headline, self.views, self.test, self.joins, self.add):
            show_if(one, there)
        if not there:
            self.alone.hide()
            self.what_if.hide()
            self.placements.show_hosts((), "")
            self.nearby.show_strangers(())
            self.inspector.show_machine(None, ())
            return
        self._say_dismissed(here(str(pool.node.get("reason") or "")) or None)
        names = [str(one.get("model")) for one in pool.models]
        shown = self.placements
        shown.show_hosts(hosts_of(pool.snapshot), str(pool.node.get("id")), names)
        self.machines = machines_of(pool.snapshot, outlook.without, shown.centre, shown.model)
        alone = len(self.machines) == 1
        self.test.setVisible(not alone)
        self.test.setEnabled(not self.acts.testing)
        self.test.setText(self.tr("Testing…") if self.acts.testing else self.tr("Test links"))
        self.joins.setVisible(alone)
        self.add.setVisible(may_change(self.machines))
        self._show_alone(alone and may_change(self.machines))
        self.headline.show_pool(
            pool.loaded,
            outlook.now,
            measuring=self.loading.measuring,
            hosts=pool.hosts,
            beside=others_loaded(pool),
            failed=pool.load_failed,
            why=pool.why_load_failed,
        )
        self.what_if.show_change(self.machines, outlook.now, outlook.then)
        is_loading = (pool.loaded or {}).get("state") == "loading"
        self.headline.setVisible(is_loading or not outlook.without)
        foreign = is_of_another(pool.snapshot, shown.centre)
        active = frozenset[str]() if foreign else active_of(pool.snapshot, shown.model)
        centre = self.machines[0].id if self.machines else ""
        self.between = between_of(pool.snapshot, centre)
        self.map.show_machines(self.machines, active, self.between)
        self.table.show_machines(self.machines)
        self.links.show_links(self.between)
        self.nearby.show_strangers(strangers_of(pool.snapshot))
        self._inspect()

    def _say_dismissed(self, reason: str | None) -> None:
        """This machine was removed from its household: nothing else matters more."""
        if reason != self._dismissed:
            self._dismissed = reason
            if reason:
                leave = (self.tr("Leave the household…"), self.leave)
                self.notice.say(reason, "error", leave)
            else:
                self.notice.clear()

    def _show_alone(self, alone: bool) -> None:
        """What this machine can do by itself, and how it gets company."""
        self.alone.setVisible(alone)
        if not alone:
            return
        text = self.tr("Add another machine, and together they hold larger models.")
        room = self.outlook.now.room_bytes
        if room:
            text = f"{machine_words.fits_on(self.machines[0], room)} {text}"
        self.alone.sentence.setText(text)

    def _inspect(self) -> None:
        found = next((one for one in self.machines if one.id == self._chosen), None)
        if found is None:
            self._chosen = ""
        links = [one for one in self.between if self._chosen in one.ends]
        self.inspector.show_machine(found, links)

    # The view

    def _usual_view(self) -> str:
        usual = TABLE if QAccessible.isActive() else MAP
        return self.services.preferences.text(VIEW, usual)

    def _choose_view(self, name: str) -> None:
        self.services.preferences.keep(VIEW, name)
        self._show_view(name)
        view = self.table if name == TABLE else self.map
        view.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_view(self, name: str) -> None:
        view = {MAP: self.map, TABLE: self.tables}.get(name, self.away if not name else self.map)
        if self.stack.currentWidget() is not view:
            self.stack.setCurrentWidget(view)
        self.views.show_chosen(name)

    # What was asked for

    def _open(self, machine: str) -> None:
        self.choose(machine)
        self.inspector.first_button().setFocus(Qt.FocusReason.TabFocusReason)

    def _toggle(self, machine: str) -> None:
        if (found := self._machine(machine)) is not None:
            self.acts.toggle(found)

    def _menu(self, machine: str, where: QPoint) -> None:
        if (found := self._machine(machine)) is not None:
            self.choose(machine)
            self.acts.menu(found, where)

    def _machine(self, machine: str) -> MachineFacts | None:
        return next((one for one in self.machines if one.id == machine), None)

    def _near_chosen(self, stranger: Stranger) -> None:
        """Who lets a machine in is joined by one that is alone; anybody else is added here."""
        if stranger.pairing_address and len(self.machines) == 1:
            self.join(stranger.pairing_address)
        elif may_change(self.machines):
            self.add_machine()
        else:
            self.notice.say(machine_words.no_right(self.machines))
