"""Tests of probing the sandbox of workers, and of the reason for anything it lacks."""

from __future__ import annotations

import sys

import pytest

from app.core.reasons import SENTENCES
from app.machine.hardware import engines
from backends.worker import confine
from backends.worker.confine import Restrictions


async def test_it_is_tried_as_a_worker_does_it() -> None:
    assert await engines.probe_walls() == confine.supported_mechanisms().walls


@pytest.mark.parametrize("does", ["exit(3)", "print('{}]')", "print('{\"files\": 1}')"])
async def test_where_nobody_can_say_it_is_not_known(monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    monkeypatch.setattr("app.machine.paths.python_command", lambda *_: [sys.executable, "-c", does])
    assert await engines.probe_walls() is None


def test_the_reason_is_the_system_s() -> None:
    messages = {engines.walls_code(Restrictions(), system) for system in ("linux", "darwin", "win32")}
    assert messages == {"check_confined_neither", "check_confined_none"}
    assert "Landlock" in SENTENCES[engines.walls_code(Restrictions(network=True))]
    assert "seccomp" in SENTENCES[engines.walls_code(Restrictions(files=True))]
