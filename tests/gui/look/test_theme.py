"""The look: both palettes are legible, and the style sheet is filled at every text size."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont
from PySide6.QtWidgets import QApplication, QPushButton, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from app.gui.look.theme import DARK, LIGHT, MAX_SCALE, Colors, Scheme, Theme
from app.gui.widgets.layouts import column

PALETTES = pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
TEXTS = ("text", "muted", "accent", "good", "warning", "error")
GROUNDS = ("window", "card", "code")
CODE_TEXTS = ("code_keyword", "code_function", "code_string", "code_number", "code_comment")
LEGIBLE, SEEN = 4.5, 3.0  # WCAG 2.2: text, and borders of what can be used


def luminance(color: str) -> float:
    """WCAG's relative luminance."""
    shade = QColor(color)
    parts = (shade.redF(), shade.greenF(), shade.blueF())
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(name: str, other: str) -> float:
    low, high = sorted((luminance(name), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_wcag_does() -> None:
    assert contrast("black", "white") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@PALETTES
def test_text_is_legible_on_every_ground(colors: Colors) -> None:
    pairs = [(text, ground) for text in TEXTS for ground in GROUNDS]
    pairs += [(text, "code") for text in CODE_TEXTS]
    pairs += [("on_accent", "accent"), ("on_accent", "accent_hover"), ("text", "selected")]
    poor = {
        pair: round(count, 2)
        for pair in pairs
        if (count := contrast(*(getattr(colors, name) for name in pair))) < LEGIBLE
    }
    assert not poor


@PALETTES
def test_borders_of_controls_are_seen(colors: Colors) -> None:
    for ground in ("window", "card"):
        for border in ("border", "accent", "error", "warning"):
            assert contrast(getattr(colors, border), getattr(colors, ground)) >= SEEN


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    made = Theme(qapp, Scheme.LIGHT, 1.0)
    yield made
    made.choose(Scheme.LIGHT, 1.0)


def test_the_style_sheet_is_filled(qapp: QApplication, theme: Theme) -> None:
    for scheme in (Scheme.LIGHT, Scheme.DARK):
        theme.choose(scheme, 1.0)
        assert "$" not in re.sub(r"/\*.*?\*/", "", qapp.styleSheet())
        assert theme.colors.window in qapp.styleSheet()
        assert qapp.palette().window().color() == QColor(theme.colors.window)


def test_everything_grows_with_the_text_size(qtbot: QtBot, theme: Theme) -> None:
    button = QPushButton("Load")
    qtbot.addWidget(button)
    button.show()
    small = button.sizeHint()
    theme.choose(Scheme.LIGHT, 5.0)
    assert theme.scale == MAX_SCALE
    large = button.sizeHint()
    assert large.height() >= 2 * small.height() - 4
    assert large.width() > 1.6 * small.width()


@PALETTES
def test_a_tab_with_the_focus_has_a_ring_around_it_and_no_other_place(
    qtbot: QtBot, theme: Theme, colors: Colors
) -> None:
    theme.choose(Scheme.DARK if colors is DARK else Scheme.LIGHT, 1.0)
    window, tabs = QWidget(), QTabBar()
    other = QPushButton("Load")
    tabs.addTab("Overview")
    tabs.addTab("Log")
    tabs.setDrawBase(False)
    window.setLayout(column(tabs, other))
    qtbot.addWidget(window)
    window.show()
    other.setFocus()
    qtbot.waitUntil(other.hasFocus)
    without, words = top_of(tabs, 0), tabs.tabRect(0)
    tabs.setFocus()
    qtbot.waitUntil(tabs.hasFocus)
    assert top_of(tabs, 0) == QColor(colors.accent) != without
    assert top_of(tabs, 1) == without  # the keys change the page from the first one
    assert tabs.tabRect(0) == words


def top_of(tabs: QTabBar, at: int) -> QColor:
    """The color in the middle of a tab's upper edge."""
    edge = tabs.tabRect(at)
    return tabs.grab().toImage().pixelColor(edge.center().x(), edge.top() + 1)


def test_figures_stand_below_each_other(theme: Theme) -> None:
    assert theme.font(bold=True).featureValue(QFont.Tag("tnum")) == 1


def test_high_contrast_makes_frames_as_plain_as_text(qapp: QApplication, theme: Theme) -> None:
    changed: list[bool] = []
    theme.changed.connect(lambda: changed.append(True))
    theme._needs.contrastPreferenceChanged.emit(Qt.ContrastPreference.HighContrast)
    assert changed == [True]
    assert theme.colors.border == theme.colors.hairline == LIGHT.text
    assert qapp.palette().mid().color() == QColor(LIGHT.text)
    assert LIGHT.border not in qapp.styleSheet()
    theme._needs.contrastPreferenceChanged.emit(Qt.ContrastPreference.NoPreference)
    assert theme.colors is LIGHT
