r"""Formulas are drawn whole, or not at all: nothing of one is silently left out."""

from __future__ import annotations

import pytest

from backends.readers.formulas import draw
from backends.readers.messages import MAX_FORMULA_CHARS, Drawing, Refused

COMMON = [
    r"x^2",
    r"\frac{-b \pm \sqrt{b^2-4ac}}{2a}",
    r"\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2}",
    r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
    r"\begin{aligned} a &= b \\ c &= d+e \end{aligned}",
    r"\begin{align} a &= b \\ c &= d \end{align}",
    r"\begin{alignat}{2} a &= b \end{alignat}",
    r"f(x)=\begin{cases} 1 & x>0 \\ 0 & \text{sonst}\end{cases}",
    r"\sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6}",
    r"\lim_{x\to 0} \frac{\sin x}{x}=1",
    r"\mathbb{R}^n \to \mathcal{L}, \mathfrak{g}, \boldsymbol{\beta}",
    r"\text{für } x \in \mathbb{N}",
    r"\binom{n_{i}}{\frac{1}{2}}",
    r"\left\{ x \in \mathbb{R} : x > 0 \right\}, \bigl\{ a \bigr\}, \bigg\langle x \bigg\rangle",
    r"\mathop{\mathrm{argmin}}_x f(x)",
    r"\boxed{42} \cancel{x} \overline{AB} \overrightarrow{AB} \underbrace{a+b}_{c}",
    r"E = mc^2 \tag{1} \label{energy}",
    r"\phantom{xyz} y",
    r"\text{5 \$ each}",
    r"A \setminus B \backslash C",
]


@pytest.mark.parametrize("tex", COMMON)
def test_what_models_write_is_drawn(tex: str) -> None:
    for is_display in (True, False):
        drawn = draw(tex, is_display=is_display)
        assert drawn.width > 0
        assert drawn.ascent > 0
        assert drawn.depth >= 0
        assert drawn.shapes


def test_a_small_formula_is_as_large_as_its_letters() -> None:
    small, tall = draw("x", is_display=False), draw(r"\frac{a}{b}", is_display=True)
    assert 300 < small.ascent < 700
    assert small.depth < 50
    assert tall.ascent > small.ascent
    assert tall.depth > 400


def test_nothing_is_left_out_of_an_operator() -> None:
    """The library draws nothing of what stands in \\mathop."""
    drawn = draw(r"\mathop{\mathrm{argmin}}_x", is_display=True)
    assert len(drawn.shapes) == len("argminx")


def test_lines_that_are_aligned_do_not_overlap() -> None:
    two = draw(r"\begin{split} a &= b \\ &= c \end{split}", is_display=True)
    assert two.ascent + two.depth > 1_500


@pytest.mark.parametrize(
    ("tex", "plain"),
    [
        (r"\begin{aligned} a &= b \\[4pt] c &= d \end{aligned}", r"\begin{aligned} a &= b \\ c &= d \end{aligned}"),
        (r"\text{a\_b 50\%}", r"\text{a_b 50%}"),
        (r"\text{if $x>0$ or $y$}", r"\text{if }x>0\text{ or }y"),
        (r"\text{a} \nonumber \label{x}", r"\text{a}"),
    ],
)
def test_what_has_no_appearance_is_not_drawn(tex: str, plain: str) -> None:
    assert draw(tex, is_display=True) == draw(plain, is_display=True)


@pytest.mark.parametrize(
    ("tex", "code"),
    [
        (r"\foo{x}", "formula_unknown"),
        (r"\ce{H2O}", "formula_unknown"),
        (r"\frac{1}", "formula_unknown"),
        ("}{", "formula_unknown"),
        ("", "formula_unknown"),
        (r"\binom{a", "formula_unknown"),
        (r"\text{one $ alone}", "formula_unknown"),
        (r"\text{中文}", "formula_signs"),
        ("<script>", None),
        ("x" * (MAX_FORMULA_CHARS + 1), "formula_long"),
        ("{" * 1_000 + "}" * 1_000, "formula_deep"),
        (r"\sqrt{" * 300 + "x" + "}" * 300, "formula_deep"),
        (r"\left(" * 300 + r"\right)" * 300, "formula_deep"),
        (r"\def\a{xx}\def\b{\a\a\a\a}\def\c{\b\b\b\b}\c\c\c\c", "formula_unknown"),
        (r"\newcommand{\x}{\x\x}\x", "formula_unknown"),
    ],
)
def test_what_cannot_be_drawn_whole_is_refused(tex: str, code: str | None) -> None:
    if code is None:
        assert isinstance(draw(tex, is_display=True), Drawing)
        return
    with pytest.raises(Refused) as refused:
        draw(tex, is_display=True)
    assert refused.value.code == code


def test_outlines_have_whole_numbers_and_known_commands() -> None:
    for shape in draw(r"\sqrt{\boxed{x}}", is_display=True).shapes:
        for part in shape.path.split():
            assert part in "MLQCZ" or int(part) < 100_000
