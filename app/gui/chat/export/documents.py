"""Rendering of chats as Markdown, HTML and PDF documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import count
from pathlib import Path
from string import Template

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale, QMarginsF, QRectF, QSizeF, Qt, QUrl
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QFont,
    QImage,
    QPageLayout,
    QPageSize,
    QPainter,
    QPalette,
    QPdfWriter,
    QTextDocument,
)

from app.core.chat import ATTACHMENTS, FORM, MODEL, PICTURE, THOUGHT, Chat, Details, Message, Role, path, title_of
from app.core.tools.chat_calls import CallRecord, rounds_of
from app.gui.chat.message import markdown as parser
from app.gui.chat.message.picture_view import picture_name
from app.gui.chat.reading.attachment_reader import is_picture
from app.gui.chat.reading.picture_loader import LARGE_SIDE, picture_now
from app.gui.look.theme import DARK, LIGHT, Colors


@dataclass(frozen=True, slots=True)
class ExportedMessage:
    """The parts of a message in an exported document."""

    author: str
    time: str
    text: str
    attachments: tuple[tuple[str, str], ...]  # pairs of caption and text, also of tool calls
    pictures: tuple[Details, ...]
    is_user: bool
    thought: str = ""  # empty if there is none or thoughts are not exported


def chat_title(chat: Chat) -> str:
    """Return the title of a chat, or a default if it has none."""
    return title_of(chat) or _tr("New chat")


def chat_facts(chat: Chat) -> str:
    """Return the line below the title, with the folder, the model and the time of the last change."""
    return " · ".join(fact for fact in (chat.folder, chat.model or "", _local_time(chat.changed_at)) if fact)


def exported_messages(chat: Chat) -> list[ExportedMessage]:
    """Return the messages of the current branch."""
    return [_exported(message) for message in path(chat)]


def system_caption() -> str:
    return _tr("System message")


def thought_caption() -> str:
    return _tr("Thinking before the answer")


def attachment_caption(name: str) -> str:
    return _tr("Attachment {name}").format(name=name)


def without_thoughts(chat: Chat) -> Chat:
    """Return a copy of a chat without the thoughts of its answers."""
    kept = {
        ident: replace(message, details={k: v for k, v in message.details.items() if k != THOUGHT})
        for ident, message in chat.messages.items()
    }
    return replace(chat, messages=kept)


def _local_time(seconds: float) -> str:
    """Return a time in the local format, or an empty string if the time is unknown."""
    if seconds <= 0:
        return ""
    moment = QDateTime.fromSecsSinceEpoch(int(seconds))
    return QLocale().toString(moment, QLocale.FormatType.ShortFormat)


def _exported(message: Message) -> ExportedMessage:
    is_user = message.role is Role.USER
    you = _tr("You")
    answer = _tr("Answer")
    attached = message.details.get(ATTACHMENTS, ())
    return ExportedMessage(
        you if is_user else str(message.details.get(MODEL) or answer),
        _local_time(message.made_at),
        message.text,
        (
            *((attachment_caption(str(file["name"])), str(file["text"])) for file in attached if not is_picture(file)),
            *(_exported_call(call) for round_ in rounds_of(message.details) for call in round_.calls),
        ),
        tuple(filter(is_picture, attached)),
        is_user,
        str(message.details.get(THOUGHT) or ""),
    )


def _exported_call(call: CallRecord) -> tuple[str, str]:
    """Return the caption of a tool call, and its arguments with its outcome."""
    caption = _tr("Tool call: {tool} of {server}").format(tool=call.tool or call.name, server=call.server or "?")
    return caption, f"{call.arguments}\n\n{call.outcome}"


def _tr(text: str) -> str:
    return QCoreApplication.translate("Export", text)


_TICKS = re.compile(r"`+")


def markdown(chat: Chat) -> str:
    """Return a chat as Markdown."""
    parts = [f"# {chat_title(chat)}", f"*{chat_facts(chat)}*"]
    if chat.system:
        parts += [f"## {_tr('System message')}", chat.system]
    for message in exported_messages(chat):
        parts.append(f"## {message.author}" + (f" · {message.time}" if message.time else ""))
        for name, text in message.attachments:
            parts += [f"**{name}**", _fenced(text)]
        parts += [f"**{picture_name(file)}**" for file in message.pictures]
        if message.thought:
            parts += [f"**{_tr('Thinking before the answer')}**", _quoted(message.thought)]
        parts.append(message.text)
    return "\n\n".join(parts) + "\n"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _fenced(text: str) -> str:
    """Return text as a code block whose fence is longer than any run of backticks in the text."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


