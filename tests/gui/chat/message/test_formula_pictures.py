r"""Formulas in answers: painted in the colors and the size of the text, and copied as they were written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QUrl
from PySide6.QtGui import QColor, QFont, QFontMetrics, QImage, QTextDocument
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.chat.message.body import Body, MessageServices, TextBlock
from app.gui.chat.message.formula_pictures import MAX_EMS, FormulaPictures, Look, painted, place_of
from app.gui.chat.message.highlight import TimeSlicer
from app.gui.chat.message.math_rules import Formula
from app.gui.chat.reading.picture_loader import PictureLoader
from app.gui.look.theme import Scheme, Theme
from backends.readers.formulas import draw
from backends.readers.messages import Drawing, Shape

OBJECT = "\N{OBJECT REPLACEMENT CHARACTER}"
WAIT_MS = 60_000  # on a busy computer
IMAGE = QTextDocument.ResourceType.ImageResource.value


@pytest.fixture
def services(qapp: QApplication) -> Iterator[MessageServices]:
    formulas = FormulaPictures()
    yield MessageServices(
        Theme(qapp, Scheme.LIGHT, 1.0), TimeSlicer(qapp), lambda _: None, formulas, PictureLoader(qapp), lambda _: None
    )
    formulas.close()


def body(qtbot: QtBot, services: MessageServices, text: str) -> TextBlock:
    made = Body(services, is_markdown=True)
    qtbot.addWidget(made)
    made.resize(700, 400)
    made.show()
    made.show_text(text)
    block = made.blocks[0]
    assert isinstance(block, TextBlock)
    return block


def words(block: TextBlock) -> str:
    return block.toPlainText().strip()


def finished(qtbot: QtBot, services: MessageServices) -> None:
    qtbot.waitUntil(lambda: services.formulas.is_idle, timeout=WAIT_MS)


def picture(block: TextBlock, number: int = 0) -> QImage:
    image = block.loadResource(IMAGE, QUrl(f"formula:{number}"))
    assert isinstance(image, QImage)
    return image


def inks(image: QImage) -> set[str]:
    """The colors of the opaque pixels."""
    pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return {color.name() for color in pixels if color.alpha() == 255}


def test_formulas_are_painted_and_copied_as_they_were_written(qtbot: QtBot, services: MessageServices) -> None:
    text = r"The roots $\frac{1}{2}$ and \(x_1\) cost $5 and $6, \[ y \]"
    block = body(qtbot, services, text)
    assert words(block) == text  # until they are drawn, they are shown as source
    finished(qtbot, services)
    assert words(block) == f"The roots {OBJECT} and {OBJECT} cost $5 and $6, {OBJECT}"
    assert block.accessibleDescription() == r"$\frac{1}{2}$, \(x_1\), \[ y \]"
    block.selectAll()
    assert block.createMimeDataFromSelection().text().strip() == text
    cursor = block.textCursor()
    cursor.setPosition(len("The roots x a"))
    cursor.setPosition(len("The roots x and x cost"), cursor.MoveMode.KeepAnchor)
    block.setTextCursor(cursor)
    assert block.createMimeDataFromSelection().text() == r"nd \(x_1\) cost"


def test_a_formula_has_the_color_of_the_text_in_both_palettes(qtbot: QtBot, services: MessageServices) -> None:
    services.theme.choose(Scheme.LIGHT, 3.0)  # so large that letters have pixels without the background in them
    block = body(qtbot, services, r"$\color{red} \frac{x}{y}$")
    finished(qtbot, services)
    assert services.theme.color("text").name() in inks(picture(block))
    services.theme.choose(Scheme.DARK, 3.0)
    block.restyle()
    assert services.theme.color("text").name() in inks(picture(block))
    assert "#ff0000" not in inks(picture(block))


def test_a_formula_grows_with_the_text(qtbot: QtBot, services: MessageServices) -> None:
    block = body(qtbot, services, r"$\frac{x}{y}$")
    finished(qtbot, services)
    before = picture(block).height()
    services.theme.choose(Scheme.LIGHT, 2.0)
    block.restyle()
    assert picture(block).height() > 1.6 * before


@pytest.mark.parametrize("tex", ["x", r"\frac{a}{b}", r"\int_0^1 x", "y", r"\sqrt{x}"])
def test_the_baseline_meets_that_of_the_text(qapp: QApplication, tex: str) -> None:
    """The room above and below the baseline is what Qt gives a picture, and no ink lies outside of it."""
    drawing, font = draw(tex, is_display=False), QFont()
    font.setPixelSize(40)
    place = place_of(drawing, font)
    if place.is_middle:
        assert place.ascent == (place.height + QFontMetrics(font).xHeight() / 2) / 2
    else:
        assert place.ascent == place.height
    image = painted(drawing, Look(font, QColor("black"), 1.0))
    assert (image.width(), image.height()) == (place.width, place.height)
    rows = [y for y in range(image.height()) for x in range(image.width()) if image.pixelColor(x, y).alpha()]
    scale = place_of(draw("x", is_display=False), font).height / draw("x", is_display=False).ascent
    assert abs(min(rows) - (place.ascent - drawing.ascent * scale)) < 3
    assert abs(max(rows) - (place.ascent + drawing.depth * scale)) < 3


def test_what_cannot_be_drawn_stays_source_in_the_style_of_code(qtbot: QtBot, services: MessageServices) -> None:
    text = r"$\foo{x} < 1$ and $\frac{1}$ and $y$"
    block = body(qtbot, services, text)
    finished(qtbot, services)
    assert words(block) == rf"$\foo{{x}} < 1$ and $\frac{{1}}$ and {OBJECT}"
    assert services.theme.code_font().family() in block.toHtml()


def test_a_display_formula_is_centered_in_its_own_line(qtbot: QtBot, services: MessageServices) -> None:
    block = body(qtbot, services, "before\n\\[\n\\sum_i x_i\n\\]\nafter")
    finished(qtbot, services)
    assert words(block) == f"before\n{OBJECT}\nafter"
    middle = block.document().findBlockByNumber(1)
    left = middle.layout().lineAt(0).naturalTextRect().left()
    assert left > 100


def test_a_growing_formula_is_source_until_it_ends(qtbot: QtBot, services: MessageServices) -> None:
    made = Body(services, is_markdown=True)
    qtbot.addWidget(made)
    made.show()
    made.show_text("$$\nx\n= y", growing=True)
    block = made.blocks[0]
    assert isinstance(block, TextBlock)
    assert words(block) == "$$\u2028x\u2028= y".replace("\u2028", "\n")
    made.show_text("$$\nx\n= y\n$$", growing=True)
    finished(qtbot, services)
    assert words(block) == OBJECT


def test_the_same_formula_is_drawn_once(qtbot: QtBot, services: MessageServices) -> None:
    body(qtbot, services, "$q_1$ and $q_1$")
    finished(qtbot, services)
    again = body(qtbot, services, "$q_1$")
    assert words(again) == OBJECT  # at once
    assert not services.formulas.request([Formula("q_1", "$q_1$", is_display=False)])


def test_only_formulas_are_loaded(qtbot: QtBot, services: MessageServices) -> None:
    block = body(qtbot, services, "$x$ ![y](formula:0)")
    finished(qtbot, services)
    assert words(block) == f"{OBJECT} y"
    for address in ("formula:1", "formula:-1", "formula:", "formula:²", "http://a.b/c.png", "file:///etc/hostname"):
        assert block.loadResource(IMAGE, QUrl(address)) is None


def test_the_menu_on_a_formula_copies_it(qtbot: QtBot, services: MessageServices) -> None:
    block = body(qtbot, services, r"$\frac{x}{y}$ and words")
    finished(qtbot, services)
    layout = block.document().documentLayout()
    on_it, beside = layout.formatAt(QPoint(8, 12)), layout.formatAt(QPoint(120, 12))
    assert on_it.isImageFormat()
    assert on_it.toImageFormat().name() == "formula:0"
    assert not beside.isImageFormat()


@pytest.mark.parametrize(
    "drawing",
    [
        Drawing(0, 1_000 * MAX_EMS + 1, 500, 0, ()),
        Drawing(0, 0, 500, 0, ()),
        Drawing(0, 500, -600, 500, ()),
        Drawing(0, 500, 500, 0, (Shape("M 1"),)),
        Drawing(0, 500, 500, 0, (Shape("X 1 2"),)),
        Drawing(0, 500, 500, 0, (Shape("M nan nan L 1 1"),)),
        Drawing(0, 500, 500, 0, (Shape("M 0 0 L 99999999 1"),)),
        Drawing(0, 500, 500, 0, (Shape(f"M 0 0 L {'9' * 400} 1"),)),
        Drawing(0, 500, 500, 0, (Shape("M 1 1 L 9 9 " * 40_000),)),
        Drawing(0, 500, 500, 0, (Shape("M 1 1 L 9 9"),) * 30_000),
        Drawing(0, 500, 500, 0, (Shape("M 0 0 L 1 1", 1_000_000),)),
        Drawing(0, 500, 500, 0, (Shape("M 0 0 L 1 1", -1),)),
        Drawing(0, 500, 1_000 * MAX_EMS, 1_000 * MAX_EMS, ()),
    ],
)
def test_a_reply_that_makes_no_sense_is_not_painted(
    qtbot: QtBot, services: MessageServices, drawing: Drawing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever takes over the process cannot make the window paint gigabytes."""
    formulas = services.formulas
    monkeypatch.setattr(formulas._reader, "ask", lambda _, answered: answered(drawing))
    block = body(qtbot, services, "$x$")
    finished(qtbot, services)
    assert words(block) == "$x$"


