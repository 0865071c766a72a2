"""The text of a message on the screen: safe, copied as it is, bounded."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication, QTextDocument
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QScrollArea
from pytestqt.qtbot import QtBot

from app.gui.chat.message.body import PORTION, Body, CodeBlock, Listing, MessageServices, TextBlock
from app.gui.chat.message.formula_pictures import FormulaPictures
from app.gui.chat.message.highlight import TimeSlicer
from app.gui.chat.message.message_actions import TextWindow, as_text, ask_link
from app.gui.chat.reading.picture_loader import PictureLoader
from app.gui.look.theme import Scheme, Theme

CODE = "def f(x):\n    return x + 1"
TEXT = f"Before\n\n```python\n{CODE}\n```\n\nAfter [a link](https://a.b/c)\n"


@pytest.fixture
def opened() -> list[str]:
    """Addresses that were to be opened."""
    return []


@pytest.fixture
def services(qapp: QApplication, opened: list[str]) -> MessageServices:
    return MessageServices(
        Theme(qapp, Scheme.LIGHT, 1.0),
        TimeSlicer(qapp),
        opened.append,
        FormulaPictures(qapp),
        PictureLoader(qapp),
        lambda _: None,
    )


def body(qtbot: QtBot, services: MessageServices, text: str, *, is_markdown: bool = True) -> Body:
    made = Body(services, is_markdown=is_markdown)
    qtbot.addWidget(made)
    made.resize(700, 400)
    made.show()
    made.show_text(text)
    return made


def words(shown: Body) -> str:
    return "\n".join(text_block.toPlainText() for text_block in shown.findChildren(TextBlock))


def test_code_is_copied_as_it_was_written(qtbot: QtBot, services: MessageServices) -> None:
    shown = body(qtbot, services, TEXT)
    block = shown.blocks[1]
    assert isinstance(block, CodeBlock)
    block.copy.click()
    assert QGuiApplication.clipboard().text() == CODE
    assert block.listing.accessibleName() == "Code, python"
    formats = block.listing.document().firstBlock().layout().formats()
    assert formats[0].format.foreground().color() == services.theme.color("code_keyword")
    services.theme.choose(Scheme.DARK, 1.0)
    shown.restyle()
    formats = block.listing.document().firstBlock().layout().formats()
    assert formats[0].format.foreground().color() == services.theme.color("code_keyword")


def test_signs_that_reorder_code_are_written_out_and_copied_as_they_are(
    qtbot: QtBot, services: MessageServices
) -> None:
    code = "if admin \u202e\u2066// x\u2069:"
    block = body(qtbot, services, f"```\n{code}\n```").blocks[0]
    assert isinstance(block, CodeBlock)
    seen = block.listing.toPlainText()
    assert seen == "if admin [U+202E][U+2066]// x[U+2069]:"
    block.copy.click()
    assert QGuiApplication.clipboard().text() == code


def test_a_growing_text_keeps_its_blocks(qtbot: QtBot, services: MessageServices) -> None:
    shown = body(qtbot, services, "")
    for end in range(1, len(TEXT) + 1):
        shown.show_text(TEXT[:end], growing=True)
        if end == TEXT.index("def"):
            first = shown.blocks[0]
    shown.show_text(TEXT)
    assert shown.blocks[0] is first
    assert [type(block) for block in shown.blocks] == [TextBlock, CodeBlock, TextBlock]
    assert "After a link" in words(shown)


def test_html_is_shown_and_nothing_is_loaded(qtbot: QtBot, services: MessageServices) -> None:
    text = "<img src='http://a.b/c.png'> <h1>big</h1> ![sun](file:///etc/hostname)"
    shown = body(qtbot, services, text)
    block = shown.blocks[0]
    assert isinstance(block, TextBlock)
    assert "<img src='http://a.b/c.png'> <h1>big</h1>" in block.toPlainText()
    for address in ("http://a.b/c.png", "file:///etc/hostname", ":/picture"):
        kind = QTextDocument.ResourceType.ImageResource.value
        assert block.loadResource(kind, QUrl(address)) is None
    typed = body(qtbot, services, "<b>x</b> **y**", is_markdown=False)
    assert words(typed) == "<b>x</b> **y**"


def test_a_link_is_opened_only_after_a_question(qtbot: QtBot, services: MessageServices, opened: list[str]) -> None:
    shown = body(qtbot, services, "[a link](https://a.b/c)")
    block = shown.blocks[0]
    assert isinstance(block, TextBlock)
    block.anchorClicked.emit(QUrl("https://a.b/c"))
    assert opened == ["https://a.b/c"]
    went: list[str] = []
    compact = ask_link(services.theme, shown, "https://аpple.com/x", lambda: went.append("there"))
    names = [label.accessibleName() for label in compact.findChildren(QLabel)]
    assert any("xn--" in name for name in names)  # letters that look like others are written out
    pressed = {button.text(): button for button in compact.findChildren(QPushButton)}
    pressed["Open in browser"].click()
    assert went == ["there"]
    only_copy = ask_link(services.theme, shown, "vscode://x", lambda: went.append("no"))
    offered = [button.text() for button in only_copy.findChildren(QPushButton)]
    assert offered == ["Cancel", "Copy address"]
    only_copy.close()


@pytest.mark.parametrize(
    "text",
    [
        "word " * 200_000,
        "".join(f"- item {n}\n" for n in range(10_000)),
        "```\n" + "x" * 1_000_000,
        "> " * 3_000 + "x",
        "سلام دنیا\n\n" * 20_000,
    ],
    ids=["a megabyte", "items", "code in one line", "deep", "right to left"],
)
def test_adverse_text_is_shown_in_portions(qtbot: QtBot, services: MessageServices, text: str) -> None:
    shown = body(qtbot, services, text)
    before = len(words(shown))
    assert len(shown.blocks) < 60
    if len(text) > 2 * PORTION and not text.startswith("```"):
        assert shown.more.isVisible()
        assert before < 2 * PORTION
        shown.more.click()
        assert len(words(shown)) > before
    services.slicer.finish()


def test_a_message_as_text(qtbot: QtBot, services: MessageServices) -> None:
    plain = as_text(TEXT)
    assert plain.startswith("Before\n\ndef f(x):")
    assert plain.endswith("After a link")
    window = TextWindow(services.theme, "x" * 1_000_000, body(qtbot, services, ""))
    qtbot.addWidget(window)
    window.show()
    assert window.field.blockCount() == 250


def test_all_lines_are_seen_at_every_width(qtbot: QtBot, services: MessageServices) -> None:
    """Qt does not make what is inside a view as high as the view, while it makes it as wide."""
    area, shown = QScrollArea(), Body(services, is_markdown=True)
    qtbot.addWidget(area)
    area.setWidgetResizable(True)
    area.setWidget(shown)
    area.resize(900, 150)
    area.show()
    shown.show_text("Words that wrap at many widths, one after another. " * 4 + TEXT)
    views = [*shown.findChildren(TextBlock), *shown.findChildren(Listing)]
    assert len(views) > 2
    seen = set[tuple[int, ...]]()
    for width in (*range(900, 120, -52), *range(120, 900, 52)):
        area.resize(width, 150)
        qtbot.wait(1)
        heights = tuple(view.contentsRect().height() for view in views)
        bars = [view.horizontalScrollBar() for view in views]
        inside = tuple(
            view.viewport().height() + (bar.height() if bar.isVisible() else 0)
            for view, bar in zip(views, bars, strict=True)
        )
        assert inside == heights, width
        seen.add(heights)
    assert len(seen) > 3