# The content security policy forbids loading any resource and running any script. Pictures are part of the file.
HTML_HEAD = Template("""<!DOCTYPE html>
<html lang="$lang"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { $light color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { $dark } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  background: var(--window); color: var(--text); }
article + article { margin-top: 4rem; }
section { background: var(--card); border: 1px solid var(--hairline); border-radius: .75rem;
  padding: .25rem 1rem; margin: 1rem 0; overflow-wrap: anywhere; }
section.mine { border-color: var(--accent); }
h1 { font-size: 1.5rem; } h2 { font-size: .85rem; color: var(--muted); }
p.h1, p.h2, p.h3, p.h4, p.h5, p.h6 { font-weight: 600; }
.facts { color: var(--muted); }
details { color: var(--muted); }
.typed, pre { white-space: pre-wrap; }
pre, code { background: var(--code); border-radius: .3rem; font-family: monospace; }
img { max-width: 100%; height: auto; }
pre { padding: .75rem; } code { padding: 0 .2rem; } pre code { padding: 0; }
table { border-collapse: collapse; border-color: var(--hairline); } a { color: var(--accent); }
blockquote { border-left: .25rem solid var(--hairline); margin-left: 0; padding-left: 1rem; }
</style></head><body>
""")
HTML_TAIL = "</body></html>\n"


def html_head(title: str, language: str) -> str:
    """Return the beginning of an HTML file, up to the first article."""
    return HTML_HEAD.substitute(title=escape(title), lang=escape(language), light=_tokens(LIGHT), dark=_tokens(DARK))


def html_article(chat: Chat) -> str:
    """Return a chat as an HTML article."""
    parts = [f"<article><h1>{escape(chat_title(chat))}</h1>"]
    parts.append(f'<p class="facts">{escape(chat_facts(chat))}</p>')
    if chat.system:
        parts.append(_section(system_caption(), _typed(chat.system)))
    for message in exported_messages(chat):
        title = f"{message.author} · {message.time}" if message.time else message.author
        files = "".join(f"<p><b>{escape(name)}</b></p><pre>{escape(text)}</pre>" for name, text in message.attachments)
        files += "".join(map(_picture, message.pictures))
        if message.thought:
            inside = _rendered(message.thought)
            files += f"<details><summary>{escape(_tr('Thinking before the answer'))}</summary>{inside}</details>"
        body = _typed(message.text) if message.is_user else _rendered(message.text)
        parts.append(_section(title, files + body, is_user=message.is_user))
    return "\n".join((*parts, "</article>\n"))


def _picture(file: Details) -> str:
    """Return a picture as HTML with embedded data, so that the document loads nothing."""
    words, data = escape(picture_name(file)), escape(f"data:image/{file[FORM]};base64,{file[PICTURE]}")
    return f'<p><img alt="{words}" title="{words}" src="{data}"></p>'


def _rendered(text: str) -> str:
    """Render Markdown as HTML. Deeply nested blocks are shown as source text."""
    source = text.split("\n")
    parts = []
    for block in parser.blocks(parser.tokens(text)):
        if parser.is_deep(block):
            first, last = parser.lines(block)
            parts.append(_typed("\n".join(source[first:last])))
        else:
            parts.append(parser.html(block))
    return "".join(parts)


def _section(title: str, body: str, *, is_user: bool = False) -> str:
    kind = ' class="mine"' if is_user else ""
    return f"<section{kind}><h2>{escape(title)}</h2>{body}</section>"


def _typed(text: str) -> str:
    return f'<p class="typed">{escape(text)}</p>'


def _tokens(colors: Colors) -> str:
    return " ".join(f"--{name}: {value};" for name, value in asdict(colors).items())


DPI, MARGIN_MM, FOOT_MM = 300, 18, 10
PDF_PICTURE_BYTES = 256 << 20  # of a chat's decoded pictures; further ones are named only
PDF_PICTURE_WIDTH, PDF_PICTURE_HEIGHT = 420, 480  # in 96ths of an inch
TEXT_PT, FOOT_PT = 10, 8
MM_PER_INCH = 25.4
PDF_SHEET = (
    ".title { font-size: 18pt; font-weight: 600; } .h1 { font-size: 14pt; } .h2 { font-size: 12pt; }"
    " .h1, .h2, .h3, .h4, .h5, .h6 { font-weight: 600; }"
    f" .who {{ font-size: 9pt; font-weight: 600; color: {LIGHT.accent}; margin-top: 20pt; }}"
    f" .facts {{ font-size: 9pt; color: {LIGHT.muted}; }} a {{ color: {LIGHT.accent}; }}"
    f" pre, code {{ background: {LIGHT.code}; }} pre, .typed {{ white-space: pre-wrap; }}"
    " table { border-collapse: collapse; margin-top: 6pt; }"
)


class _Document(QTextDocument):
    """A text document that loads no resources, even if an answer references them."""

    def loadResource(self, kind: int, name: QUrl | str) -> object:  # noqa: N802  Qt's name
        return None


