"""Ready for faults against not, with stand-ins for nodes; and that what is switched off is there to be."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from app.inference.stages.stage_connection import ChannelLink
from bench import pool_side
from bench.job import Bench
from bench.machine import ModelFacts
from bench.options import parse
from bench.parts import fault_readiness as part
from bench.parts import node_without_readiness
from tests.bench.test_processes import FAKE_NODE


@pytest.mark.skipif(sys.platform == "win32", reason="places are POSIX")
def test_both_are_asked_the_same_by_turns_and_held_against_the_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_side, "POOLHOUSE", FAKE_NODE)
    monkeypatch.setattr(part.BareSide, "program", FAKE_NODE)
    words = ["steady", "--runs", "2", "--prompt", "8", "--output", "4", "--out", str(tmp_path)]
    bench = Bench(parse(words), ModelFacts("fake.gguf", 1, "0", 1000, 8, (1,) * 8), {}, tmp_path / "homes")
    requests: list[tuple[str, str]] = []
    ask = pool_side.PoolSide.ask

    def noted(side: pool_side.PoolSide, prompts: Any, n_out: int) -> Any:
        requests.append((side.name, json.dumps(prompts)))
        return ask(side, prompts, n_out)

    monkeypatch.setattr(pool_side.PoolSide, "ask", noted)
    part.steady(bench)
    rounds = [*requests[2:6], *requests[8:]]  # each begins with a warm-up of both
    assert [name for name, _ in rounds] == ["pool"] * 2 + ["bare"] * 4 + ["pool"] * 2
    assert rounds[0][1] == rounds[2][1] != rounds[4][1] == rounds[6][1]
    data = bench.sections["steady"]
    assert data["same"]
    assert {len(each) for each in data["rounds"].values()} == {2}
    assert {result.bar.other for result in data["bars"]} == {"bare"}  # one stream at least: answers may not meet
    assert "≥ 0.99" in bench.texts[0]


async def test_what_is_switched_off_is_what_a_node_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should a name change, the part must not measure a node that does all of it."""
    taken: dict[tuple[str, str], Any] = {}

    def put(where: Any, name: str, subject: Any) -> None:
        assert name in vars(where), f"{where.__name__} has no {name} of its own"
        taken[where.__name__, name] = subject
        monkeypatch.setattr(where, name, subject)

    node_without_readiness.strip(put)
    assert len(taken) == 7
    assert ChannelLink(None, peer=object())._peer is None  # type: ignore[arg-type]
    resting = taken["PeerLink", "_beat"](None, None)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(resting, 0.01)
