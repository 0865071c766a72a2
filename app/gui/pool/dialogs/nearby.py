"""A line under the map: machines nearby that are not of the household. All of it is a hint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtWidgets import QWidget

from app.gui.look import theme as sizes
from app.gui.pool import machine_words
from app.gui.pool.machine_facts import Stranger
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, tooltip
from app.gui.widgets.layouts import clear, held, row

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
