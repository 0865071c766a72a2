"""The theme, with two color palettes, and a style sheet template filled with colors and sizes.

Colors are defined only here. Tests check their contrast (at least 4.5:1 for text and 3:1 for borders of controls).
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from string import Template

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from app.gui.look import sizes

SHEET = Path(__file__).resolve().parents[3] / "resources" / "gui" / "style.qss"
PICTURES = SHEET.parent / "style"  # images for the style sheet, in a gray that suits both palettes

MIN_SCALE, MAX_SCALE = 1.0, 2.0
HOVER_MS, PAGE_MS = 120, 200
TABULAR = QFont.Tag("tnum")


class Scheme(StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Colors:
    """The named colors of a palette. Those named `code_*` are for syntax highlighting."""

    window: str
    card: str
    code: str
    text: str
    muted: str
    accent: str
    on_accent: str
    accent_hover: str
    selected: str  # the background of a selected row or the current page
    good: str
    warning: str
    error: str
    border: str
    hairline: str
    code_keyword: str
    code_function: str
    code_string: str
    code_number: str
    code_comment: str


LIGHT = Colors(
    window="#f5f7fa", card="#ffffff", code="#eef2f7", text="#1b2430", muted="#566273",
    accent="#2563eb", on_accent="#ffffff", accent_hover="#1d4fc4", selected="#dfe8fb",
    good="#14743a", warning="#974a06", error="#b91c1c", border="#7a8798", hairline="#dde3ea",
    code_keyword="#7c2fb0", code_function="#1d4ed8", code_string="#146c3c",
    code_number="#9a4a04", code_comment="#566273",
)  # fmt: skip
DARK = Colors(
    window="#14171c", card="#1e232b", code="#0f1217", text="#e6e9ee", muted="#9aa7b6",
    accent="#7db0ff", on_accent="#0c1a33", accent_hover="#9cc3ff", selected="#2a3750",
    good="#4ade80", warning="#fbbf24", error="#ff8a80", border="#748192", hairline="#2c333d",
    code_keyword="#d58cf0", code_function="#7db0ff", code_string="#86d992",
    code_number="#f0b46a", code_comment="#94a1b1",
)  # fmt: skip


@lru_cache(maxsize=2)
def contrasting(colors: Colors) -> Colors:
    """Return a high-contrast version of a palette, with borders and secondary text in the main text color."""
    return replace(colors, border=colors.text, hairline=colors.text, muted=colors.text)


AT_ONCE = 80  # widgets polished per step, which takes a few milliseconds


POLISHED = Qt.WidgetAttribute.WA_WState_Polished


class StyleUpdater(QObject):
    """A service that applies a new style sheet to visible widgets immediately and to all others gradually.

    When the application's style sheet changes, Qt polishes each widget, even hidden ones, once for every ancestor.
    That takes half a second once all pages exist. This class polishes each widget only once.
    """

    resized = Signal()  # all widgets, including hidden ones, have adopted the new text size

    def __init__(self, app: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        self._app = app
        self._fresh: set[QWidget] = set()  # widgets that are already polished while others wait
        self._waiting: list[QWidget] | None = None  # None until they are listed
        self._is_resized = False
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._go_on)

    def apply(self, sheet: str, palette: QPalette, *, is_resized: bool) -> None:
        """Apply a style sheet and a palette.

        is_resized: whether the text size has changed as well, so that widgets must be measured again.
        """
        self._is_resized = is_resized or (self._is_resized and self._timer.isActive())
        # The first time, Qt itself polishes the few existing widgets.
        is_first = not self._app.styleSheet()
        if not is_first:
            self._app.style().unpolish(self._app)  # clears cached rules
        self._app.setStyleSheet(sheet)
        self._app.setPalette(palette)  # needed again, because setting a style sheet resets part of the palette
        self._fresh.clear()
        self._waiting = None
        if is_first:
            return
        self._timer.start()
        for window in _without_gc(self._app.topLevelWidgets):
            self._polish_seen(window)

    def finish(self, page: QWidget) -> None:
        """Polish the visible part of a page before it is painted."""
        if self._timer.isActive():
            self._polish_seen(page)
            if self._is_resized:
                self.resized.emit()

    def _polish_seen(self, widget: QWidget) -> None:
        """Polish a visible widget and its visible descendants.

        This avoids `findChildren`, because PySide would keep the returned widgets alive even after they are
        deleted.
        """
        if not widget.isVisible():
            return
        if not self._is_resized and widget.visibleRegion().isEmpty():
            return  # unless sizes change: those matter even if the widget is scrolled out of view
        if widget not in self._fresh and widget.testAttribute(POLISHED):
            self._polish(widget)
            self._fresh.add(widget)
        for child in widget.children():
            if isinstance(child, QWidget) and not child.isWindow():
                self._polish_seen(child)

    def _go_on(self) -> None:
        """Polish the next batch of widgets.

        The first call only lists the widgets, which takes as long as a batch.
        """
        if self._waiting is None:
            self._waiting = [other for other in self._polished() if other not in self._fresh]
            return
        now, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        for widget in now:
            if isValid(widget) and widget not in self._fresh:
                self._polish(widget)
        if not self._waiting:
            self._timer.stop()
            self._fresh.clear()
            if self._is_resized:
                self.resized.emit()

    def _polished(self) -> list[QWidget]:
        return [widget for widget in _without_gc(self._app.allWidgets) if widget.testAttribute(POLISHED)]

    def _polish(self, widget: QWidget) -> None:
        widget.style().polish(widget)
        if self._is_resized:
            QCoreApplication.sendEvent(widget, QEvent(QEvent.Type.StyleChange))


def _without_gc(listing: Callable[[], list[QWidget]]) -> list[QWidget]:
    """Call `listing` with garbage collection disabled.

    PySide wraps the pointers in Qt's list one by one. Garbage collection halfway through could delete widgets of a
    closed window that are not yet wrapped, which would crash the program.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        return listing()
    finally:
        if before:
            gc.enable()


