"""One thing to choose: what it is, what it means, its default, and what chooses it."""

from __future__ import annotations

from PySide6.QtWidgets import QLayout, QWidget

from app.gui.look import theme as sizes
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import column


class Setting(QWidget):
    """The control stands at the right, or below where it is `wide`."""

    def __init__(
        self,
        title: str,
        about: str = "",
        control: QWidget | QLayout | None = None,
        *,
        default: str = "",
        wide: bool = False,
        words: str = "",
    ) -> None:
        super().__init__()
        self.gone = False  # what it is about is no more: no search shows it
        self._words = f"{title} {about} {default} {words}".casefold()
        self.title = label(title)
        self.title.setWordWrap(True)
        self.about = paragraph(about, "caption")
        self.default = paragraph(default, "caption")
        self._texts = texts = QWidget()
        texts.setLayout(column(self.title, self.about, self.default, gap=0))
        if isinstance(control, QWidget):
            if not control.accessibleName():
                control.setAccessibleName(title)
            control.setAccessibleDescription(about)
        if isinstance(control, QLayout) and not wide:
            holder = QWidget()
            holder.setLayout(control)
            control = holder
        box: QLayout
        if isinstance(control, QWidget) and not wide:
            box = Beside(texts, control, gap=sizes.XL)
        else:
            box = column(texts, *([control] if control else []), gap=sizes.S)
        box.setContentsMargins(0, sizes.S, 0, sizes.S)
        self.setLayout(box)
        for part in (self.title, self.about, self.default):
            show_if(part, bool(part.text()))
        show_if(texts, bool(title or about or default))  # its gap is none without words

    def tell(self, about: str) -> None:
        """Another line below the title."""
        self.about.setText(about)
        show_if(self.about, bool(about))
        show_if(self._texts, True)

    def matches(self, words: list[str]) -> bool:
        """Whether every searched word stands in it."""
        said = f"{self._words} {self.about.text().casefold()}"
        return all(word in said for word in words)
