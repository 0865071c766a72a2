"""The code says what it does as engineers of the field write it: docstrings, and names of variables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
ROOMS = ("app", "backends", "bench", "guide", "scripts", "testbed")

# A first line begins with a verb, or with a noun phrase: these words begin neither, but a fragment of a sentence.
FRAGMENTS = re.compile(
    r"\W*(What|Whether|How|Who|Whoever|Whose|Which|Where|When|Whenever|That|Those|Of|In|From|At|With|Without|As|For|To|On|By|"
    r"So|If|Not|Through|While|Until|Over|Under|After|Before|Because|Since|Beside|Between|Against|Among|About|Than|Then|Is|"
    r"Are|Was|Has|Have|Does|It|They|Can|Must|Shall|Will|And|Or|But|Also|Else|Here|There|Just|May)\b"
)
# Names that could stand for anything.
EMPTY_NAMES = {"one", "told", "found", "whose", "asked", "ways", "others", "wanted", "given", "it", "those", "them"}


def files(*rooms: str) -> Iterator[tuple[Path, ast.Module]]:
    for room in rooms or ROOMS:
        for file in sorted((PROJECT / room).rglob("*.py")):
            yield file.relative_to(PROJECT), ast.parse(file.read_text("utf-8"))


def fragments(tree: ast.Module) -> Iterator[str]:
    """Yield first lines of docstrings that are fragments."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            if FRAGMENTS.match(text):
                yield text.splitlines()[0]


def empty_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Variables and arguments whose name says nothing, with their lines; fields of classes are not among them."""
    fields = {
        id(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                if name in EMPTY_NAMES and id(node) not in fields:
                    yield node.lineno, name


def british(text: str) -> list[str]:
    """Return words with the British spelling of `canceled`. Names of Python's library and codes of reasons keep it."""
    return re.findall(r"(?i)\bcancell(?:ed|ing)\b", re.sub(r"CancelledError|\.cancelled\(\)|\w+_cancelled\b", "", text))


def test_prose_spells_canceled_as_americans_do() -> None:
    sources = [file for room in ROOMS for file in (PROJECT / room).rglob("*.py")]
    texts = [*sources, *(PROJECT / "app").rglob("*.json"), *PROJECT.glob("*.md"), *(PROJECT / "docs").glob("*.md")]
    assert [str(file) for file in texts if british(file.read_text("utf-8"))] == []
    assert british("It was cancelled after Cancelling.") == ["cancelled", "Cancelling"]
    assert british("except CancelledError: task.cancelled() or pairing_cancelled") == []


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    assert [f"{file}: {line}" for file, tree in files(*ROOMS, "tests") for line in fragments(tree)] == []


def test_names_say_what_they_stand_for() -> None:
    assert [f"{file}:{line} {name}" for file, tree in files(*ROOMS, "tests") for line, name in empty_names(tree)] == []


@pytest.mark.parametrize(
    ("docstring", "is_fragment"),
    [
        ("Whether it lends now.", True),
        ("Of the whole model.", True),
        ("The width of `context`, for one model.", False),
        ("Return whether it lends now.", False),
        ("The models loaded on this host.", False),
    ],
)
def test_a_fragment_is_seen(docstring: str, is_fragment: bool) -> None:
    tree = ast.parse(f'def lends() -> bool:\n    """{docstring}"""')
    assert bool(list(fragments(tree))) is is_fragment


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("[one for one in machines]", ["one"]),
        ("def read(asked): ...", ["asked"]),
        ("class Answer:\n    whose: str", []),
        ("told = reply.told", ["told"]),
        ("lambda given: 1", ["given"]),
        ("machine = household.found", []),
    ],
)
def test_an_empty_name_is_seen(code: str, names: list[str]) -> None:
    assert sorted(name for _, name in empty_names(ast.parse(code))) == sorted(names)