class Theme(QObject):
    """The current color scheme and text size. `changed` is emitted when either changes."""

    changed = Signal()

    def __init__(self, app: QApplication, scheme: Scheme, scale: float) -> None:
        super().__init__(app)
        self._app, self.scheme, self.scale = app, scheme, scale
        self._repolish = StyleUpdater(app, self)
        self._repolish.resized.connect(self.changed)
        self._family = app.font().family()
        app.setStyle("Fusion")
        self._hints = QGuiApplication.styleHints()
        self._hints.colorSchemeChanged.connect(self._system_changed)
        self._needs = self._hints.accessibility()
        self._needs.contrastPreferenceChanged.connect(self._contrast_changed)
        self._contrast = self._needs.contrastPreference()
        self._apply(is_resized=True)

    @property
    def is_dark(self) -> bool:
        if self.scheme is Scheme.SYSTEM:
            return self._hints.colorScheme() is Qt.ColorScheme.Dark
        return self.scheme is Scheme.DARK

    @property
    def colors(self) -> Colors:
        usual = DARK if self.is_dark else LIGHT
        is_high = self._contrast is Qt.ContrastPreference.HighContrast
        return contrasting(usual) if is_high else usual

    def color(self, token: str) -> QColor:
        """Return a color of the current palette by its name in Colors."""
        return QColor(getattr(self.colors, token))

    def px(self, size: float) -> int:
        """Return a size in pixels, scaled with the text size."""
        return round(size * self.scale)

    @property
    def cell(self) -> int:
        """The distance from the edge of a table cell to its text. It consists of the padding and Qt's focus margin.

        The margin is a constant, because reading it from Qt's style would keep that style alive in Python, and each
        new style sheet creates another one.
        """
        return self.px(sizes.XS) + sizes.CELL_MARGIN

    def font(self, size: int = sizes.BODY, *, bold: bool = False) -> QFont:
        font = QFont(self._family)
        font.setPixelSize(self.px(size))
        font.setFeature(TABULAR, 1)  # makes digits equally wide, so that figures align
        if bold:
            font.setWeight(QFont.Weight.DemiBold)
        return font

    def code_font(self) -> QFont:
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPixelSize(self.px(sizes.CODE_SIZE))
        return font

    def choose(self, scheme: Scheme, scale: float) -> None:
        """Change the color scheme and text size."""
        scale, before = min(MAX_SCALE, max(MIN_SCALE, scale)), self.scale
        self.scheme, self.scale = scheme, scale
        self._apply(is_resized=scale != before)
        self.changed.emit()

    def dress(self, page: QWidget) -> None:
        """Apply pending theme changes to a page that is about to be shown."""
        self._repolish.finish(page)

    def _system_changed(self) -> None:
        if self.scheme is Scheme.SYSTEM:
            self._apply()
            self.changed.emit()

    def _contrast_changed(self, preference: Qt.ContrastPreference) -> None:
        self._contrast = preference
        self._apply()
        self.changed.emit()

    def _apply(self, *, is_resized: bool = False) -> None:
        if is_resized:
            self._app.setFont(self.font())
        handle, groove = self.px(sizes.HANDLE), self.px(sizes.XS)
        scaled = {
            name.lower(): f"{self.px(value)}px"
            for name, value in vars(sizes).items()
            if name.isupper() and isinstance(value, int)
        }
        radius = self.px(sizes.L) // 2 + 1  # includes the border; Qt ignores a larger radius and draws a square
        mark = SHEET.parent / "icons" / f"mark-{'dark' if self.is_dark else 'light'}.svg"
        filled = Template(SHEET.read_text(encoding="utf-8")).substitute(
            asdict(self.colors)
            | scaled
            | {
                "line": f"{sizes.LINE}px",
                "ring": f"{sizes.RING}px",
                "scroll_bar": f"{sizes.SCROLL_BAR}px",
                "scroll_radius": f"{sizes.SCROLL_BAR // 2 - sizes.RING}px",
                "hover_time": HOVER_MS,
                # the focus border is one pixel thicker, but the widget must not grow
                "inner_focused": f"{self.px(sizes.CONTROL_INNER) - 2}px",
                "l_focused": f"{self.px(sizes.L) - 1}px",
                "s_focused": f"{self.px(sizes.S) - 1}px",
                "s_in_ring": f"{self.px(sizes.S) - sizes.RING}px",
                "m_in_ring": f"{self.px(sizes.M) - sizes.RING}px",
                "handle_radius": f"{handle // 2}px",
                "handle_over": f"{(groove - handle) // 2}px",
                "groove_radius": f"{groove // 2}px",
                # the height of the tallest button beside the title
                "title_line": f"{self.px(sizes.CONTROL_INNER) + 4}px",
                "radio_radius": f"{radius}px",
                "cell": f"{self.cell}px",
                "code_family": self.code_font().family(),
                "check_mark": mark.as_posix(),
                "pictures": PICTURES.as_posix(),
            }
        )
        self._repolish.apply(filled, _palette(self.colors), is_resized=is_resized)


