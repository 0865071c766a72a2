"""Whether a widget is seen, chosen before anybody sees it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def show_if(widget: QWidget, wanted: bool) -> None:
    """Hide it, or let it be seen with what holds it.

    Qt dresses and measures at once what is shown, also in a page that is still being made, and does so again each
    time that part finds its place: what nobody had hidden needs no showing.
    """
    if not wanted or widget.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide):
        widget.setVisible(wanted)
