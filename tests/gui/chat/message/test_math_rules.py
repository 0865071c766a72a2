r"""The texts that are formulas, and those that are money, variables or plain words."""

from __future__ import annotations

import itertools
import time

import pytest
from PySide6.QtWidgets import QApplication

from app.gui.chat.message import markdown
from app.gui.chat.message.markdown import IncrementalParser
from app.gui.chat.message.math_rules import Formula
from app.gui.chat.message.message_actions import as_text
from tests.formula_examples import FORMULAS


def formulas(text: str) -> list[str]:
    """Return the formulas of a text, as they were written."""
    return [formula.source for segment in markdown.segments(text) for formula in segment.formulas]


@pytest.mark.parametrize(("text", "sources"), FORMULAS)
def test_the_window_finds_the_formulas_of_the_examples(text: str, sources: list[str]) -> None:
    assert formulas(text) == sources


def test_all_four_delimiters_and_environments_are_shown() -> None:
    text = r"a $x_1$ b \(y\) c \[z\] d $$w$$ e"
    assert formulas(text) == ["$x_1$", r"\(y\)", r"\[z\]", "$$w$$"]
    assert formulas("\\begin{align*}\na &= b \\\\\nc\n\\end{align*}") == [
        "\\begin{align*}\na &= b \\\\\nc\n\\end{align*}"
    ]
    shown = [f for s in markdown.segments(text) for f in s.formulas]
    assert [formula.is_display for formula in shown] == [False, False, True, True]
    assert [formula.tex for formula in shown] == ["x_1", "y", "z", "w"]


@pytest.mark.parametrize(
    "text",
    [
        "costs $5 and $6",
        "$5-$10",
        "between $1,000.50 and $2,000 a year",
        "US$5/NZ$6",
        "**$5**, **$6**",
        "($100 or $120)",
        "$HOME and $PATH, $A/$B, ${A}/${B}",
        r"\$x\$",
        "a $ b $ c",
        "$$",
        "$",
        "`$x$` and ``\\(y\\)``",
        "```\n$$\nx\n$$\n```",
        "    $$x$$",
        "\\( without an end",
        "$$\nwithout\n\nan end",
        "\\[ \\]",
    ],
)
def test_money_variables_and_code_are_no_formulas(text: str) -> None:
    assert formulas(text) == []


@pytest.mark.parametrize("text", ["the $n$th of $x$-axis", "($x$), $y$.", "**$x$**", "# $x$", "| a |\n|---|\n| $x$ |"])
def test_formulas_stand_in_all_places(text: str) -> None:
    assert formulas(text)[0] in ("$n$", "$x$")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("words:\n$$\nx\n- y\n= z\n$$\nmore", "$$\nx\n- y\n= z\n$$"),  # neither a list nor a heading
        ("1. one\n   \\[\n   x \\\\\n   y\n   \\]\n2. two", "\\[\nx \\\\\ny\n\\]"),
        ("> $$x$$\n> y", "$$x$$"),
        (r"\[ a \\[2pt] b \]", r"\[ a \\[2pt] b \]"),
        (r"$\text{5 \$ each}$", r"$\text{5 \$ each}$"),
    ],
)
def test_a_formula_keeps_its_lines_and_backslashes(text: str, source: str) -> None:
    assert formulas(text) == [source]


def test_no_backslash_is_lost(qapp: QApplication) -> None:
    r"""Outside of formulas, too: models forget delimiters, and \, or \\ mean something to whoever copies them."""
    kept = r"\, \; \: \! \{x\} \\ \% \& \( a \[ b \alpha C:\(x86\ \begin{foo} \end{foo}"
    assert as_text(kept) == kept
    for source in (r"$\{x\}\,\\$", r"\(\|x\|_2\)", r"\[\left\{ a \right.\]", "$$\n\\%\\_\\#\n$$"):
        assert source in as_text(f"a {source} b" if "\n" not in source else source)
    assert as_text(r"\*no\* \_no\_ \$5 \# \`x\`") == "*no* _no_ $5 # `x`"


def test_a_formula_that_has_no_end_yet_does_not_flicker() -> None:
    """Keep one growing formula, whatever its lines would mean in Markdown."""
    text = "Look:\n\n$$\nx\n= y_1 * z_2 *\n- b\n# c\n$$\n\nDone $5."
    parser = IncrementalParser()
    seen: list[Formula] = []
    begin, end = text.index("$$") + 2, text.rindex("$$") + 2
    for place in range(1, len(text) + 1):
        parser.feed(text[:place])
        shown = [formula for segment in parser.segments for formula in segment.formulas]
        if begin <= place:
            assert len(shown) == 1, text[:place]
            assert shown[0].is_open == (place < end), text[:place]
            assert "<ul>" not in parser.segments[-1].content
            seen += shown
    pairs = itertools.pairwise(seen)
    assert all(later.source.startswith(earlier.source) for earlier, later in pairs)
    parser.finish(text[: end - 3])
    assert not [formula for segment in parser.segments for formula in segment.formulas]


@pytest.mark.parametrize(
    "text",
    [
        "\\[\n" * 5_300,
        "\\(" * 2_000,
        "$a " * 1_300,
        "$$a\n" * 4_000,
        "\\begin{align}\n" * 1_100,
        "\\" * 4_000 + "$",
        "\\(a" * 1_300,
        "$$" + "x" * 1_000_000 + "$$",
        "> \\[\n" * 3_000,
    ],
)
def test_openings_without_an_end_take_no_quadratic_time(text: str) -> None:
    began = time.process_time()
    assert markdown.segments(text[:16_000] if len(text) < 100_000 else text)
    assert time.process_time() - began < 2.0


def test_a_megabyte_between_dollars_is_text() -> None:
    text = "$$" + "x^2 + " * 200_000 + "$$"
    assert formulas(text) == []
    assert sum(len(segment.content) for segment in markdown.segments(text)) >= 1_000_000