def _palette(colors: Colors) -> QPalette:
    palette = QPalette()
    role, group = QPalette.ColorRole, QPalette.ColorGroup
    for where, token in (
        (role.Window, colors.window), (role.WindowText, colors.text),
        (role.Base, colors.card), (role.AlternateBase, colors.window),
        (role.Text, colors.text), (role.PlaceholderText, colors.muted),
        (role.Button, colors.card), (role.ButtonText, colors.text),
        (role.BrightText, colors.error), (role.Highlight, colors.accent),
        (role.HighlightedText, colors.on_accent), (role.Link, colors.accent),
        (role.LinkVisited, colors.accent), (role.ToolTipBase, colors.card),
        (role.ToolTipText, colors.text), (role.Mid, colors.hairline),
        (role.Accent, colors.accent),
    ):  # fmt: skip
        palette.setColor(where, QColor(token))
    for where in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(group.Disabled, where, QColor(colors.muted))
    return palette


def set_role(widget: QWidget, role: str) -> None:
    """Set the `role` property, which style sheet selectors such as `[role="muted"]` match."""
    if widget.property("role") != role:
        widget.setProperty("role", role)
        if widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):  # otherwise Qt polishes it when it is shown
            widget.style().unpolish(widget)
            widget.style().polish(widget)
