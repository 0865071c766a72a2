"""A real node judges models it does not hold, and loads beyond what it gives when it is told to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.api.plans import Progress
from app.core.errors import BadInput, DoesNotFit
from tests.node.pool import TestNode, node

Json = dict[str, Any]
MIB = 1 << 20
SKETCH = {"key": "small", "file_bytes": 300 * MIB, "n_layers": 16, "kv_bytes_per_token": 16 << 10}


@pytest.fixture(scope="module")
def den(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    with node(tmp_path_factory.mktemp("verdicts"), "den") as test_node:
        yield test_node


async def judged(den: TestNode, **body: Any) -> Json:
    async with den.client() as client:
        answer: Json = (await client.post("/verdicts", body))["verdicts"]
    return answer


async def test_each_sketch_gets_its_word(den: TestNode) -> None:
    large = SKETCH | {"key": "large", "file_bytes": 3000 * MIB}
    result = await judged(den, sketches=[SKETCH, large])
    assert result["small"]["word"] == "fits"
    assert result["small"]["plan"] is None
    assert result["large"]["word"] == "too big"
    parts = result["large"]["parts"]
    assert parts["lends_bytes"] == 1024 * MIB
    assert result["large"]["short_bytes"] == sum(
        parts[name] for name in ("weight_bytes", "kv_bytes", "work_bytes")
    ) - parts["lends_bytes"]  # fmt: skip


async def test_its_place_is_shown_when_asked_for(den: TestNode) -> None:
    result = await judged(den, sketches=[SKETCH], place=True, context=2048, users=2)
    plan = result["small"]["plan"]
    assert (plan["shape"], plan["context"], plan["users"]) == ("one machine", 2048, 2)
    assert plan["forecast"] is None
    assert plan["stages"][0]["kv_bytes"] == 4096 * (16 << 10)
    longer = await judged(den, sketches=[SKETCH], place=True, context=1 << 20)
    assert (longer["small"]["word"], longer["small"]["plan"]) == ("smaller context", None)
    assert 0 < longer["small"]["context"] < 1 << 20


@pytest.mark.long
async def test_a_model_that_is_not_here_is_estimated_after_a_test_of_the_machine(den: TestNode) -> None:
    # so large that a token's time is that of its weights, also on a busy computer
    known = SKETCH | {"file_bytes": 600 * MIB, "architecture": "qwen3moe", "quantization": "Q4_K_M"}
    experts = known | {"key": "experts", "parameters": 500 * MIB, "active_parameters": 100 * MIB}
    result = await judged(den, sketches=[known], place=True)
    assert result["small"]["plan"]["forecast"] is None
    assert result["small"]["unforecast"] is None  # it can be, after a test
    async with den.client() as client:
        body = {"sketches": [known], "place": True, "measure": True}
        lines: list[Progress] = []
        first = await client.work("POST", "/verdicts", body, lines.append)
    assert {line.step for line in lines} == {"measuring"}
    said = await judged(den, sketches=[known, experts], place=True)
    assert said["small"] == first["verdicts"]["small"]  # known from now on
    dense, sparse = (said[key]["plan"]["forecast"] for key in ("small", "experts"))
    assert (dense["estimated"], sparse["estimated"]) == (True, True)
    # each step's own time, which is much where much else is computed, comes to both
    assert sparse["decode_tok_s"] > dense["decode_tok_s"]
    assert said["small"]["plan"]["why"][-1]["code"] == "plan_sketched"


async def test_why_nothing_is_said_of_the_speed_of_an_unknown_family(den: TestNode) -> None:
    result = await judged(den, sketches=[SKETCH | {"architecture": "marvin"}], place=True)
    assert "marvin" in result["small"]["unforecast"]
    assert result["small"]["plan"]["forecast"] is None
    result = await judged(den, sketches=[SKETCH], place=True)
    assert "not known until it is downloaded" in result["small"]["unforecast"]


async def test_odd_sketches_are_refused(den: TestNode) -> None:
    for wrong in ({"file_bytes": 0}, {"n_layers": 0}, {"more": 1}, {"key": ""}):
        with pytest.raises(BadInput):
            await judged(den, sketches=[SKETCH | wrong])


@pytest.mark.long
async def test_what_is_too_big_loads_when_it_is_tried_anyway(tmp_path: Path) -> None:
    with node(tmp_path, "attic", lend="32MiB") as attic:
        async with attic.client() as client:
            with pytest.raises(DoesNotFit) as refused:
                await client.work("POST", "/load", {"model": "guide"}, lambda _: None)
            assert refused.value.reason.number("need_bytes") > 32 * MIB
            body = {"model": "guide", "anyway": True, "measure": False}
            done = await client.work("POST", "/load", body, lambda _: None)
    assert done["loaded"]["state"] == "ready"
