"""Nothing that others wrote can steer a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.models import SharedModel
from app.cli import terminal_text

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=[])))
def test_no_control_is_left(foreign: str) -> None:
    for sign in terminal_text.text(foreign):
        assert sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cs")
        assert sign not in BIDI


@given(st.text())
def test_a_name_is_one_short_line(foreign: str) -> None:
    shown = terminal_text.name(foreign)
    assert len(shown) <= 64
    assert not set(shown) & set("\n\t\r")


def test_what_is_harmless_stays() -> None:
    kept = "Grüße, 你好, שלום, 👩‍👩‍👧 tab\t\nline"
    assert terminal_text.text(kept) == kept
    assert terminal_text.text("a\x1b[2Jb\x9b31mc\x7f\x00") == "a[2Jb31mc"


@pytest.mark.parametrize(
    ("machine", "named"),
    [
        ("den", "qwen@den"),
        ("büro", "qwen@büro"),
        ("den pc", '"qwen@den pc"'),
        ("$(reboot)", "qwen@bbbbbbbb"),
        ('den" & reboot "', "qwen@bbbbbbbb"),
        ("x" * 64, "qwen@" + "x" * 64),
    ],
)
def test_a_command_to_copy_holds_nothing_that_a_shell_would_run(machine: str, named: str) -> None:
    model = SharedModel("qwen", machine, "b" * 64, f"qwen@{machine}")
    assert terminal_text.ask_command(model) == f'poolhouse ask --model {named} "QUESTION"'
