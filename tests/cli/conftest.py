"""The command line in this process, against a node that answers from a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from app.cli import main, program
from tests.cli.fake_node import Answer, FakeNode


@dataclass(frozen=True)
class Said:
    """The output and exit code of one command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


@pytest.fixture(scope="module", autouse=True)
def described_once() -> Iterator[None]:
    """All commands with their options, as the process of one command line does it: that takes most of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "build", cache(program.build))
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def poolhouse(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path) -> Callable[..., Said]:
    """`poolhouse("status", "--json")` runs the command with this test's home."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*arguments: str, at_home: bool = True) -> Said:
        where = ["--home", str(home)] if at_home else []
        code = main([*arguments, *where])
        out, err = capfd.readouterr()
        return Said(code, out, err)

    return run


@pytest.fixture
def answering(home: Path) -> Iterator[Callable[..., FakeNode]]:
    """`answering({("GET", "/status"): {...}})` starts a node that gives these answers."""
    with ExitStack() as stack:

        def start(answers: dict[tuple[str, str], Answer], **more: Any) -> FakeNode:
            return stack.enter_context(FakeNode(home, answers, **more))

        yield start
