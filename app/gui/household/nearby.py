"""A line under the map: machines nearby that are not of the household. All of it is a hint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtWidgets import QWidget

from app.gui import theme as sizes
from app.gui.household.facts import Stranger
from app.gui.parts.buttons import button
from app.gui.parts.flow import Flow
from app.gui.parts.layouts import clear, held, row
from app.gui.parts.text import label, tooltip

MOST_SHOWN = 4
MOST_LETTERS = 24
ID_SHOWN = 8  # as the command line shows it


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
        for one in self._shown[:MOST_SHOWN]:
            self._row.addWidget(self._made(one))
        if len(found) > MOST_SHOWN:
            self._row.addWidget(
                label(self.tr("and %n more", "", len(found) - MOST_SHOWN), "caption")
            )

    def _made(self, one: Stranger) -> QWidget:
        """What to press; one without a name shows beside its address which machine it is."""
        made = button(self._words(one), partial(self._chosen, one), "link")
        if one.name and one.pairing_address:
            if not one.claims:
                return made
            told = self.tr("{claims}: so it says itself").format(claims=one.claims)
            made.setToolTip(tooltip(told))
            made.setAccessibleDescription(told)
            return held(row(made, label(one.claims, "caption"), gap=sizes.XS))
        short = one.id[:ID_SHOWN]
        made.setAccessibleDescription(short)
        return held(row(made, label(short, "caption"), gap=sizes.XS)) if one.address else made

    def _words(self, one: Stranger) -> str:
        if one.name and one.pairing_address:
            name = one.name[:MOST_LETTERS].replace("&", "&&")
            return self.tr("{name} lets a machine in").format(name=name)
        return self.tr("A machine at {address}").format(address=one.address or one.id[:ID_SHOWN])
