"""The Markdown parser, which splits a text into segments. It supports CommonMark, tables, strikethrough and formulas.

HTML is shown as text, and images become links. Model output is untrusted, so the cost of parsing a single paragraph
is limited to a few milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from app.gui.chat.message import math_rules
from app.gui.chat.message.math_rules import Formula

SEGMENT_CHARS = 1_500  # length after which the next block begins a new segment
LONG_CHARS = 2_500  # length after which a list or table continues in a new segment
PIECE_CHARS = 2_000  # maximum length of a segment of plain text
CODE_CHARS = 20_000  # maximum length of a segment of code
LISTS = ("bullet_list_open", "ordered_list_open")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]{1,200}\]:", re.MULTILINE)
_BLANK = re.compile(r"\n[ \t]*\n")


class SegmentKind(StrEnum):
    TEXT = "text"  # `content` is HTML from this renderer
    CODE = "code"  # `content` is the code
    PLAIN = "plain"  # `content` is text to be shown unformatted


@dataclass(frozen=True, slots=True)
class Segment:
    """The content of one widget. `language` is the language of a code block, or empty if unknown.

    formulas: the formulas that `with_formulas` inserts into `content`.
    """

    kind: SegmentKind
    content: str
    language: str = ""
    formulas: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class ParserState:
    """The state needed to continue parsing inside a block that was split."""

    prefix: str = ""  # to be put before the remaining text: the fence of a code block, or the head of a table
    number: int | None = None  # the number with which a numbered list continues
    is_plain: bool = False  # in a paragraph that is shown unformatted


@dataclass(frozen=True, slots=True)
class Part:
    """A segment with its position in the text and the parser state at that position."""

    at: int
    segment: Segment
    state: ParserState = ParserState()


class IncrementalParser:
    """An incremental parser for a growing message.

    Each update parses only the open segment and the text after it, so its cost does not grow with the message.
    """

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._n_closed = 0  # number of segments that further text cannot change
        self._at = 0  # position in the text at which the open segment begins
        self._state = ParserState()

    def feed(self, text: str) -> int:
        """Parse the full text received so far. Return the index of the first segment that may have changed."""
        return self._parse(text, growing=True)

    def _parse(self, text: str, *, growing: bool) -> int:
        first = self._n_closed
        parts = parse_parts(text[self._at :], self._state, growing=growing)
        self.segments[first:] = [part.segment for part in parts]
        if len(parts) > 1:
            self._n_closed += len(parts) - 1
            self._at += parts[-1].at
            self._state = parts[-1].state
        return first

    def finish(self, text: str) -> int:
        """Parse the complete text. Return the index of the first segment that may have changed.

        If the text defines link targets, it is parsed again from the start, because links may precede their
        definitions.
        """
        if not self._n_closed or not _DEFINITION.search(text):
            return self._parse(text, growing=False)
        before, whole = self.segments, IncrementalParser()
        whole._parse(text, growing=False)
        self.segments, self._n_closed = whole.segments, whole._n_closed
        self._at, self._state = whole._at, whole._state
        pairs = zip(before, self.segments, strict=False)
        same = min(len(before), len(self.segments))
        return next((n for n, (old, new) in enumerate(pairs) if old != new), same)


def segments(text: str) -> list[Segment]:
    """Parse a complete text into segments."""
    return [part.segment for part in parse_parts(text, ParserState())]


def plain(text: str) -> list[Segment]:
    """Split plain text into segments that are short enough to lay out quickly."""
    return [Segment(SegmentKind.PLAIN, piece) for _, piece in split_text(text, PIECE_CHARS)]


def split_text(text: str, limit: int) -> Iterator[tuple[int, str]]:
    """Split a text into pieces of at most `limit` characters. Yield the position and text of each piece.

    The text is split at a line end if possible, otherwise at a space, otherwise anywhere.
    """
    at = 0
    while at < len(text):
        end = at + limit
        if end < len(text):
            cut = text.rfind("\n", at + 1, end)
            cut = cut if cut > 0 else text.rfind(" ", at + 1, end)
            end = cut + 1 if cut > 0 else end
        yield at, text[at:end].removesuffix("\n")
        at = end


def parse_parts(text: str, state: ParserState, *, growing: bool = False) -> list[Part]:
    """Parse a text, starting in the state at which an earlier split ended.

    growing: whether more text will follow.
    """
    if not state.is_plain:
        return _SegmentBuilder(text, state, growing=growing).parts
    blank = _BLANK.search(text)
    end = blank.start() if blank else len(text)
    parts = list(_plain_parts(text[:end], 0))
    rest = _SegmentBuilder(text[end:], ParserState(), growing=growing).parts
    return parts + [replace(part, at=part.at + end) for part in rest]


def _plain_parts(text: str, at: int) -> Iterator[Part]:
    for begin, piece in split_text(text, PIECE_CHARS):
        yield Part(at + begin, Segment(SegmentKind.PLAIN, piece), ParserState(is_plain=True))


class _SegmentBuilder:
    """A builder that groups short blocks into one segment and splits long blocks into several."""

    def __init__(self, text: str, state: ParserState, *, growing: bool) -> None:
        self._text = state.prefix + text
        self._shift = len(state.prefix)
        self._starts = [0, *(line_end.end() for line_end in re.finditer("\n", self._text))]
        self.parts: list[Part] = []
        self._group: list[Token] = []
        self._size = 0
        # the part under construction, whose segment is still empty
        self._begin = Part(0, Segment(SegmentKind.TEXT, ""), state)
        for block in blocks(tokens(self._text, growing=growing)):
            first = block[0]
            if state.number is not None and first.type == "ordered_list_open":
                first.attrs["start"] = state.number
            self._add_block(block, state)
            state = ParserState()
        self._close()

    def _add_block(self, block: list[Token], state: ParserState) -> None:
        kind, size = block[0].type, weight(block)
        if kind in ("fence", "code_block"):
            self._close()
            self._add_code(block[0], state)
        elif is_deep(block):
            self._add_source(block)
        elif kind in LISTS and size > LONG_CHARS:
            self._split(block, block[:1], list(blocks(block[1:-1], level=1)), block[-1:])
        elif size > LONG_CHARS and 0 < (body := _body(block)) < LONG_CHARS // TOKEN_WEIGHT:
            self._split(block, block[:body], list(blocks(block[body:-2], level=2)), block[-2:])
        elif size > INLINE_CHARS:
            self._add_source(block)
        else:
            self._add_to_group(block, size, self._place(block), state)

    def _add_to_group(self, block: list[Token], size: int, at: int, state: ParserState) -> None:
        """Add a block to the open group, or start a new group if it is full."""
        if self._size >= SEGMENT_CHARS:
            self._close()
        if not self._group:
            self._begin = Part(at, Segment(SegmentKind.TEXT, ""), state)
        self._group += block
        self._size += size + 1

    def _add_source(self, block: Sequence[Token]) -> None:
        """Add a block as source text because it is too long or too deeply nested to lay out."""
        self._close()
        start, end = self._span(block)
        self.parts += _plain_parts(self._text[start:end].rstrip("\n"), start - self._shift)

    def _close(self) -> None:
        if self._group:
            formulas: list[Formula] = []
            shown = Segment(SegmentKind.TEXT, html(self._group, formulas), formulas=tuple(formulas))
            self.parts.append(replace(self._begin, segment=shown))
        self._group, self._size = [], 0

    def _split(self, block: list[Token], head: list[Token], items: list[list[Token]], tail: list[Token]) -> None:
        """Split a long list or table into several segments. The last segment remains open for subsequent blocks."""
        self._close()
        state = self._continuation(block)
        held: list[Token] = []
        size, at, n_held = 0, self._place(block), 0
        for item in items:
            if size > LONG_CHARS:
                self._add_to_group([*_numbered(head, state), *held, *tail], size, at, state)
                self._close()
                if state.number is not None:
                    state = replace(state, number=state.number + n_held)
                held, size, at, n_held = [], 0, self._place(item), 0
            held += item
            n_held += 1
            size += weight(item)
        if size > 2 * LONG_CHARS:  # a single long item that cannot be split
            start = at + self._shift
            text = self._text[start : self._span(block)[1]].rstrip("\n")
            self.parts += _plain_parts(text, at)
        else:
            self._add_to_group([*_numbered(head, state), *held, *tail], size, at, state)

    def _continuation(self, block: list[Token]) -> ParserState:
        """Return the state in which to continue a list or table after a split."""
        first = block[0]
        if first.type == "ordered_list_open":
            return ParserState(number=int(first.attrs.get("start", 1)))
        if first.type == "table_open":
            line = lines(block)[0]
            return ParserState(prefix=self._text[self._starts[line] : self._starts[line + 2]])
        return ParserState()

    def _add_code(self, token: Token, state: ParserState) -> None:
        words = token.info.split()
        language = words[0][:40] if words else ""
        begin = self._place([token])
        inside = self._starts[min((token.map or [0])[0] + 1, len(self._starts) - 1)] - self._shift
        fence = f"{token.markup}{token.info}\n" if token.markup else ""
        parts = list(split_text(token.content, CODE_CHARS)) or [(0, "")]
        for place, piece in parts:
            at, how = (begin, state) if place == 0 else (inside + place, ParserState(prefix=fence))
            if not token.markup and place:
                return  # the rest is indented too, so parsing resumes there by itself
            self.parts.append(Part(at, Segment(SegmentKind.CODE, piece, language), how))

    def _span(self, block: Sequence[Token]) -> tuple[int, int]:
        first, after = lines(block)
        end = self._starts[after] if after < len(self._starts) else len(self._text)
        return self._starts[first], end

    def _place(self, block: Sequence[Token]) -> int:
        """Return the position at which a block begins in the original text."""
        return max(0, self._starts[lines(block)[0]] - self._shift)


def _body(block: Sequence[Token]) -> int:
    """Return the index of the first token of a table's rows, or 0 if there are none."""
    return next((n for n, token in enumerate(block, 1) if token.type == "tbody_open"), 0)