class PdfBook:
    """A PDF file (A4) in which each chat starts on a new page. It must be used only in the thread that created it."""

    def __init__(self, target: Path, title: str) -> None:
        self._writer = QPdfWriter(str(target))
        self._writer.setResolution(DPI)
        self._writer.setTitle(title)
        margins = QMarginsF(MARGIN_MM, MARGIN_MM, MARGIN_MM, MARGIN_MM)
        layout = QPageLayout(
            QPageSize(QPageSize.PageSizeId.A4), QPageLayout.Orientation.Portrait, margins, QPageLayout.Unit.Millimeter
        )
        self._writer.setPageLayout(layout)
        self._painter = QPainter()
        self._begun = self._painter.begin(self._writer)
        self._page = 0

    @property
    def writable(self) -> bool:
        """Return whether the file could be opened for writing."""
        return self._begun

    def add(self, chat: Chat) -> Iterator[int]:
        """Paint the pages of a chat. Yields after each picture and page, so that the caller can stop."""
        images, decoded, room = list[QImage | None](), dict[str, QImage | None](), PDF_PICTURE_BYTES
        for message in exported_messages(chat):
            for file in message.pictures:
                data = str(file.get(PICTURE) or "")
                if data not in decoded and room > 0:
                    image = decoded[data] = picture_now(file, LARGE_SIDE)
                    room -= image.sizeInBytes() if image is not None else 0
                    yield self._page
                images.append(decoded.get(data))
        document = self._laid_out(chat, images)
        size, paper = document.pageSize(), QPalette()
        paper.setColor(QPalette.ColorRole.Text, LIGHT.text)
        for number in range(document.pageCount()):
            if self._page:
                self._writer.newPage()
            self._page += 1
            self._painter.save()
            self._painter.translate(0, -number * size.height())
            part = QRectF(0, number * size.height(), size.width(), size.height())
            look = QAbstractTextDocumentLayout.PaintContext()
            look.clip = part
            look.palette = paper
            self._painter.setClipRect(part)
            document.documentLayout().draw(self._painter, look)
            self._painter.restore()
            self._foot(size)
            yield self._page

    def close(self) -> bool:
        """Finish the file and return whether it was written completely."""
        return self._begun and self._painter.end()

    def _laid_out(self, chat: Chat, images: Sequence[QImage | None] = ()) -> QTextDocument:
        document = _Document()
        font = QFont()
        font.setPointSize(TEXT_PT)
        document.documentLayout().setPaintDevice(self._writer)
        document.setDefaultFont(font)
        document.setDefaultStyleSheet(PDF_SHEET)
        document.setDocumentMargin(0)
        foot = DPI * FOOT_MM / MM_PER_INCH
        page = QSizeF(self._writer.width(), self._writer.height() - foot)
        document.setPageSize(page)
        for number, image in enumerate(images):
            if image is not None:
                document.addResource(QTextDocument.ResourceType.ImageResource, QUrl(_address(number)), image)
        document.setHtml(_pdf_html(chat, images))
        return document

    def _foot(self, size: QSizeF) -> None:
        font = QFont()
        font.setPointSize(FOOT_PT)
        self._painter.setFont(font)
        self._painter.setPen(Qt.GlobalColor.darkGray)
        room = QRectF(0, size.height(), size.width(), self._writer.height() - size.height())
        self._painter.drawText(room, Qt.AlignmentFlag.AlignCenter, str(self._page))


def _address(number: int) -> str:
    """Return the address that identifies a picture in the text of a PDF."""
    return f"picture:{number}"


def _pdf_picture(file: Details, number: int, image: QImage | None) -> str:
    """Return the HTML for a picture and its name, or for the name alone if the picture cannot be shown."""
    name = escape(picture_name(file))
    if image is None or not image.width() or not image.height():
        return f"<p><b>{name}</b></p>"
    share = min(1.0, PDF_PICTURE_WIDTH / image.width(), PDF_PICTURE_HEIGHT / image.height())
    width, height = max(1, round(image.width() * share)), max(1, round(image.height() * share))
    return f'<p><img src="{_address(number)}" width="{width}" height="{height}"></p><p class="facts">{name}</p>'


def _pdf_html(chat: Chat, images: Sequence[QImage | None]) -> str:
    """Return a chat as HTML for Qt.

    images: the chat's decoded pictures in order, with None for a picture that cannot be shown.
    """
    numbers = count()
    parts = [f'<p class="title">{escape(chat_title(chat))}</p>']
    parts.append(f'<p class="facts">{escape(chat_facts(chat))}</p>')
    if chat.system:
        parts.append(_author_line(system_caption()) + _typed(chat.system))
    for message in exported_messages(chat):
        parts.append(_author_line(f"{message.author} · {message.time}" if message.time else message.author))
        for name, text in message.attachments:
            parts.append(f"<p><b>{escape(name)}</b></p>{_typed(text)}")
        for file in message.pictures:
            number = next(numbers)
            parts.append(_pdf_picture(file, number, images[number]))
        if message.thought:
            parts.append(f"<p><b>{escape(_tr('Thinking before the answer'))}</b></p>")
            parts.append(_rendered(message.thought))
        parts.append(_typed(message.text) if message.is_user else _rendered(message.text))
    return "".join(parts).replace("\n</code></pre>", "</code></pre>")


def _author_line(line: str) -> str:
    return f'<p class="who">{escape(line)}</p>'
