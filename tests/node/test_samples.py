"""Three real nodes, one of which gives wrong numbers: found while nobody asks, named, replaced, taken back."""

from __future__ import annotations

import asyncio
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.client import NodeClient
from tests.node.pool import TestNode, node, pair

Json = dict[str, Any]
QUESTION = "How do I add a computer to my household, and what does it lend to the others?"
ASK = {"prompt": QUESTION, "max_tokens": 3, "sampling": {"temperature": 0}, "ignore_end": True}
HURRIED = """
    from app.core import verification as sample
    from app.node.placement import standby as ahead
    sample.CHANCE, sample.REST_S = 1.1, 0.0
    ahead.QUIET_S, ahead.LOOK_SECONDS, ahead.LEAST_BETWEEN_SECONDS = 0.3, 0.1, 0.5
"""
LIAR = """
    import numpy as np
    from backends.contract import Hidden
    from backends.llamacpp.stage import LlamaStage
    honest = LlamaStage.forward

    def lying(self, batch, *more):
        out = honest(self, batch, *more)
        if not isinstance(out, Hidden):
            return out
        n_rows = sum(segment.n_tokens for segment in out.segments)
        rows = np.frombuffer(out.rows, np.float32).reshape(n_rows, -1).copy()
        rows[10:13] *= 1 + 0.2 * (np.arange(rows.shape[1]) % 2)
        return Hidden(out.segments, rows.reshape(-1).view(np.uint8).data)

    LlamaStage.forward = lying
"""


def changed(folder: Path, package: str, source: str) -> str:
    """A folder for PYTHONPATH that changes what `python -m PACKAGE` does."""
    folder.mkdir()
    head = f"import sys\nif '{package}' in sys.orig_argv[1:4]:\n"
    body = textwrap.indent(textwrap.dedent(source), "    ")
    (folder / "sitecustomize.py").write_text(head + body, "utf-8")
    before = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, [str(folder), before]))


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[tuple[TestNode, TestNode, TestNode]]:
    """A host that looks often, a lender whose worker changes some rows a little, and an honest spare to pair later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", changed(tmp_path / "hurried", "app", HURRIED))
        with node(tmp_path / "den", "den") as den, node(tmp_path / "shed", "shed") as shed:
            patch.setenv("PYTHONPATH", changed(tmp_path / "liar", "backends", LIAR))
            with node(tmp_path / "attic", "attic") as attic:
                pair(den, attic)
                yield den, attic, shed


async def until(host: NodeClient, holds: Any) -> Json:
    async with asyncio.timeout(60):
        while not holds(value := await host.get("/status")):  # noqa: ASYNC110  asked of a node
            await asyncio.sleep(0.05)
    return dict(value)


@pytest.mark.long
async def test_a_lender_that_gives_wrong_numbers_is_found_and_replaced(
    pool: tuple[TestNode, TestNode, TestNode],
) -> None:
    den, attic, shed = pool
    key = attic.ready["id"]
    async with den.client() as host:
        await host.work("POST", "/load", {"model": "guide", "split": [3, 3, 2]})
        await asyncio.to_thread(pair, den, shed)  # only now, because the plan could choose it otherwise
        await until(host, lambda now: now["loaded"]["ahead"])  # on the shed
        first = await host.work("POST", "/ask", ASK)
        assert first["doubted"] == []
        assert {stage["machine"] for stage in first["placement"]} == {"den", "attic"}
        result = await until(host, lambda now: now["machines"][key]["doubted"])
        assert "attic computed wrong numbers" in result["machines"][key]["reason"]
        await until(host, lambda now: key not in now["loaded"]["holders"])
        second = await host.work("POST", "/ask", ASK)
        assert second["doubted"] == []
        assert {stage["machine"] for stage in second["placement"]} == {"den", "shed"}
        events = (await host.get("/journal"))["events"]
        assert "log_machine_doubted" in [event["code"] for event in events]
        planned = await host.work("POST", "/plan", {"model": "guide", "measure": False})
        assert "left_out_doubted" in [item["code"] for item in planned["why"]]
        assert (await host.post("/machines/attic/use-again"))["used_again"]["id"] == key
        assert not (await host.get("/status"))["machines"][key]["doubted"]
    said = (den.root / "logs" / "node.log").read_text("utf-8")
    assert "a sample of attic: differs" in said
    assert "a sample of shed: agrees" in said  # the same rows, by the layers that lie there ahead
