"""The demo's nodes: they start together, end with the demo however it ends, and leave nothing."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.cli import demo_nodes
from app.cli.demo_nodes import DemoNodes
from app.core.errors import StageLost
from app.core.reasons import said

READY = (
    "import sys, pathlib; pathlib.Path(sys.argv[1], 'worked').touch();"
    'print(\'{"id": "x", "peer_port": 1}\', flush=True); sys.stdin.read()'
)
DIES = "import sys; print('ignored'); sys.exit('first line\\nno room on this disk.')"
SILENT = "import sys; sys.stdin.read()"
DEAF = "import time; print('{}', flush=True); time.sleep(60)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the demo makes its homes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`stand_in(READY, DIES)`: what the nodes run instead of a node."""

    def run(*scripts: str) -> None:
        def command(home: Path, name: str, threads: int) -> list[str]:
            script = scripts[demo_nodes.NAMES.index(name) % len(scripts)]
            return [sys.executable, "-c", script, str(home)]

        monkeypatch.setattr(demo_nodes, "node_command", command)

    return run


def is_empty(folder: Path) -> bool:
    return not list(folder.iterdir())


def below(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


async def test_they_end_when_their_input_does(folder: Path, stand_in: Callable[..., None]) -> None:
    stand_in(READY)
    async with DemoNodes(3) as demo:
        assert [node.name for node in demo.nodes] == ["den-pc", "attic-pc", "kitchen-laptop"]
        assert all((node.home / "worked").exists() for node in demo.nodes)
        pids = [node.process.pid for node in demo.nodes]
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert is_empty(folder)


@pytest.mark.parametrize("there", [False, True])
async def test_their_homes_stand_where_it_is_told(tmp_path: Path, stand_in: Callable[..., None], there: bool) -> None:
    stand_in(READY)
    chosen = tmp_path / "a" / "b"
    if there:
        chosen.mkdir(parents=True)
        (chosen / "mine").touch()
    async with DemoNodes(2, chosen) as demo:
        assert all(node.home.parent.parent == chosen for node in demo.nodes)
        assert all((node.home / "worked").exists() for node in demo.nodes)
    assert below(tmp_path) == (["a", "a/b", "a/b/mine"] if there else [])


async def test_one_that_dies_is_named_with_its_last_line(folder: Path, stand_in: Callable[..., None]) -> None:
    stand_in(READY, DIES)
    with pytest.raises(StageLost) as lost:
        async with DemoNodes(2):
            pass
    assert said(lost.value) == ("The demo node attic-pc stopped before it was ready: no room on this disk.")
    assert is_empty(folder)


async def test_one_that_is_never_ready(
    folder: Path, stand_in: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_nodes, "READY_SECONDS", 0.3)
    stand_in(SILENT)
    with pytest.raises(StageLost) as lost:
        async with DemoNodes(1):
            pass
    assert lost.value.reason.code == "demo_slow"
    assert is_empty(folder)


async def test_one_that_does_not_hear_is_ended_and_an_error_inside_too(
    folder: Path, stand_in: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_nodes, "ENDING_SECONDS", 0.3)
    stand_in(DEAF)
    pids: list[int] = []

    async def fail_inside() -> None:
        async with DemoNodes(2) as demo:
            pids.extend(node.process.pid for node in demo.nodes)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_inside()
    assert len(pids) == 2
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert is_empty(folder)


@pytest.fixture
def demo(folder: Path, poolhouse: Any, monkeypatch: pytest.MonkeyPatch, project: Path) -> Callable[..., Any]:
    """`demo("--machines", "2")` with stand-ins for nodes; afterwards nothing may be left."""

    def run(*arguments: str, model: str = "with-model") -> Any:
        def command(home: Path, name: str, threads: int) -> list[str]:
            script = str(project / "tests" / "cli" / "stand_in.py")
            return [sys.executable, script, str(home), name, model]

        monkeypatch.setattr(demo_nodes, "node_command", command)
        said = poolhouse("demo", *arguments, at_home=False)
        assert is_empty(folder)
        return said

    return run


def test_the_whole_demo(demo: Callable[..., Any]) -> None:
    said = demo("--machines", "2")
    assert said.code == 0, said.err
    assert said.out == SHOWN
    lines = said.err.splitlines()
    assert lines[0] == "Starting 2 nodes on this computer, each with its own data folder…"
    assert lines[1].endswith(": den-pc, attic-pc.")
    assert lines[2:] == [
        "Pairing attic-pc with the code 042137 at 127.0.0.1:4243…",
        "Loading guide (12 layers) onto 2 machines…",
        "Loading layers on den-pc…",
        "Stopped 2 nodes and deleted the data of the demo.",
    ]


SHOWN = """\

guide · split over 2 machines · context 2,048 · 8 at once · f16
den-pc    ████░░░░████  1–4, 9–12  █░░░░░░░░░ 11.0 MiB of 8.0 GiB
attic-pc  ░░░░████░░░░        5–8  █░░░░░░░░░ 5.0 MiB of 4.0 GiB
A program chose this split.

> How do I add a computer?
Open Pool and press Add.
4 tokens · first token after 0.42 s · 11.8 tok/s
"""


def test_the_demo_as_json(demo: Callable[..., Any], folder: Path) -> None:
    home = ("--home", str(folder / "chosen"))
    report = demo("--machines", "2", "--question", "Why?", "--json", *home).json
    assert report["machines"] == ["den-pc", "attic-pc"]
    assert report["answer"]["text"] == "Open Pool and press Add."


def test_a_demo_without_its_model_says_so_and_leaves_nothing(demo: Callable[..., Any]) -> None:
    said = demo("--machines", "2", model="without")
    assert said.code == 1
    assert said.err.splitlines()[-1].startswith("This installation has no built-in model.")
