"""Models that other programs of this computer hold already: offered before anything is downloaded."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.accessibility import announce
from app.gui.welcome.other_models import OtherModels
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import card, column, row

MOST_NAMES = 3


class AlreadyHere(QWidget):
    """Hidden where there are none. is_last: nothing follows, so it leads to their page (`wanted`)."""

    wanted = Signal()

    def __init__(self, others: OtherModels, *, is_last: bool = False) -> None:
        super().__init__()
        self._others, self._is_last, self._was_busy = others, is_last, False
        self.about, self.names = paragraph(""), paragraph("", "caption")
        self.problem = paragraph("", "warning")
        self.take, self.stop = button("", others.take), button(self.tr("Stop"), others.stop)
        self.show_them = button(self.tr("Show them on the page Models"), self.wanted.emit)
        inner = card(
            label(self.tr("Already on this computer"), "section"),
            self.about,
            self.names,
            self.problem,
            row(self.take, self.stop, self.show_them, None),
            gap=sizes.S,
        )
        self.setLayout(column(inner))
        others.changed.connect(self._tell)
        self._tell()

    def _tell(self) -> None:
        """What there is and what became of it."""
        others = self._others
        left, busy = others.left, others.is_busy
        self.setVisible(bool(others.models))
        self.about.setText(self._going_on() if busy else self._offer() if left else self._done())
        names = [str(one["name"]) for one in left or others.models]
        self.names.setText(", ".join(names[:MOST_NAMES]) + ("…" if len(names) > MOST_NAMES else ""))
        self.problem.setText(others.problem)
        self.problem.setVisible(bool(others.problem))
        self.take.setText(self.tr("Use %n model(s)", "", len(left)))
        if busy:  # first: the keyboard goes on to it
            self.stop.show()
        self.take.setVisible(bool(left) and not busy)
        self.stop.setVisible(busy)
        self.show_them.setVisible(self._is_last and not busy)
        if self._was_busy and not busy and self.isVisible():
            announce(self, others.problem or self.about.text())
        self._was_busy = busy

    def _offer(self) -> str:
        left = self._others.left
        apps = ", ".join(dict.fromkeys(str(one["app"]) for one in left))
        text = self.tr(
            "%n model(s) of {apps} can be used in place, without a download: {size}. "
            "Each file is read once to check it.",
            "",
            len(left),
        )
        size = formats.size(sum(int(one["size_bytes"]) for one in left))
        return text.format(apps=apps, size=size)

    def _going_on(self) -> str:
        name, how_far = self._others.progress
        text = self.tr("{name}: {how_far}. You can go on meanwhile.")
        return text.format(name=name, how_far=how_far)

    def _done(self) -> str:
        return self.tr("%n model(s) can be loaded on the page Models.", "", len(self._others.taken))
