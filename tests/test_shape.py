"""The promised form of the code, and what must stand in no file."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
ROOTS = ("app", "backends", "bench", "guide", "scripts", "testbed")
JUNK_DRAWERS = {"utils", "common", "models"}

FORMATTERS = ("app/core/reasons.py", "app/gui/formats.py")
BY_HAND = re.compile(  # an amount of bytes that is made MiB or the like where it is told
    r"(/ ?\(?(1 << [1-4]0|1024|[TGMK]IB)|>> ?[1-4]0)\b|\{[a-z_.]+(:[^}]*)?\} [TGMK]iB\b"
)
FORBIDDEN_TEXT = {
    "a path of one machine": re.compile(
        r"(?<![\w.~*/)}>$-])/(?:work|root|home/(?!me\b)\w+)(?=[/\s\"'`]|$)"
    ),
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
    silent = [
        str(file.relative_to(PROJECT))
        for file in code_files()
        if not ast.get_docstring(parsed(file))
    ]
    assert not silent, "\n".join(silent)


def test_no_folder_is_a_junk_drawer() -> None:
    folders = {file.parent for root in (*ROOTS, "tests") for file in (PROJECT / root).rglob("*.py")}
    assert not [folder for folder in folders if folder.name in JUNK_DRAWERS]


def test_only_the_formatters_say_bytes() -> None:
    """One for sentences and the command line, and one in the window's language: each amount looks the same there."""
    found = [
        f"{file.relative_to(PROJECT)}:{number}: {line.strip()}"
        for file in sorted((PROJECT / "app").rglob("*.py"))
        if file.relative_to(PROJECT).as_posix() not in FORMATTERS
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
        if BY_HAND.search(line)
    ]
    assert not found, "\n".join(found)


def test_json_is_read_by_one_function() -> None:
    """Threads that read a type with msgspec for the first time together end the process (app/decoding.py)."""
    found = [
        f"{file.relative_to(PROJECT)}:{number}"
        for file in sorted((PROJECT / "app").rglob("*.py"))
        if file.name != "decoding.py"
        for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
        if "msgspec.json.decode(" in line
    ]
    assert not found, found


@pytest.mark.parametrize("what", FORBIDDEN_TEXT)
def test_no_file_holds(what: str) -> None:
    found = []
    for file in project_files():
        try:
            text = file.read_text("utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # binary, or deleted and not yet committed
        for number, line in enumerate(text.splitlines(), start=1):
            if FORBIDDEN_TEXT[what].search(line):
                found.append(f"{file.relative_to(PROJECT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


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
    named = set(
        re.findall(r"`((?:app|backends|bench|guide|testbed|docs|requirements)/[\w/.]*)`", text)
    )
    assert not [name for name in sorted(named) if not (PROJECT / name).exists()]
