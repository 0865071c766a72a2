"""The promised form of the code, and what must stand in no file."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
ROOTS = ("app", "backends", "bench", "guide", "installers", "scripts", "testbed")
JUNK_DRAWERS = {"utils", "common"}
MOST_FILES_IN_A_ROOM = 20

FORMATTERS = ("app/core/reasons.py", "app/gui/look/formats.py")
BY_HAND = re.compile(  # an amount of bytes that is made MiB or the like where it is told
    r"(/ ?\(?(1 << [1-4]0|1024|[TGMK]IB)|>> ?[1-4]0)\b|\{[a-z_.]+(:[^}]*)?\} [TGMK]iB\b"
)
FORBIDDEN_TEXT = {
    "a path of one machine": re.compile(r"(?<![\w.~*/)}>$-])/(?:work|root|home/(?!me\b)\w+)(?=[/\s\"'`]|$)"),
    "the address of a package registry": re.compile(r"pypi\.org|pythonhosted\.|registry\.npmjs"),
}


def code_files() -> list[Path]:
    """All Python files whose shape is promised."""
    return sorted(file for root in ROOTS for file in (PROJECT / root).rglob("*.py"))


def project_files() -> list[Path]:
    """All files that are, or would be, part of the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [PROJECT / name for name in listed.stdout.decode().split("\0") if name]


@cache
def parsed(file: Path) -> ast.Module:
    text, collects = file.read_text("utf-8"), gc.isenabled()
    gc.disable()  # a finaliser that parses in between breaks the count of how deep this is (gh-106905)
    try:
        return ast.parse(text)
    finally:
        if collects:
            gc.enable()


def test_every_file_says_its_duty_first() -> None:
    silent = [str(file.relative_to(PROJECT)) for file in code_files() if not ast.get_docstring(parsed(file))]
    assert not silent, "\n".join(silent)


def test_no_folder_is_a_junk_drawer() -> None:
    folders = {file.parent for root in (*ROOTS, "tests") for file in (PROJECT / root).rglob("*.py")}
    assert not [folder for folder in folders if folder.name in JUNK_DRAWERS]


def modules() -> dict[str, Path]:
    """The files that are part of the app, by the name under which they are imported."""
    files = (file for root in ("app", "backends") for file in (PROJECT / root).rglob("*.py"))
    named = {".".join(file.relative_to(PROJECT).with_suffix("").parts): file for file in files}
    return {name.removesuffix(".__init__"): file for name, file in named.items()}


def imported(file: Path) -> Iterator[tuple[str, str]]:
    """Each module of which a file imports something, and the name of that; also where that is put off, or for types."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def circle(graph: Mapping[str, Collection[str]]) -> list[str]:
    """Files that import each other in a circle; empty where there is none."""
    done: set[str] = set()
    for start in graph:
        way, ahead = [start], [iter(graph[start])]
        while way and start not in done:
            following = next((name for name in ahead[-1] if name not in done), None)
            if following is None:
                done.add(way.pop())
                ahead.pop()
            elif following in way:
                return [*way[way.index(following) :], following]
            else:
                way.append(following)
                ahead.append(iter(graph[following]))
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    known = modules()

    def of(module: str, label: str) -> str:
        """The file that is meant: `from app.cli import hints` needs that of `hints` alone."""
        return whole if (whole := f"{module}.{label}") in known else module

    graph = {
        name: {meant for module, label in imported(file) if (meant := of(module, label)) != name and meant in known}
        for name, file in known.items()
    }
    assert circle(graph) == []


def test_a_circle_of_imports_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_only_the_wiring_takes_the_whole_node() -> None:
    """Each service is given what it uses of the node: so that one can be read, and tested, without the rest."""
    wiring = {"app.node.start", "app.node.control.servers"}
    takers = {
        name for name, file in modules().items() if any(module == "app.node.node" for module, _ in imported(file))
    }
    assert takers <= wiring


def test_no_room_imports_another_rooms_private_names() -> None:
    names = [
        f"{name}: {module}.{label}"
        for name, file in modules().items()
        for module, label in imported(file)
        if label.startswith("_") and module.startswith(("app.", "backends."))
        if module.rpartition(".")[0] != name.rpartition(".")[0]
    ]
    assert not names, "\n".join(names)


def test_only_the_formatters_say_bytes() -> None:
    """One for sentences and the command line, and one in the window's language: each amount looks the same there."""
    names = [
        f"{file.relative_to(PROJECT)}:{number}: {line.strip()}"
        for file in sorted((PROJECT / "app").rglob("*.py"))
        if file.relative_to(PROJECT).as_posix() not in FORMATTERS
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
        if BY_HAND.search(line)
    ]
    assert not names, "\n".join(names)