def test_a_formula_as_large_as_many_screens_stays_source(qtbot: QtBot, services: MessageServices) -> None:
    """A thousand characters would otherwise take 33 MB, and four times as much on a screen with a ratio of 2."""
    rows = "\\\\".join(["a" + r"\qquad" * 42, *"a" * 255])
    source = rf"$$\begin{{matrix}}{rows}\end{{matrix}}$$"
    assert len(source) < 1_100
    block = body(qtbot, services, source)
    finished(qtbot, services)
    assert words(block) == source


def test_the_pictures_of_a_text_take_so_many_pixels_at_most(
    qtbot: QtBot, services: MessageServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = body(qtbot, services, "$x$")
    finished(qtbot, services)
    image = picture(block)
    n_pixels = image.width() * image.height()
    monkeypatch.setattr("app.gui.chat.message.body.MAX_BLOCK_PIXELS", 2 * n_pixels)
    three = body(qtbot, services, "$x$ $x$ $x$")
    finished(qtbot, services)
    assert words(three) == f"{OBJECT} {OBJECT} $x$"
    monkeypatch.setattr("app.gui.chat.message.body.MAX_PIXELS", n_pixels - 1)
    block.restyle()
    assert words(block) == "$x$"
    assert block.loadResource(IMAGE, QUrl("formula:0")) is None


def test_formulas_that_are_not_to_blame_are_tried_again(
    qtbot: QtBot, services: MessageServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hostile answer makes the process rest for a while. Others keep their source only for that long."""
    formulas = services.formulas
    monkeypatch.setattr(formulas._reader, "_rests_until", float("inf"))
    block = body(qtbot, services, "$z_9$")
    finished(qtbot, services)
    assert words(block) == "$z_9$"
    monkeypatch.undo()
    block.restyle()
    finished(qtbot, services)
    assert words(block) == OBJECT
