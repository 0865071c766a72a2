r"""The rules that find formulas in Markdown: `$…$`, `$$…$$`, `\(…\)`, `\[…\]` and `\begin{align}…`.

Each plugin for markdown-it-py supports only one of these forms, cannot interrupt a paragraph (as models do), takes
quadratic time for openings without an end, and does not support growing text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.escape import escape

INLINE, DISPLAY = "math_inline", "math_display"  # token types
GROWING = "growing"  # key of the parser's environment: the text is still arriving
MAX_CHARS = 4_000  # a longer formula is shown as text
_UNCLOSED = "unclosed"  # key of the environment: openings for which no end follows
_FRUITLESS = "fruitless"  # by opening: the line up to which no end was found
_CODE_INDENT = 4

# A backslash before these is kept, because it matters in LaTeX and rarely protects anything from Markdown.
_KEPT = frozenset("\\()[]{},;:%&=?^'\"@/!")
_ENDS = {  # by opening; a backslash takes the next character with it
    "$$": re.compile(r"(?:[^$\\]|\\.|\$(?!\$))*+(\$\$)", re.DOTALL),
    "\\[": re.compile(r"(?:[^\\]|\\[^\]])*+(\\\])", re.DOTALL),
    "\\(": re.compile(r"(?:[^\\]|\\[^)])*+(\\\))", re.DOTALL),
    "$": re.compile(r"(?:[^$\\]|\\.)*+(\$)", re.DOTALL),
}
_ENVIRONMENT = re.compile(
    r"\\begin\{((?:equation|align|alignat|gather|multline|flalign|eqnarray|split|aligned|cases|array"
    r"|[pbBvV]?matrix)\*?)\}"
)


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula in a text. `source` is its text, including the delimiters.

    is_open: whether the text is still growing and the end of the formula has not arrived yet.
    """

    tex: str
    source: str
    is_display: bool
    is_open: bool = False


def use_math(parser: MarkdownIt) -> None:
    """Enable formulas in a parser.

    The content of their tokens is the source, and the markup is the opening delimiter.
    """
    parser.inline.ruler.at("escape", _escape)
    parser.inline.ruler.before("escape", INLINE, _inline)
    parser.block.ruler.before("fence", DISPLAY, _block, {"alt": ["paragraph", "reference", "blockquote", "list"]})


def formula(source: str, *, is_open: bool = False) -> Formula:
    """Create a formula from its source."""
    for opening, end in (("$$", 2), ("\\[", 2), ("\\(", 2), ("$", 1)):
        if source.startswith(opening):
            tex = source[len(opening) :] if is_open else source[len(opening) : -end]
            return Formula(tex.strip(), source, opening in ("$$", "\\["), is_open)
    return Formula(source.strip(), source, is_display=True, is_open=is_open)


def _escape(state: StateInline, silent: bool) -> bool:
    """Preserve the backslashes that LaTeX needs, even outside recognized formulas."""
    place = state.pos
    if state.src[place] == "\\" and place + 1 < state.posMax and state.src[place + 1] in _KEPT:
        if not silent:
            state.pending += state.src[place : place + 2]
        state.pos += 2
        return True
    return escape(state, silent)


def _inline(state: StateInline, silent: bool) -> bool:
    source, place = state.src, state.pos
    if source[place] not in "$\\":
        return False
    opening = source[place : place + 2]
    if opening not in ("$$", "\\[", "\\("):
        if source[place] != "$" or not _may_open(source, place):
            return False
        opening = "$"
    end = _end(state, opening, place)
    if end is None or not source[place + len(opening) : end - len(opening)].strip():
        return False
    if opening == "$" and not _may_close(source, end):
        return False
    if not silent:
        token = state.push(INLINE, "math", 0)
        token.content, token.markup = source[place:end], opening
    state.pos = end
    return True


def _may_open(source: str, place: int) -> bool:
    """Return whether a single $ may open a formula. It may not after a letter or digit, or before a space."""
    before, after = source[place - 1 : place], source[place + 1 : place + 2]
    return not before.isalnum() and after not in ("", "$") and not after.isspace()


def _may_close(source: str, end: int) -> bool:
    """Return whether the $ before `end` may close a formula. It may not if it starts an amount or a variable."""
    last, after = source[end - 2], source[end : end + 1]
    if last.isspace() or after.isdigit() or after == "{":
        return False
    return not after.isalpha() or last.isalnum() or last in ")}]"


def _end(state: StateInline, opening: str, place: int) -> int | None:
    """Return the position after the end of a formula, or None if it has no end."""
    unclosed = state.env.setdefault(_UNCLOSED, set())
    key = (opening, state.src)
    if key in unclosed:
        return None
    match = _ENDS[opening].match(state.src, place + len(opening), state.posMax)
    if match is None:
        unclosed.add(key)
        return None
    return match.end()


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Find a formula that stands alone on its lines. It may directly follow a line of text."""
    if state.sCount[start] - state.blkIndent >= _CODE_INDENT:
        return False
    begin = state.bMarks[start] + state.tShift[start]
    opening = state.src[begin : begin + 2]
    environment = None
    if opening == "\\b":
        environment = _ENVIRONMENT.match(state.src, begin, state.eMarks[start])
        if environment is None:
            return False
    elif opening not in ("$$", "\\["):
        return False
    fruitless: dict[str, int] = state.env.setdefault(_FRUITLESS, {})
    if start < fruitless.get(opening, 0):
        return False
    close = _close(state.src, begin, opening, environment)
    last = _last_line(state, start, end, begin + MAX_CHARS if close is None else close)
    is_found = close is not None and close <= state.eMarks[last - 1]
    if is_found and state.src[close : state.eMarks[last - 1]].strip():
        return False  # text follows in the same line, so this is a formula within a paragraph
    is_open = not is_found and bool(state.env.get(GROWING)) and last >= end and end == state.lineMax
    if not is_found and not is_open:
        fruitless[opening] = last
        return False
    text = state.getLines(start, last, state.sCount[start], False).strip()
    if is_found and not formula(text).tex:
        return False
    if not silent:
        state.line = last
        token = state.push(DISPLAY, "math", 0)
        token.block, token.content, token.map = True, text, [start, last]
        token.markup = "open" if is_open else opening
    return True


def _close(source: str, begin: int, opening: str, environment: re.Match[str] | None) -> int | None:
    """Return the position after the end of the formula that starts at `begin`, or None if no end follows soon."""
    most = begin + MAX_CHARS
    if environment is not None:
        closing = f"\\end{{{environment[1]}}}"
        at = source.find(closing, begin, most)
        return at + len(closing) if at >= 0 else None
    match = _ENDS[opening].match(source, begin + len(opening), most)
    return match.end() if match is not None else None


def _last_line(state: StateBlock, start: int, end: int, place: int) -> int:
    """Return the number of the line after the one that contains a position, limited by the end of the block.

    A formula cannot extend past a blank line, or past the end of the list or quotation that contains it.
    """
    line = start + 1
    while line < end and state.eMarks[line - 1] < place:
        if state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            break
        line += 1
    return line
