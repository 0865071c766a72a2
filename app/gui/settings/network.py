"""The Network settings, for the name, address, port and network interfaces of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QLayout, QWidget

from app.api.computer import Interface, Settings
from app.api.responses import RenameResponse
from app.gui.app.app_context import AppContext, restart
from app.gui.diagnostics.address_form import AddressForm
from app.gui.look import formats, sizes
from app.gui.look.theme import Theme, set_role
from app.gui.pool.join_dialog import JoinHouseholdDialog
from app.gui.pool.machine_facts import machines_of
from app.gui.settings.settings_group import NumberField, Setting, SettingsGroup
from app.gui.widgets.buttons import Switch, button, wrapping
from app.gui.widgets.fields import MachineName
from app.gui.widgets.flow import Beside, Flow
from app.gui.widgets.labels import bound_width, keep_width, label, paragraph
from app.gui.widgets.layouts import clear_layout, column, layout_widget

LOOPBACK = "loopback"


class InterfaceList(QWidget):
    """The list of network interfaces. `chosen(names)` is called with those to use in addition to the default ones."""

    def __init__(self, theme: Theme, chosen: Callable[[list[str]], object]) -> None:
        super().__init__()
        self._theme, self._chosen = theme, chosen
        self._box = column(gap=sizes.M)
        self.setLayout(self._box)
        self._extra: set[str] = set()
        self._shown: list[Interface] = []

    def show_all(self, interfaces: Sequence[Interface]) -> None:
        """Show the interfaces reported by the node."""
        shown = [interface for interface in interfaces if _matters(interface)]
        if shown == self._shown:
            return
        self._shown = shown
        self._extra = {interface.name for interface in shown if interface.chosen}
        clear_layout(self._box)
        for interface in shown:
            self._box.addWidget(self._line(interface))
        if not shown:
            self._box.addWidget(paragraph(self.tr("This computer isn't on a network."), "muted"))

    def _line(self, interface: Interface) -> QWidget:
        speed = [formats.rate(interface.bits_per_s / 8)] if interface.bits_per_s else []
        words = QWidget()
        about = paragraph(", ".join([kind_word(interface.kind), *speed, *interface.addresses[:2]]), "caption")
        words.setLayout(column(label(interface.name), about, gap=0))
        line = QWidget()
        line.setLayout(Beside(words, self._end(interface), gap=sizes.XL))
        return line

    def _end(self, interface: Interface) -> QWidget:
        """Return a switch for an optional interface, or a label with the state of any other interface."""
        name = interface.name
        if interface.unasked:
            used = interface.up and interface.addresses
            return label(self.tr("In use") if used else self.tr("Not connected"), "muted")
        switch = Switch(self._theme, self.tr("Use {name}").format(name=name), self._turn(name))
        switch.show_on(name in self._extra)
        return switch

    def _turn(self, name: str) -> Callable[[bool], None]:
        def turned(on: bool) -> None:
            self._extra = self._extra | {name} if on else self._extra - {name}
            self._chosen(sorted(self._extra))

        return turned


def _matters(interface: Interface) -> bool:
    """Return whether to list an interface.

    Loopback and unused interfaces are not listed unless the user has turned them on.
    """
    there = interface.up and interface.addresses
    return bool(interface.chosen or (interface.kind != LOOPBACK and (interface.unasked or there)))


def kind_word(kind: str) -> str:
    """Return the label for a kind of interface."""
    translate = QCoreApplication.translate
    return {
        "ethernet": translate("Settings", "Cable"),
        "wifi": translate("Settings", "Wi-Fi"),
        "thunderbolt": translate("Settings", "Thunderbolt"),
        "vpn": translate("Settings", "VPN"),
        "virtual": translate("Settings", "Virtual machines or containers"),
        "loopback": translate("Settings", "This computer itself"),
    }.get(kind, translate("Settings", "Network"))


class UnreachableMachines(QWidget):
    """An address field for each unreachable machine. If there are none, a button to join a household is shown instead.

    The fields are replaced only if the set of unreachable machines changes, to preserve typed text.
    """

    def __init__(self, services: AppContext) -> None:
        super().__init__()
        self._services = services
        self._box = column(gap=sizes.M)
        self.setLayout(self._box)
        self._shown: tuple[str, ...] | None = None
        self.forms: list[AddressForm] = []

    def refresh(self) -> None:
        machines = machines_of(self._services.pool.now)
        away = tuple(machine.name for machine in machines if not machine.this and not machine.online)
        state = away or (("",) if len(machines) > 1 else ())
        if state == self._shown:
            return
        self._shown = state
        for form in self.forms:
            form.cancel()
        self.forms = []
        clear_layout(self._box)
        if len(machines) < 2:
            self._box.addWidget(layout_widget(Flow(wrapping(self.tr("Join a household…"), self._join))))
        elif not away:
            words = self.tr("All machines in your household are connected.")
            self._box.addWidget(paragraph(words, "muted"))
        for machine in machines:
            if machine.name in away and not machine.this:
                form = AddressForm(self._services, machine.name, machine.address or "", self.refresh)
                form.button.setProperty("role", None)
                self.forms.append(form)
                self._box.addWidget(form)

    def _join(self) -> None:
        JoinHouseholdDialog(self._services, self.window()).open()


class RestartRow(QFrame):
    """A notice that changes take effect only after a restart, with a button that restarts the node."""

    def __init__(self, services: AppContext, sentence: str) -> None:
        super().__init__()
        set_role(self, "notice")
        again = button(self.tr("Restart now"), lambda: restart(services))
        box = Beside(paragraph(sentence), again)
        box.setContentsMargins(sizes.M, sizes.S, sizes.S, sizes.S)
        self.setLayout(box)
        self.hide()


MOST_PORT, FIELD_WIDTH = 65535, 220


class Network(SettingsGroup):
    """The Network settings. They take effect after a restart of the node, for which there is a button."""

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Network"))
        self.restart = RestartRow(services, self.tr("Saved. Takes effect when the background service restarts."))
        self.name = MachineName(self.tr("Name of this machine"))
        bound_width(services.theme, self.name, FIELD_WIDTH)
        self.name.returnPressed.connect(self._rename)
        rename = button(self.tr("Rename"), self._rename)
        self.name.judged.connect(lambda: rename.setEnabled(self.name.fits))
        name = column(Flow(self.name, rename), self.name.problem, gap=sizes.S)
        self.address = label()
        copy = button(self.tr("Copy"), self._copy)
        copy.setAccessibleName(self.tr("Copy the address"))
        self.port = NumberField(0, MOST_PORT, 0, lambda port: self._save({"port": int(port)}))
        self.port.setGroupSeparatorShown(False)
        self.port.setSpecialValueText(self.tr("Any free port"))
        keep_width(services.theme, self.port, FIELD_WIDTH - sizes.XXL * 2)
        self.discovery = Switch(
            services.theme, self.tr("Find machines nearby"), lambda on: self._save({"discovery": on})
        )
        self.interfaces = InterfaceList(services.theme, lambda chosen: self._save({"interfaces": chosen}))
        self.reaching = UnreachableMachines(services)
        self._reaching = Setting(
            self.tr("Connect to a machine by address"),
            self.tr(
                "Use this if a machine isn't found automatically. You can find its address on that "
                "machine in Settings > Network."
            ),
            self.reaching,
            wide=True,
            words="ip host",
        )
        self.box.insertWidget(1, self.restart)
        self._add(name, Flow(self.address, copy))
        services.pool.changed.connect(self._tell_node)

    def refresh(self) -> None:
        self._tell_node()
        self.ask("GET", "/settings", self._tell, answer=Settings)

    def reset(self) -> None:
        self._save({"port": 0, "discovery": True, "interfaces": []})

    def _add(self, name: QLayout, address: QLayout) -> None:
        self.add(
            Setting(
                self.tr("Name of this machine"),
                self.tr("Other machines see this name. Poolhouse never uses your login name."),
                name,
                wide=True,
            ),
            Setting(self.tr("Address"), self.tr("Other machines connect to this address."), address, words="ip"),
            Setting(
                self.tr("Port"),
                self.tr("Choose a port if a router or firewall needs a fixed one."),
                self.port,
                default=self.tr("Default: Poolhouse picks an unused port and keeps it"),
            ),
            Setting(
                self.tr("Find machines nearby"),
                self.tr("Uses multicast on your network. If this is off, you can only connect to machines by address."),
                self.discovery,
                default=self.tr("Default: on"),
                words="discovery mdns",
            ),
        )
        self.add(
            Setting(
                "", "", self.interfaces, wide=True, words=self.tr("Interfaces, Ethernet, Wi-Fi, VPN, cable, virtual")
            ),
            title=self.tr("Network interfaces of this computer"),
        )
        self.add(self._reaching, title=self.tr("Other machines"))

    def _tell_node(self) -> None:
        node = self.services.pool.now.node
        if not self.name.hasFocus() and not self.name.isModified():  # typed, and not saved yet
            self.name.setText(node.name)
        self.address.setText(node.peer_address or "")
        self.reaching.refresh()

    def _tell(self, settings: Settings) -> None:
        self.port.setEnabled(not settings.port_fixed)
        self.port.show_value(settings.port)
        self.discovery.show_on(settings.discovery)
        self.interfaces.show_all(settings.interfaces)
        self.restart.setVisible(settings.restart)

    def _save(self, changes: dict[str, object]) -> None:
        self.ask("POST", "/settings", self._tell, changes, answer=Settings)

    def _rename(self) -> None:
        node, name = self.services.pool.now.node, self.name.name
        if node.id and self.name.fits and name != node.name:
            self.ask("POST", f"/machines/{node.id}/name", self._renamed, {"name": name}, answer=RenameResponse)

    def _renamed(self, answer: RenameResponse) -> None:
        self.name.setModified(False)
        words = self.tr("This machine is now called {name}.")
        self.told.emit(words.format(name=answer.renamed.name), "info")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.address.text())
        self.told.emit(self.tr("Address copied."), "info")
