"""Tests of the notices when a machine is lost under an answer: in the answer, the node's status and the window."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.gui.app.pool_status import current_status
from tests.gui.desk import desk, follow
from tests.node.pool import TestNode, paired

Json = dict[str, Any]
pytestmark = [
    pytest.mark.alone,
    pytest.mark.timeout(240),
    pytest.mark.skipif(sys.platform == "win32", reason="workers are found by their command line"),
]
SOON_S = 1.0  # for status, map, chat and command line alike
LOOK_S = 0.02
LOAD = {"model": "guide", "split": [2, 4, 2], "number": "f32"}
ORDER = {
    "prompt": "How do I add a computer?", "raw": True, "max_tokens": 300, "ignore_end": True,
    "sampling": {"temperature": 0},
}  # fmt: skip
ANSWER, STATUS, WINDOW = "the answer", "the status", "the window"


@dataclass
class Told:
    """The notices, their sources, and their delays after the loss."""

    struck_at: float = 0.0
    words: list[tuple[str, float, str]] = field(default_factory=list)
    done: Json = field(default_factory=dict)

    def hear(self, name: str, words: str) -> None:
        if self.struck_at:
            self.words.append((name, time.monotonic() - self.struck_at, words))

    def first_s(self, name: str, words: str) -> float:
        results = [after_s for word, after_s, said in self.words if word == name and words in said]
        assert results, f"{name} never said {words!r}: {self.words}"
        return min(results)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    with paired(tmp_path_factory.mktemp("told"), "den", "attic") as made:
        asyncio.run(load(made[0]))
        yield made


async def load(den: TestNode) -> None:
    async with den.client() as client:
        await client.work("POST", "/load", LOAD)


async def ask(den: TestNode, attic: TestNode, result: Told) -> None:
    """One answer, in the midst of which the lender's worker is killed."""
    n_tokens = 0
    async with den.client() as client, aclosing(client.stream("POST", "/ask", ORDER)) as lines:
        async for line in lines:
            if "delta" in line:
                n_tokens += len(line["delta"]["token_ids"])
            elif "recovery" in line:
                result.hear(ANSWER, line["recovery"]["text"])
            elif "done" in line:
                result.done = line["done"]
            if n_tokens >= 100 and not result.struck_at:
                (await attic.one_worker()).kill()
                result.struck_at = time.monotonic()


async def look(den: TestNode, result: Told) -> None:
    """Watch the status as the command line shows it."""
    async with den.client() as client:
        while not result.done:
            recovery = (await client.get("/status"))["loaded"]["recovery"]
            result.hear(STATUS, recovery["text"] if recovery else "")
            await asyncio.sleep(LOOK_S)


def test_a_loss_is_told_everywhere_within_a_second_and_stays_in_the_answers_details(
    qtbot: QtBot, qapp: QApplication, nodes: list[TestNode]
) -> None:
    den, attic = nodes
    result, made = Told(), desk(qapp, den.root)
    follow(qtbot, made.services)
    pool = made.services.pool
    pool.changed.connect(lambda: result.hear(WINDOW, current_status(pool).sentence))
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(asyncio.run, coroutine) for coroutine in (ask(den, attic, result), look(den, result))]
        qtbot.waitUntil(lambda: all(future.done() for future in both))
        for future in both:
            future.result()
    pool.stop()
    made.services.lock.close()
    assert result.first_s(ANSWER, "(attic) stopped unexpectedly") <= SOON_S  # what happened
    for name in (ANSWER, STATUS, WINDOW):  # what is done about it, and how long that takes
        assert result.first_s(name, "attic lost its layers. Loading them again (about ") <= SOON_S
    (kept,) = result.done["recovered"]
    assert kept["machine"] == "attic"
    assert "(attic) stopped unexpectedly" in kept["reason"]
    assert kept["detected_after_s"] <= SOON_S
