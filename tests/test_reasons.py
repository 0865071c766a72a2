"""Every reason that is given has its sentence, with the facts it names; no sentence is idle."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from app.core.errors import KINDS, Reason
from app.core.reasons import PHRASES, SENTENCES, said, size
from app.core.recovery.fault_table import TABLE

TEXTS = SENTENCES | PHRASES
PROJECT = Path(__file__).resolve().parent.parent
NAMES = {*KINDS, "AppError", "Reason", "sentence_for"}


class Given(NamedTuple):
    """A reason as it stands in the code. `facts` is None where they are not spelled out there."""

    where: str
    code: str
    facts: frozenset[str] | None


def reasons_in(source: ast.AST, name: str) -> Iterator[Given]:
    """Every reason that this source gives with its code written out."""
    for node in ast.walk(source):
        if isinstance(node, ast.Call) and called(node) in NAMES:
            for code in codes(node):
                yield Given(f"{name}:{node.lineno}", code, facts(node))


def called(node: ast.Call) -> str:
    """`DoesNotFit` for `DoesNotFit(…)` and for `errors.DoesNotFit(…)`."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def codes(node: ast.Call) -> list[str]:
    """The literal codes of the first argument: one, or two of `a if … else b`."""
    named = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
    match [*node.args[:1], *named]:
        case [ast.Constant(value=str(code))]:
            return [code]
        case [ast.IfExp(body=ast.Constant(value=str(one)), orelse=ast.Constant(value=str(two)))]:
            return [one, two]
    return []


def facts(node: ast.Call) -> frozenset[str] | None:
    """The names of the facts: keywords of an error, keys of a Reason's dict; None when unknown."""
    if called(node) != "Reason":
        names = [keyword.arg for keyword in node.keywords if keyword.arg != "code"]
        return None if None in names else frozenset(name for name in names if name)
    named = [keyword.value for keyword in node.keywords if keyword.arg == "facts"]
    match [*node.args[1:], *named]:
        case []:
            return frozenset()
        case [ast.Dict(keys=keys)] if all(isinstance(key, ast.Constant) for key in keys):
            return frozenset(str(key.value) for key in keys if isinstance(key, ast.Constant))
    return None


def places(sentence: str) -> set[str]:
    """The facts that a sentence names: `{free_bytes}` -> `free_bytes`."""
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


@cache
def sources(root: str) -> list[tuple[str, ast.Module]]:
    """Name and syntax tree of every Python file under this folder."""
    return [
        (file.relative_to(PROJECT).as_posix(), ast.parse(file.read_text("utf-8")))
        for file in sorted((PROJECT / root).rglob("*.py"))
    ]


@cache
def given_reasons() -> list[Given]:
    """All of them; looked for when the first test asks, as every process of the tests reads this file."""
    return [values for name, source in sources("app") for values in reasons_in(source, name)]


def test_every_reason_has_a_sentence() -> None:
    missing = [
        f"{given_reason.where}: {given_reason.code}"
        for given_reason in given_reasons()
        if given_reason.code not in TEXTS
    ]
    assert not missing, "no text in app/core/sentences/en.json for\n" + "\n".join(missing)


def test_every_sentence_gets_the_facts_it_names() -> None:
    short = [
        f"{given_reason.where}: {given_reason.code} lacks {', '.join(sorted(lacking))}"
        for given_reason in given_reasons()
        if given_reason.facts is not None and (lacking := places(TEXTS.get(given_reason.code, "")) - given_reason.facts)
    ]
    assert not short, "\n".join(short)


def test_no_sentence_is_idle() -> None:
    """A code may also reach its error by a variable, a table, or a worker's answer."""
    written = {
        node.value
        for name, source in [*sources("app"), *sources("backends")]
        for node in ast.walk(source)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    idle = set(TEXTS) - written
    assert not {code for code in idle if not code.startswith("os_")}  # made from the name of the system's error


def test_every_reason_says_whose_fault_it_is() -> None:
    """Recovery and loads look there before they try again."""
    missing = sorted(set(SENTENCES) - set(TABLE))
    assert not missing, f"add these to a group of app/core/recovery/fault_table.py: {' '.join(missing)}"


def test_every_sentence_is_one_that_can_be_said() -> None:
    for code, sentence in SENTENCES.items():
        spoken = said(Reason(code, dict.fromkeys(places(sentence), 7)))
        assert sentence.startswith("{") or spoken[0].isupper(), code
        assert sentence.endswith("}") or spoken.endswith((".", "?", "!", "…")), code


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('raise BadInput("a", path=p)', [Given("f:1", "a", frozenset({"path"}))]),
        ('raise errors.Busy("a")', [Given("f:1", "a", frozenset())]),
        ('Reason("a", {"x": 1})', [Given("f:1", "a", frozenset({"x"}))]),
        ('Reason("a", facts)', [Given("f:1", "a", None)]),
        ('Refused("a", **facts)', [Given("f:1", "a", None)]),
        ("Refused(code)", []),
        ('print("a")', []),
        ('Refused("a" if x else "b")', [Given("f:1", "a", frozenset()), Given("f:1", "b", frozenset())]),
    ],
)
def test_reasons_are_found(source: str, expected: list[Given]) -> None:
    assert list(reasons_in(ast.parse(source), "f")) == expected


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1 << 10, "1.0 KiB"),
        (3 << 29, "1.5 GiB"),
        (99 << 40, "99.0 TiB"),
    ],
)
def test_sizes_are_told_in_the_unit_that_fits(n_bytes: int, shown: str) -> None:
    assert size(n_bytes) == shown
