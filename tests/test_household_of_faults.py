"""The household of the fault matrix: whoever dies while it is looked for is started again too."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults import household
from tests.faults.household import HOST, LENDERS, SPLIT, Household


class Process:
    """Killed, and not yet dead: many threads take a while."""

    pid = os.getpid()

    def __init__(self, looks: float = float("inf")) -> None:
        self.looks = looks

    def poll(self) -> int | None:
        self.looks -= 1
        return None if self.looks > 0 else -9


class Host:
    """Says who is there: all whose process lives."""

    def __init__(self, home: Household) -> None:
        self._home = home

    async def __aenter__(self) -> Host:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def get(self, _: str) -> Any:
        alive = {name: node.process.poll() is None for name, node in self._home.nodes.items()}
        machines = {
            name: {"name": name, "online": there, "lent_bytes": int(there), "state": "", "reason": "gone"}
            for name, there in alive.items()
        }  # fmt: skip
        stages = [{"machine": name} for name in (HOST, *LENDERS[: len(SPLIT) - 2], HOST)]
        return {"machines": machines, "loaded": {"state": "ready", "stages": stages}}


class Home(Household):
    started: list[str]

    def start(self, name: str) -> None:
        self.started.append(name)
        self.nodes[name] = SimpleNamespace(process=Process(), workers=lambda: [1])  # type: ignore[assignment]

    def client(self) -> Any:
        return Host(self)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path, ExitStack(), expected=[1])
    made.started = []
    for name in (HOST, *LENDERS):
        made.start(name)
    made.started.clear()
    return made


async def test_whoever_is_dead_only_a_moment_later_is_started_again(home: Home) -> None:
    home.nodes["attic"] = SimpleNamespace(process=Process(looks=2), workers=lambda: [1])  # type: ignore[assignment]
    assert await home.whole() == list(LENDERS[: len(SPLIT) - 2])
    assert home.started == ["attic"]


async def test_who_does_not_come_back_is_told_with_what_is_known_of_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(household, "RETURN_SECONDS", 0.2)
    monkeypatch.setattr(home, "start", lambda name: None)
    home.nodes["attic"] = SimpleNamespace(process=Process(looks=0), workers=lambda: [1])  # type: ignore[assignment]
    with pytest.raises(AssertionError, match="attic: ended, offline, lends 0"):
        await home.whole()
