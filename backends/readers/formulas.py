"""The drawing of formulas: LaTeX is turned into outlines of glyphs, without colors, so that it fits every palette."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from ziamath.config import config
from ziamath.tex import tex2mml
from ziamath.zmath import Math

from backends.readers.messages import MAX_FORMULA_CHARS, MAX_PATH_CHARS, Drawing, Refused, Shape

EM = 1_000  # units of a drawing
ROW_SPACING = "0.35em"  # of aligned lines: three points are almost nothing in a drawing of this size
MAX_NESTING = 8  # of braces and environments: each level doubles the time that the library takes
_OPENS, _CLOSES = re.compile(r"\\begin\b|\\left\b|(?<!\\)\{"), re.compile(r"\\end\b|\\right\b|(?<!\\)\}")
_CHOOSE = re.compile(r"\\[dt]?binom\s*(?=\{)")
_TAG = re.compile(r"\\tag\*?\s*\{([^{}]*)\}")
_MACROS = re.compile(r"\\(?:g?def|let|(?:re|provide)?newcommand|providecommand|DeclareMathOperator)(?![A-Za-z])")
# What the library leaves out or draws badly, and what it draws well in its place
_REPLACED = (
    (re.compile(r"\\(begin|end)\{(?:split|aligned|align|flalign|eqnarray)\*?\}"), r"\\\1{align*}"),
    (re.compile(r"\\(begin|end)\{(?:gathered|gather|multline)\*?\}"), r"\\\1{gather*}"),
    (re.compile(r"\\begin\{align(?:ed)?at\*?\}\s*\{\d+\}"), r"\\begin{align*}"),
    (re.compile(r"\\end\{align(?:ed)?at\*?\}"), r"\\end{align*}"),
    (re.compile(r"\\(begin|end)\{equation\*?\}"), ""),
    (re.compile(r"\\mathop(?![A-Za-z])"), ""),
    (re.compile(r"\\bmod(?![A-Za-z])"), r"\\;\\mathrm{mod}\\;"),
    (re.compile(r"(\\\\)\s*\[\s*-?[\d.]+\s*[a-z]{2}\s*\]"), r"\1"),  # the distance of two lines
    (re.compile(r"\\not\s*="), r"\\neq "),
)
# Delimiters that the library passes on as commands after \\big and its like
_DELIMITERS = {
    "{": "{", "}": "}", "lbrace": "{", "rbrace": "}", "vert": "|", "lvert": "|", "rvert": "|", "|": "\u2016",
    "Vert": "\u2016", "lVert": "\u2016", "rVert": "\u2016", "langle": "\u27e8", "rangle": "\u27e9",
    "lfloor": "\u230a", "rfloor": "\u230b", "lceil": "\u2308", "rceil": "\u2309",
}  # fmt: skip
_DELIMITER = re.compile(r">\\([a-zA-Z]+|[{}|])</mo>")
_WORDS, _DOLLAR = re.compile(r"\\text\s*\{([^{}]*)\}"), re.compile(r"(?<!\\)\$")
_TEXT = re.compile(r"(<mtext[^>]*>)([^<]*)(?=</mtext>)")
_ESCAPED = re.compile(r"\\([_%$&#{} ])")
_INVISIBLE = re.compile(r"\\(?:label\s*\{[^{}]*\}|nonumber|notag)(?![A-Za-z])")
_OUTLINE = re.compile(r"[MLQCZ0-9 .eE+-]*")
_NUMBER = re.compile(r"-?[0-9.]+(?:e-?\d+)?")

config.svg2 = False  # outlines instead of references to symbols


def draw(tex: str, *, is_display: bool) -> Drawing:
    """Draw a formula. Raises Refused if it is too long or too deep, or if the library does not know all of it."""
    if len(tex) > MAX_FORMULA_CHARS:
        raise Refused("formula_long")
    if _nesting(tex) > MAX_NESTING:
        raise Refused("formula_deep")
    try:
        mathml = tex2mml(_prepared(tex), inline=not is_display)
        mathml = _DELIMITER.sub(lambda match: f">{_DELIMITERS.get(match[1], chr(92) + match[1])}</mo>", mathml)
        mathml = _TEXT.sub(lambda match: match[1] + _ESCAPED.sub(r"\1", match[2]), mathml)
        mathml = mathml.replace('rowspacing="3pt"', f'rowspacing="{ROW_SPACING}"')
        formula = Math(mathml, size=EM)
        n_letters = _check_known(formula)
        drawing = _drawing(formula.svgxml())
    except (Refused, MemoryError):
        raise
    except Exception as error:  # whatever its parser stumbles over: IndexError, AssertionError and others
        raise Refused("formula_unknown") from error
    if n_letters > len(drawing.shapes):
        raise Refused("formula_unknown")  # the library has left something out
    return drawing


def _nesting(tex: str) -> int:
    deepest = depth = 0
    for _, step in sorted(
        [(match.start(), 1) for match in _OPENS.finditer(tex)]
        + [(match.start(), -1) for match in _CLOSES.finditer(tex)]
    ):
        depth += step
        deepest = max(deepest, depth)
    return deepest


def _prepared(tex: str) -> str:
    """Replace what the library draws wrongly: nested binomials, tags, and commands without an appearance."""
    if _MACROS.search(tex):
        raise Refused("formula_unknown")  # a few nested macros can expand to gigabytes
    tex = _WORDS.sub(_words_and_math, tex)
    if _DOLLAR.search(tex):
        raise Refused("formula_unknown")  # mathematics within words that are not understood
    for pattern, instead in _REPLACED:
        tex = pattern.sub(instead, tex)
    tex = _INVISIBLE.sub("", _TAG.sub(r"\\qquad\\text{(\1)}", tex))
    while (match := _CHOOSE.search(tex)) is not None:
        upper, at = _group(tex, match.end())
        lower, at = _group(tex, at)
        tex = f"{tex[: match.start()]}\\left({{{upper}}}\\atop{{{lower}}}\\right){tex[at:]}"
    return tex


def _words_and_math(match: re.Match[str]) -> str:
    """Return the words within a formula, in which formulas stay formulas: `\\text{if $x>0$}`."""
    parts = _DOLLAR.split(match[1])
    if len(parts) % 2 == 0:
        return match[0]
    return "".join(part if place % 2 else f"\\text{{{part}}}" for place, part in enumerate(parts) if part)


def _group(tex: str, at: int) -> tuple[str, int]:
    """Return the content of the braces that begin at a position, and the position after them."""
    depth = 0
    for place in range(at, len(tex)):
        is_escaped = place > 0 and tex[place - 1] == "\\"
        depth += 0 if is_escaped else (tex[place] == "{") - (tex[place] == "}")
        if depth == 0:
            if place == at:
                break
            return tex[at + 1 : place], place + 1
    raise Refused("formula_unknown")


def _check_known(formula: Math) -> int:
    """Return the number of visible letters and digits.

    Raises Refused if a command was passed on as text, or if the font lacks a character.
    """
    hidden = {id(inner) for outer in formula.mathml.iter("mphantom") for inner in outer.iter()}
    n_letters = 0
    for element in formula.mathml.iter():
        text = (element.text or "").strip()
        if "\\" in text and len(text) > 1:
            raise Refused("formula_unknown")
        if any(ord(sign) > 126 and not sign.isspace() and not formula.font.glyphindex(sign) for sign in text):
            raise Refused("formula_signs")
        n_letters += sum(map(str.isalnum, text)) if id(element) not in hidden else 0
    return n_letters


def _drawing(svg: ET.Element) -> Drawing:
    left, top, width, height = (round(float(number)) for number in svg.attrib["viewBox"].split())
    shapes = tuple(_shapes(svg))
    if sum(len(shape.path) for shape in shapes) > MAX_PATH_CHARS:
        raise Refused("formula_long")
    return Drawing(left, width, -top, max(0, top + height), shapes)


def _shapes(parent: ET.Element) -> Iterator[Shape]:
    for element in parent:
        if "transform" in element.attrib:
            raise Refused("formula_unknown")
        stroke = round(float(element.attrib.get("stroke-width", 0))) if element.attrib.get("stroke") else 0
        if element.tag == "g":
            yield from _shapes(element)
        elif element.tag == "path":
            path = element.attrib.get("d", "")
            if not _OUTLINE.fullmatch(path):
                raise Refused("formula_unknown")
            yield Shape(_NUMBER.sub(lambda match: str(round(float(match[0]))), path).strip(), stroke)
        elif element.tag == "rect":
            x, y, wide, high = (round(float(element.attrib[name])) for name in ("x", "y", "width", "height"))
            path = f"M {x} {y} L {x + wide} {y} L {x + wide} {y + high} L {x} {y + high} Z"
            yield Shape(path, stroke)
        else:
            raise Refused("formula_unknown")
