"""Dialogs for renaming or removing a machine, changing its roles, and choosing the interface used to reach it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QButtonGroup, QPushButton, QRadioButton, QWidget

from app.api.computer import Interface, Settings
from app.api.responses import RemoveMachineResponse, RenameResponse, SetRolesResponse
from app.api.snapshot import LinkReport
from app.core.errors import AppError
from app.gui.api.node_client import segment
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look import formats
from app.gui.look.sentences import said
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import MachineFacts
from app.gui.widgets.buttons import button
from app.gui.widgets.fields import MachineName
from app.gui.widgets.labels import paragraph

Done = Callable[[str], object]  # receives a sentence about the result


class MachineDialog(Sheet):
    """The base class of dialogs about one machine.

    `done` is called with a sentence about the result before the dialog closes.
    """

    def __init__(
        self, services: AppContext, machine: MachineFacts, done: Done, parent: QWidget, title: str, sentence: str = ""
    ) -> None:
        super().__init__(services, title, sentence, parent)
        self._machine, self._done = machine, done

    def finish(self, sentence: str) -> None:
        """Report the result and close the dialog."""
        self._done(sentence)
        self.accept()


class InterfaceDialog(MachineDialog):
    """A dialog for choosing this computer's network interface for the link to a machine.

    The default is the fastest interface.
    """

    def __init__(self, services: AppContext, machine: MachineFacts, done: Done, parent: QWidget) -> None:
        title = _tr("Connection to {name}").format(name=machine.name)
        sentence = _tr(
            "Choose the network connection to use. A loaded model keeps its connections until you load it again."
        )
        super().__init__(services, machine, done, parent, title, sentence)
        self._group = QButtonGroup(self)
        self._names: list[str | None] = [None]
        self.choices = [QRadioButton(_tr("Fastest available"))]
        self._group.addButton(self.choices[0], 0)
        self.choices[0].setChecked(True)
        self.add(self.choices[0])
        self.waiting = paragraph(_tr("Looking for this computer's network interfaces…"), "muted")
        self.add(self.waiting)
        self.act = button(_tr("Use and test"), self.save, "primary")
        self.act.setEnabled(False)
        self.offer(_tr("Cancel"), self.act)
        self._look()

    def came_back(self) -> None:
        if len(self.choices) == 1:  # the connection was lost before the node answered
            self._look()

    def _look(self) -> None:
        self.waiting.show()
        self.keep(self.services.client.get("/settings", self._fill, self._not_found, answer=Settings))

    def _fill(self, answer: Settings) -> None:
        link = self._machine.link
        preferred = link.preferred if link is not None else ""
        for interface in answer.interfaces:
            if interface.kind != "loopback" and interface.up and interface.addresses:
                self._offer(interface.name, _interface_text(interface), chosen=interface.name == preferred)
        if preferred and preferred not in self._names:
            text = _tr("{interface}, not connected now").format(interface=preferred)
            self._offer(preferred, text, chosen=True).setEnabled(False)
        self.waiting.hide()
        self.act.setEnabled(True)
        self.fit()

    def _offer(self, name: str, text: str, *, chosen: bool) -> QRadioButton:
        choice = QRadioButton(text)
        self._group.addButton(choice, len(self._names))
        self._names.append(name)
        self.choices.append(choice)
        choice.setChecked(chosen)
        self.add(choice)
        return choice

    def _not_found(self, error: AppError) -> None:
        self.waiting.hide()
        self.fail(error)

    def choose(self, name: str | None) -> None:
        self.choices[self._names.index(name)].setChecked(True)

    def save(self) -> None:
        self.act.setEnabled(False)
        self.act.setText(_tr("Testing…"))
        self.notice.clear()
        path = f"/machines/{segment(self._machine.id)}/interface"
        body = {"interface": self._names[self._group.checkedId()]}
        self.keep(self.services.client.post(path, body, self._saved, self._refused, answer=LinkReport))

    def _refused(self, error: AppError) -> None:
        self.act.setEnabled(True)
        self.act.setText(_tr("Use and test"))
        self.fail(error)

    def _saved(self, link: LinkReport) -> None:
        self.finish(preference_result(self._machine.name, link))


def preference_result(name: str, link: LinkReport) -> str:
    """Return a sentence about the effect of choosing an interface for the link to the machine `name`."""
    if reason := link.preferred_reason_facts or link.reason_facts:
        return said(reason)
    if link.interface and link.out_bytes_per_s and link.in_bytes_per_s:
        text = _tr("Traffic to {name} now uses {interface} ({speed}).")
        slower = min(link.out_bytes_per_s, link.in_bytes_per_s)
        return text.format(name=name, interface=link.interface, speed=formats.rate(slower))
    return _tr("Saved. Takes effect once {name} is connected.").format(name=name)


def _interface_text(interface: Interface) -> str:
    """Describe an interface, for example `cable (eth0, 1.00 Gbit/s)`."""
    details = [interface.name]
    if interface.bits_per_s:
        details.append(formats.rate(interface.bits_per_s / 8))
    return f"{machine_words.kind_badge(interface.kind).word} ({', '.join(details)})"


class RenameMachineDialog(MachineDialog):
    """A dialog to rename a machine."""

    def __init__(self, services: AppContext, machine: MachineFacts, done: Done, parent: QWidget) -> None:
        title = _tr("Rename {name}").format(name=machine.name)
        super().__init__(services, machine, done, parent, title)
        self.name = MachineName(_tr("Name"), machine.name)
        self.name.selectAll()
        self.add(self.name, self.name.problem)
        self.act = button(_tr("Rename"), self.rename, "primary")
        self.offer(_tr("Cancel"), self.act)
        self.name.judged.connect(lambda: self.act.setEnabled(self.name.fits))

    def rename(self) -> None:
        path = f"/machines/{segment(self._machine.id)}/name"
        body = {"name": self.name.name}
        self.keep(self.services.client.post(path, body, self._renamed, self.fail, answer=RenameResponse))

    def _renamed(self, answer: RenameResponse) -> None:
        text = _tr("{was} is now called {now}.")
        self.finish(text.format(was=answer.renamed.was, now=answer.renamed.name))


class RolesDialog(MachineDialog):
    """A dialog to change the roles of a machine."""

    def __init__(self, services: AppContext, machine: MachineFacts, done: Done, parent: QWidget) -> None:
        title = _tr("Permissions for {name}").format(name=machine.name)
        super().__init__(services, machine, done, parent, title)
        self.choice = RoleChoice(machine.roles)
        self.add(*self.choice.buttons)
        self.choice.focus()
        self.act = button(_tr("Save"), self.save, "primary")
        self.act.setEnabled(bool(self.choice.chosen))
        self.choice.changed.connect(lambda *_: self.act.setEnabled(True))
        if "admin" in machine.roles:
            self.choice.setEnabled(False)
            text = _tr("To stop this machine from changing the household, remove it.")
            self.add(paragraph(text, "muted"))
            self.offer(_tr("Close"))
        else:
            self.offer(_tr("Cancel"), self.act)

    def save(self) -> None:
        path = f"/machines/{segment(self._machine.id)}/roles"
        body = {"roles": list(machine_words.ROLES[self.choice.chosen])}
        self.keep(self.services.client.post(path, body, self._saved, self.fail, answer=SetRolesResponse))

    def _saved(self, answer: SetRolesResponse) -> None:
        roles = machine_words.roles_text(answer.machine.roles)
        self.finish(_tr("{name} now has these permissions: {roles}.").format(name=self._machine.name, roles=roles))


class RoleChoice:
    """Radio buttons for the usual combinations of roles, such as lending only, or using models and lending."""

    def __init__(self, roles: frozenset[str]) -> None:
        self._group = QButtonGroup()
        self._names = list(machine_words.ROLES)
        self.buttons = [QRadioButton(machine_words.role_name(name)) for name in self._names]
        for number, choice in enumerate(self.buttons):
            self._group.addButton(choice, number)
        self.changed = self._group.idToggled
        names = {frozenset(granted): name for name, granted in machine_words.ROLES.items()}
        current = machine_words.ADMIN if "admin" in roles else names.get(roles)
        if current is not None:
            self.choose(current)

    @property
    def chosen(self) -> str:
        """The selected combination, or "" if the machine has one that can only be set on the command line."""
        at = self._group.checkedId()
        return self._names[at] if at >= 0 else ""

    def focus(self) -> None:
        """Focus the selected button. Otherwise, pressing Space would select the first one."""
        self.buttons[max(0, self._group.checkedId())].setFocus()

    def choose(self, role: str) -> None:
        self.buttons[self._names.index(role)].setChecked(True)

    def setEnabled(self, enabled: bool) -> None:  # noqa: N802  as of a widget
        for choice in self.buttons:
            choice.setEnabled(enabled)


class RemoveMachineDialog(MachineDialog):
    """A dialog to remove a machine.

    It warns about irreversible effects, and asks whether to also remove the machines that this one had added.
    """

    def __init__(self, services: AppContext, machine: MachineFacts, done: Done, parent: QWidget) -> None:
        title = _tr("Remove {name} from the household").format(name=machine.name)
        sentence = _tr(
            "The removed machine loses access immediately. Machines that are turned off learn of the removal the "
            "next time they connect."
        )
        super().__init__(services, machine, done, parent, title, sentence)
        self.add(
            paragraph(
                _tr(
                    "Removing {name} does not delete the model layers on its disk or anything it has already seen. To "
                    "rejoin, the machine needs a new identity and a new code."
                ).format(name=machine.name)
            )
        )
        self.others: QButtonGroup | None = None
        self.act: QPushButton = button(_tr("Remove {name}").format(name=machine.name), self.remove, "danger")
        self.offer(_tr("Cancel"), self.act)

    def remove(self) -> None:
        path = f"/machines/{segment(self._machine.id)}"
        if self.others is not None:
            path += "?added=" + ("keep" if self.others.checkedId() == 0 else "remove")
        self.act.setEnabled(False)
        self.keep(self.services.client.delete(path, self._removed, self._refused, answer=RemoveMachineResponse))

    def _refused(self, error: AppError) -> None:
        self.act.setEnabled(True)
        if error.reason.code != "remove_added":
            self.fail(error)
            return
        added = str(error.reason.facts.get("added"))
        text = _tr("{name} added {added} to the household. What do you want to do?")
        self.others = QButtonGroup(self)
        keep, also = QRadioButton(_tr("Keep: {added}")), QRadioButton(_tr("Also remove: {added}"))
        keep.setChecked(True)
        self.add(paragraph(text.format(name=self._machine.name, added=added)))
        for number, choice in enumerate((keep, also)):
            choice.setText(choice.text().format(added=added))
            self.others.addButton(choice, number)
            self.add(choice)
        self.fit()

    def _removed(self, answer: RemoveMachineResponse) -> None:
        also = ", ".join(answer.also_removed)
        text = _tr("{name} is no longer part of the household.").format(name=self._machine.name)
        if also:
            text += " " + _tr("Also removed: {others}.").format(others=also)
        self.finish(text)


def _tr(text: str) -> str:
    return QCoreApplication.translate("Household", text)