def _numbered(head: list[Token], state: ParserState) -> list[Token]:
    if state.number is None:
        return head
    return [head[0].copy(attrs={**head[0].attrs, "start": state.number}), *head[1:]]


INLINE_CHARS = 4_000  # longer paragraphs are not parsed for inline markup, which can take quadratic time
MAX_DEPTH = 24  # levels of nesting, two for each list; deeper blocks are shown as source text
NEEDS_MARGIN = ("bullet_list_close", "ordered_list_close", "table_close")
TOKEN_WEIGHT = 5  # cost of showing one token, expressed in characters


class _Renderer(RendererHTML):
    """A renderer of the HTML subset that Qt supports. Images become links."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Render an image as a link with the alternative text, because images are never loaded."""
        token = tokens[idx]
        address = str(token.attrs.get("src", ""))
        words = self.renderInlineAsText(token.children, options, env) or address
        link = Token("link_open", "a", 1, attrs={"href": address})
        inside = [link, Token("text", "", 0, content=words), Token("link_close", "a", -1)]
        return str(self.render(inside, options, env))

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Render a link without its title, because Qt would show that as an HTML tooltip."""
        tokens[idx].attrs.pop("title", None)
        return str(self.renderToken(tokens, idx, options, env))

    def paragraph_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Add a margin to a paragraph that follows a list or table, because Qt adds none."""
        token = tokens[idx]
        if token.level == 0 and idx and tokens[idx - 1].type in NEEDS_MARGIN:
            token.attrs["class"] = "after"
        return str(self.renderToken(tokens, idx, options, env))

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Render a heading as a paragraph with a class, because Qt's size of <h1> cannot be changed by style sheets."""
        return f'<p class="{tokens[idx].tag}">'

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</p>\n"

    def math_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _formula(math_rules.formula(tokens[idx].content), env)

    def math_display(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Render a formula that stands alone on its lines as a separate paragraph."""
        shown = math_rules.formula(tokens[idx].content, is_open=tokens[idx].markup == "open")
        return f'<p align="center" class="math">{_formula(shown, env)}</p>\n'

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<table border="1" cellspacing="0" cellpadding="6">\n'


_FORMULAS = "formulas"  # key of the renderer's environment: a list that takes the formulas
_PLACE = re.compile(r'<img src="formula:(\d+)">')


def _formula(formula: Formula, env: EnvType) -> str:
    """Render a formula as a placeholder, or as its source if nothing will replace the placeholder."""
    formulas: list[Formula] | None = env.get(_FORMULAS)
    if formulas is None:
        return source_html(formula)
    formulas.append(formula)
    return f'<img src="formula:{len(formulas) - 1}">'


def source_html(formula: Formula) -> str:
    """Return the source of a formula as HTML in the style of code."""
    return f"<code>{escape(formula.source).replace(chr(10), '<br>')}</code>"


def with_formulas(segment: Segment, shown: Callable[[int, Formula], str]) -> str:
    """Return a segment's HTML with each formula replaced.

    shown: returns the replacement for a formula, given its index and the formula.
    """
    return _PLACE.sub(lambda match: shown(int(match[1]), segment.formulas[int(match[1])]), segment.content)


def _inline(state: StateCore) -> None:
    """Parse the inline markup of each paragraph. Extremely long paragraphs remain plain text."""
    for token in state.tokens:
        if token.type != "inline":
            continue
        token.children = []
        if len(token.content) <= INLINE_CHARS:
            state.md.inline.parse(token.content, state.md, state.env, token.children)
        else:
            token.children.append(Token("text", "", 0, content=token.content))


_TASK = re.compile(r"\[([ xX])\](?= )")
_OPEN_TASK, _DONE_TASK = "\N{BALLOT BOX}", "\N{BALLOT BOX WITH CHECK}"


def _task_lists(state: StateCore) -> None:
    """Show a check box at the beginning of task list items, which GitHub writes as `[ ]` or `[x]`."""
    for item, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        is_first = (item.type, paragraph.type, inline.type) == ("list_item_open", "paragraph_open", "inline")
        if is_first and (box := _TASK.match(inline.content)):
            inline.content = (_OPEN_TASK if box[1] == " " else _DONE_TASK) + inline.content[box.end() :]


def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": 2 * MAX_DEPTH}, renderer_cls=_Renderer)
    made.enable(["table", "strikethrough"])
    math_rules.use_math(made)
    made.core.ruler.at("inline", _inline)
    made.core.ruler.before("inline", "task_lists", _task_lists)
    return made


_MARKDOWN = _parser()


def tokens(text: str, *, growing: bool = False) -> list[Token]:
    """Parse a text into tokens. The tokens at level 0 have line numbers."""
    return _MARKDOWN.parse(text, {math_rules.GROWING: growing})


def html(tokens: Sequence[Token], formulas: list[Formula] | None = None) -> str:
    """Render tokens as HTML that Qt can display.

    formulas: the list to which formulas are appended. If it is None, formulas are rendered as source.
    """
    env = {} if formulas is None else {_FORMULAS: formulas}
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, env))


def blocks(tokens: Sequence[Token], level: int = 0) -> Iterator[list[Token]]:
    """Yield the tokens of each block at this level."""
    held: list[Token] = []
    for token in tokens:
        held.append(token)
        if token.level == level and token.nesting <= 0:
            yield held
            held = []


def lines(block: Sequence[Token]) -> tuple[int, int]:
    """Return the numbers of a block's first line and of the line after its last one."""
    span = block[0].map
    return (span[0], span[1]) if span else (0, 0)


def weight(block: Sequence[Token]) -> int:
    """Return the cost of displaying a block: its length in characters plus a constant per token."""
    return sum(len(token.content) + TOKEN_WEIGHT for token in block)


def is_deep(block: Sequence[Token]) -> bool:
    """Return whether a block is nested so deeply that the parser may have dropped its innermost parts."""
    return max(token.level for token in block) > MAX_DEPTH
