"""Replicas against one machine, with stand-ins for nodes: who is loaded how, whose turn it is, what is reported."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import pool_side
from bench.children import ChildFailed
from bench.job import Bench
from bench.machine import ModelFacts
from bench.options import parse
from bench.parts import replicas as part
from tests.bench.test_processes import FAKE_NODE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="places are POSIX")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(pool_side, "POOLHOUSE", FAKE_NODE)
    words = ["replicas", "--runs", "3", "--prompt", "8", "--output", "4", "--out", str(tmp_path)]
    facts = ModelFacts("fake.gguf", 1, "0", 1000, 8, (1,) * 8)
    return Bench(parse(words), facts, {}, tmp_path / "homes")


def test_both_households_are_asked_the_same_by_turns(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, str]] = []
    loads: list[Any] = []
    ask, use = part.WholeModelSide.ask, part.WholeModelSide.use

    def noted(side: part.WholeModelSide, prompts: Any, n_out: int) -> Any:
        assert len(prompts) == part.REQUESTS
        requests.append((side.name, json.dumps(prompts)))
        return ask(side, prompts, n_out)

    def used(side: part.WholeModelSide, setting: Any) -> None:
        loads.append(setting)
        use(side, setting)

    monkeypatch.setattr(part.WholeModelSide, "ask", noted)
    monkeypatch.setattr(part.WholeModelSide, "use", used)
    part.replicas(bench)
    assert loads == [{"shape": "replicas", "users": 4}, {"shape": "one", "users": 8}]
    rounds = requests[2:]  # after the warm-up
    assert [name for name, _ in rounds] == ["pool", part.ONE, part.ONE, "pool", "pool", part.ONE]
    for first, second in zip(rounds[::2], rounds[1::2], strict=True):
        assert first[1] == second[1]
    assert len({prompts for _, prompts in rounds}) == 3
    data = bench.sections["replicas"]
    assert (len(data["rounds"]["pool"]), data["same"]) == (3, [1.0] * 3)
    text = bench.texts[0]
    assert "to one node" in text
    assert "≥ 1.95" in text


def test_a_model_that_is_not_on_each_machine_is_no_figure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "REQUESTS", 7)  # the stand-in then holds it on one machine only
    with pytest.raises(ChildFailed, match="pool holds the model on 1 machines"):
        part.replicas(bench)
