"""A machine that wishes to leave is somebody else at its next start, and not before its node has ended."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from app.machine.paths import Home
from app.network import identity


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home.at(tmp_path).create()
    (made.identity / "identity.pem").write_text("me")
    (made.household / "log").write_text("we")
    return made


def kept_aside(home: Home) -> list[str]:
    return sorted(path.name.partition(".old-")[0] for path in home.root.glob("*.old-*"))


async def test_nothing_happens_unasked(home: Home) -> None:
    await identity.leave_if_requested(home)
    assert (home.identity / "identity.pem").read_text() == "me"
    assert kept_aside(home) == []


async def test_a_wish_puts_identity_and_household_aside_once(home: Home) -> None:
    identity.request_leave(home, None)
    await identity.leave_if_requested(home)
    assert kept_aside(home) == ["household", "identity"]
    assert [file.name for file in home.identity.iterdir()] == [identity.ANEW]
    assert list(home.household.iterdir()) == []
    await identity.leave_if_requested(home)
    assert kept_aside(home) == ["household", "identity"]


async def test_the_node_that_leaves_ends_before(home: Home) -> None:
    running = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=PIPE)
    identity.request_leave(home, running.pid)
    async with asyncio.TaskGroup() as group:
        group.create_task(identity.leave_if_requested(home), name="leave")
        await asyncio.sleep(0.3)
        assert (home.identity / "identity.pem").exists()
        running.kill()
        await running.wait()
    assert kept_aside(home) == ["household", "identity"]


async def test_a_process_that_never_ends_is_not_waited_for_for_ever(home: Home) -> None:
    identity.request_leave(home, os.getpid())
    began = time.monotonic()
    await identity.leave_if_requested(home, late_s=0.2)
    assert time.monotonic() - began < 30
    assert kept_aside(home) == ["household", "identity"]
