"""Dialog: by which interface of this computer another machine is reached."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QButtonGroup, QRadioButton, QWidget

from app.core.errors import AppError
from app.gui.api.node_client import segment
from app.gui.app.app_context import AppContext
from app.gui.look import formats
from app.gui.look.sentences import here
from app.gui.pool import machine_words
from app.gui.pool.dialogs.machine_dialog import MachineSheet, Said
from app.gui.pool.machine_facts import MachineFacts
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import paragraph

Json = dict[str, Any]


class InterfaceSheet(MachineSheet):
    """One choice for each interface that is connected, and the usual one: whichever is fastest."""

    def __init__(self, services: AppContext, machine: MachineFacts, done: Said, parent: QWidget) -> None:
        title = _tr("The way to {name}").format(name=machine.name)
        sentence = _tr(
            "Choose which connection of this computer carries the traffic. A model that is loaded "
            "keeps its connections until it is loaded again."
        )
        super().__init__(services, machine, done, parent, title, sentence)
        self._group = QButtonGroup(self)
        self._names: list[str | None] = [None]
        self.choices = [QRadioButton(_tr("Whichever is fastest"))]
        self._group.addButton(self.choices[0], 0)
        self.choices[0].setChecked(True)
        self.add(self.choices[0])
        self.waiting = paragraph(_tr("Looking for the connections of this computer…"), "muted")
        self.add(self.waiting)
        self.act = button(_tr("Use and test"), self.save, "primary")
        self.act.setEnabled(False)
        self.offer(_tr("Cancel"), self.act)
        self._look()

    def came_back(self) -> None:
        if len(self.choices) == 1:  # it was lost before it had told them
            self._look()

    def _look(self) -> None:
        self.waiting.show()
        self.keep(self.services.client.get("/settings", self._fill, self._not_found))

    def _fill(self, answer: Json) -> None:
        link = self._machine.link
        preferred = link.preferred if link is not None else ""
        for one in answer.get("interfaces") or ():
            name = str(one.get("name") or "")
            away = not one.get("up") or not one.get("addresses")
            if one.get("kind") != "loopback" and not away:
                self._offer(name, _interface_text(one), chosen=name == preferred)
        if preferred and preferred not in self._names:
            text = _tr("{interface}, not connected now").format(interface=preferred)
            self._offer(preferred, text, chosen=True).setEnabled(False)
        self.waiting.hide()
        self.act.setEnabled(True)
        self.fit()

    def _offer(self, name: str, text: str, *, chosen: bool) -> QRadioButton:
        made = QRadioButton(text)
        self._group.addButton(made, len(self._names))
        self._names.append(name)
        self.choices.append(made)
        made.setChecked(chosen)
        self.add(made)
        return made

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
        self.keep(self.services.client.post(path, body, self._saved, self._refused))

    def _refused(self, error: AppError) -> None:
        self.act.setEnabled(True)
        self.act.setText(_tr("Use and test"))
        self.fail(error)

    def _saved(self, answer: Json) -> None:
        self.finish(preference_result(self._machine.name, answer))


def preference_result(name: str, answer: Json) -> str:
    """What a choice of an interface has led to, for the machine of that name."""
    if why := here(str(answer.get("preferred_reason") or answer.get("reason") or "")):
        return why
    if answer.get("interface") and answer.get("out_bytes_per_s"):
        text = _tr("Traffic to {name} goes by {interface} now: {speed}.")
        slower = min(answer["out_bytes_per_s"], answer["in_bytes_per_s"])
        return text.format(name=name, interface=answer["interface"], speed=formats.rate(slower))
    return _tr("The choice for {name} is kept, and counts when it is connected.").format(name=name)


def _interface_text(one: Json) -> str:
    """`cable (eth0, 1.00 Gb/s)`."""
    inside = [str(one.get("name"))]
    if one.get("bits_per_s"):
        inside.append(formats.rate(one["bits_per_s"] / 8))
    kind = machine_words.kind(str(one.get("kind"))).word
    return f"{kind} ({', '.join(inside)})"


def _tr(text: str) -> str:
    return QCoreApplication.translate("Household", text)
