"""What this computer has, and how fast it was measured to be."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QWidget

from app.core.errors import AppError
from app.gui.api.node_client import Call, Json
from app.gui.app.app_context import AppContext
from app.gui.look import theme as sizes
from app.gui.look.sentences import here
from app.gui.look.theme import set_role
from app.gui.this_computer.hardware_words import lines, speed_words
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import clear, column, line
from app.gui.widgets.notice import Remark
from app.gui.widgets.progress import Progress


class HardwareCard(QFrame):
    """Asked when the page is shown; nothing of it changes by itself but free amounts."""

    def __init__(self, services: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._client, self._pool = services.client, services.pool
        self._asked: Call | None = None
        self._measuring: Call | None = None
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(sizes.XL)
        self._grid.setVerticalSpacing(sizes.S)
        self._grid.setColumnStretch(1, 1)
        self._waiting = Remark(services.theme, services.go)
        self.speed = Remark(services.theme, services.go, self.tr("Not measured yet."), "")
        self.measure = button(self.tr("Measure speed"), self._measure)
        self.cancel = button(self.tr("Cancel"), self._cancel)
        self.progress = Progress(self.tr("Progress of the measurement"))
        said = QWidget()
        said.setLayout(column(self.speed, self.progress, gap=0))
        measured = Beside(said, self.cancel, self.measure)
        title = label(self.tr("This machine has"), "section")
        box = column(title, self._waiting, self._grid, line(), measured, gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        self._show_measuring(False)
        services.pool.link_changed.connect(self._tell_waiting)
        self._tell_waiting()

    @property
    def is_asked(self) -> bool:
        """Whether somebody waits for this machine to be measured."""
        return not self.cancel.isHidden()

    def look(self) -> None:
        """Ask what is there, and whether the speed is known already."""
        if self._asked is None and self._pool.is_there:
            self._asked = self._client.get("/machine", self._tell, self._fail)
            self._tell_waiting()

    def _tell_waiting(self) -> None:
        """Nobody is asked while no node is there."""
        there = self._pool.is_there
        asking = self.tr("Asking the engines what they find…")
        absent = self.tr("Shown as soon as the background service runs.")
        self._waiting.say(asking if there else absent, "muted")
        self.measure.setEnabled(there)

    def _tell(self, machine: Json) -> None:
        self._asked = None
        self._waiting.hide()
        clear(self._grid)
        for at, (name, text) in enumerate(lines(machine)):
            self._grid.addWidget(label(name, "muted"), at, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(paragraph(text), at, 1)
        if self._measuring is None:
            self._ask_speed(known_only=True)

    def _fail(self, error: AppError) -> None:
        self._asked = None
        self._waiting.fail(error)

    # its speed

    def _measure(self) -> None:
        self._show_measuring(True)
        self._ask_speed(known_only=False)

    def _ask_speed(self, *, known_only: bool) -> None:
        model = (self._pool.loaded or {}).get("model") or "guide"
        body = {"model": model, "only_here": True, "known_only": known_only}
        self._measuring = self._client.call(
            "POST", "/speeds", body, self._measured, self._not_measured, self._progressed
        )

    def _progressed(self, told: Json) -> None:
        step = told.get("progress") or {}
        if step.get("total"):
            self.progress.tell(int(step.get("done") or 0) / int(step["total"]))

    def _measured(self, answer: Json) -> None:
        asked_aloud = self.cancel.isVisible()
        self._measuring = None
        self._show_measuring(False)
        found = speed_words(answer, str(self._pool.node.get("id")))
        if found is not None:
            self.speed.say(found, "")
        elif asked_aloud:
            why = (answer.get("reasons") or {}).get(str(self._pool.node.get("id")))
            later = self.tr("It could not be measured now. Try again when no answer runs.")
            self.speed.say(here(str(why)) if why else later, "")
        else:
            self.speed.say(self.tr("Its speed is not measured yet."), "muted")

    def _not_measured(self, error: AppError) -> None:
        asked_aloud = self.cancel.isVisible()
        self._measuring = None
        self._show_measuring(False)
        if asked_aloud:
            self.speed.fail(error)

    def _cancel(self) -> None:
        if self._measuring is not None:
            self._measuring.cancel()
            self._measuring = None
        self._show_measuring(False)

    def _show_measuring(self, on: bool) -> None:
        self.progress.tell(None)
        had_focus = self.measure.hasFocus() or self.cancel.hasFocus()
        self.progress.setVisible(on)
        self.cancel.setVisible(on)
        self.speed.setVisible(not on)
        self.measure.setVisible(not on)
        if had_focus:
            (self.cancel if on else self.measure).setFocus()
