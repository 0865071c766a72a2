"""The network interfaces of this computer: what each is, and a switch for those that are left out unasked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.gui.api.node_client import Json
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.theme import Theme
from app.gui.this_computer.switch import Switch
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import clear, column

LOOPBACK = "loopback"


class InterfaceList(QWidget):
    """`chosen(names)` is called with those that shall be used besides the usual ones."""

    def __init__(self, theme: Theme, chosen: Callable[[list[str]], object]) -> None:
        super().__init__()
        self._theme, self._chosen = theme, chosen
        self._box = column(gap=sizes.M)
        self.setLayout(self._box)
        self._extra: set[str] = set()
        self._told: list[Json] = []

    def show_all(self, interfaces: Sequence[Json]) -> None:
        """As the node sees them now."""
        shown = [one for one in interfaces if _matters(one)]
        if shown == self._told:
            return
        self._told = shown
        self._extra = {one["name"] for one in shown if one["chosen"]}
        clear(self._box)
        for one in shown:
            self._box.addWidget(self._line(one))
        if not shown:
            self._box.addWidget(paragraph(self.tr("This computer is on no network."), "muted"))

    def _line(self, one: Json) -> QWidget:
        name = str(one["name"])
        speed = one["bits_per_s"]
        parts = [kind_word(one["kind"]), *([formats.rate(speed / 8)] if speed else [])]
        words = QWidget()
        about = paragraph(", ".join([*parts, *one["addresses"][:2]]), "caption")
        words.setLayout(column(label(name), about, gap=0))
        line = QWidget()
        line.setLayout(Beside(words, self._end(one), gap=sizes.XL))
        return line

    def _end(self, one: Json) -> QWidget:
        """Whether it is in use; a switch where that is chosen."""
        name = str(one["name"])
        if one["unasked"]:
            used = one["up"] and one["addresses"]
            return label(self.tr("In use") if used else self.tr("Not connected"), "muted")
        switch = Switch(self._theme, self.tr("Use {name}").format(name=name), self._turn(name))
        switch.show_on(name in self._extra)
        return switch

    def _turn(self, name: str) -> Callable[[bool], None]:
        def turned(on: bool) -> None:
            self._extra = self._extra | {name} if on else self._extra - {name}
            self._chosen(sorted(self._extra))

        return turned


def _matters(one: Json) -> bool:
    """Not loopback, nor what could carry nothing now; one that was chosen is always shown."""
    there = one["up"] and one["addresses"]
    return bool(one["chosen"] or (one["kind"] != LOOPBACK and (one["unasked"] or there)))


def kind_word(kind: str) -> str:
    """What carries a link."""
    translate = QCoreApplication.translate
    return {
        "ethernet": translate("Settings", "Cable"),
        "wifi": translate("Settings", "Wi-Fi"),
        "thunderbolt": translate("Settings", "Thunderbolt"),
        "vpn": translate("Settings", "VPN"),
        "virtual": translate("Settings", "Virtual machines or containers"),
        "loopback": translate("Settings", "This computer itself"),
    }.get(kind, translate("Settings", "Network"))
