"""Which placement the map shows, where the models of several machines, or several of this one, run side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QComboBox, QWidget

from app.gui.look.sentences import model_name
from app.gui.widgets.drop_down import DropDown
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label

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