def test_json_is_read_by_one_function() -> None:
    """Threads that read a type with msgspec for the first time together end the process (app/decoding.py)."""
    names = [
        f"{file.relative_to(PROJECT)}:{number}"
        for file in sorted((PROJECT / "app").rglob("*.py"))
        if file.name != "decoding.py"
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
        if "msgspec.json.decode(" in line
    ]
    assert not names, names


@pytest.mark.parametrize("label", FORBIDDEN_TEXT)
def test_no_file_holds(label: str) -> None:
    result = []
    for file in project_files():
        try:
            text = file.read_text("utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # binary, or deleted and not yet committed
        for number, line in enumerate(text.splitlines(), start=1):
            if FORBIDDEN_TEXT[label].search(line):
                result.append(f"{file.relative_to(PROJECT)}:{number}: {line.strip()[:100]}")
    assert not result, "\n".join(result)


@pytest.mark.parametrize(
    ("line", "is_path"),
    [
        ("cd /" + "work/main", True),
        ("open('/" + "root')", True),
        ("in /" + "home/anna/models", True),
        ("/home/me/models", False),  # an example, not a machine
        ("guide/work/", False),
        ("~/root/x", False),
        ("network/home/", False),
        ("/workers", False),
    ],
)
def test_a_path_of_one_machine_is_told(line: str, is_path: bool) -> None:
    assert bool(FORBIDDEN_TEXT["a path of one machine"].search(line)) is is_path


def test_the_readme_names_files_that_exist() -> None:
    text = (PROJECT / "README.md").read_text("utf-8")
    named = set(re.findall(r"`((?:app|backends|bench|guide|testbed|docs|requirements)/[\w/.]*)`", text))
    assert not [name for name in sorted(named) if not (PROJECT / name).exists()]


def test_the_help_of_make_fits_a_terminal() -> None:
    text = (PROJECT / "Makefile").read_text("utf-8")
    lines = [f"  make {name:<15} {words}" for name, words in re.findall(r"^([a-z-]+):.*## (.*)$", text, re.MULTILINE)]
    assert len(lines) > 20
    assert not [line for line in lines if len(line) > 80]


def test_no_room_is_crowded() -> None:
    """Beyond about 15 files nobody finds one by its name: a room that has more is two rooms."""
    rooms = {file.parent for root in ("app", "backends") for file in (PROJECT / root).rglob("*.py")}
    crowded = {
        str(room.relative_to(PROJECT)): len(list(room.glob("*.py")))
        for room in rooms
        if len(list(room.glob("*.py"))) > MOST_FILES_IN_A_ROOM
    }
    assert not crowded


MENTIONED = re.compile(r"(?<![\w./-])((?:app|backends)/[\w/]+\.py|(?:core|lan|network|node)/[\w/]+\.py)\b")


def test_comments_name_files_that_exist() -> None:
    """A file that moves takes its mentions along: who follows one else ends nowhere."""
    lost = [
        f"{file.relative_to(PROJECT)}: {name}"
        for root in ("app", "backends")
        for file in sorted((PROJECT / root).rglob("*.py"))
        for name in MENTIONED.findall(file.read_text("utf-8"))
        if not any((place / name).exists() for place in (PROJECT, PROJECT / "app"))
    ]
    assert not lost, "\n".join(lost)
