"""The Markdown parser: CommonMark, tables, strike-through. HTML stays text, pictures become links.

What a model writes is not trusted: no paragraph costs more than a few milliseconds to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

INLINE_CHARS = 4_000  # in a longer paragraph nothing is emphasised: some signs cost their square
DEEPEST = 24  # twelve lists in each other; deeper blocks are shown as they are written
STANDS_OFF = ("bullet_list_close", "ordered_list_close", "table_close")
TOKEN_WEIGHT = 5  # what a token costs to show, in characters


class _Renderer(RendererHTML):
    """Pictures are links; links have no title; tables have lines, which Qt takes only as attributes."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Never loaded: a link with what the picture is said to show."""
        token = tokens[idx]
        address = str(token.attrs.get("src", ""))
        words = self.renderInlineAsText(token.children, options, env) or address
        link = Token("link_open", "a", 1, attrs={"href": address})
        inside = [link, Token("text", "", 0, content=words), Token("link_close", "a", -1)]
        return str(self.render(inside, options, env))

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Without a title: Qt would show it as a tooltip, and read it as HTML."""
        tokens[idx].attrs.pop("title", None)
        return str(self.renderToken(tokens, idx, options, env))

    def paragraph_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Below a list or a table it stands off: these have no margin of their own in Qt."""
        token = tokens[idx]
        if token.level == 0 and idx and tokens[idx - 1].type in STANDS_OFF:
            token.attrs["class"] = "after"
        return str(self.renderToken(tokens, idx, options, env))

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A class: Qt gives <h1> a size of its own that no style sheet changes."""
        return f'<p class="{tokens[idx].tag}">'

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</p>\n"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<table border="1" cellspacing="0" cellpadding="6">\n'


def _inline(state: StateCore) -> None:
    """Read the inside of each paragraph, unless it is so long that nobody means it as one."""
    for token in state.tokens:
        if token.type != "inline":
            continue
        token.children = []
        if len(token.content) <= INLINE_CHARS:
            state.md.inline.parse(token.content, state.md, state.env, token.children)
        else:
            token.children.append(Token("text", "", 0, content=token.content))


def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": 2 * DEEPEST}, renderer_cls=_Renderer)
    made.enable(["table", "strikethrough"])
    made.core.ruler.at("inline", _inline)
    return made


_MARKDOWN = _parser()


def tokens(text: str) -> list[Token]:
    """All tokens; those of level 0 hold the lines they stand in."""
    return _MARKDOWN.parse(text, {})


def html(found: Sequence[Token]) -> str:
    """Tokens as HTML that holds no more than what Qt shows."""
    return str(_MARKDOWN.renderer.render(found, _MARKDOWN.options, {}))


def blocks(found: Sequence[Token], level: int = 0) -> Iterator[list[Token]]:
    """The tokens of each block of a level."""
    held: list[Token] = []
    for token in found:
        held.append(token)
        if token.level == level and token.nesting <= 0:
            yield held
            held = []


def lines(block: Sequence[Token]) -> tuple[int, int]:
    """The first line of a block, and the one after its last."""
    found = block[0].map
    return (found[0], found[1]) if found else (0, 0)


def weight(block: Sequence[Token]) -> int:
    """What a block costs to show: its characters, and some for each token."""
    return sum(len(token.content) + TOKEN_WEIGHT for token in block)


def is_deep(block: Sequence[Token]) -> bool:
    """Whether the parser may have left out what lies deepest."""
    return max(token.level for token in block) > DEEPEST
