"""Children are started in their place, heard, and gone afterwards; the pool's side asks nodes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bench import pool_side, report
from bench.bars import BARS, compare
from bench.children import ChildFailed, Children, Place
from bench.node_client import NodeRefused
from bench.options import Options, parse
from bench.rounds import Questions, Tuned, side_by_side, tune

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="places are POSIX")
FAKE_NODE = [sys.executable, "-m", "tests.bench.fake_node"]
ECHO = "import sys, json\nfor line in sys.stdin: print('noise'); print(line, end='', flush=True)"


@pytest.fixture
def family(tmp_path: Path) -> Iterator[Children]:
    with Children(tmp_path / "logs") as children:
        yield children


@pytest.fixture
def options(tmp_path: Path) -> Options:
    words = ["pool", "--runs", "2", "--prompt", "8", "--output", "4", "--streams", "2"]
    return parse([*words, "--out", str(tmp_path)])


@pytest.fixture
def side(family: Children, options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pool_side.PoolSide:
    monkeypatch.setattr(pool_side, "POOLHOUSE", FAKE_NODE)
    return pool_side.PoolSide(family, options, [Place(), Place()], tmp_path / "homes", n_layers=8)


def test_a_child_is_heard_and_gone_afterwards(tmp_path: Path) -> None:
    with Children(tmp_path) as family:
        child = family.start("echo", [sys.executable, "-c", ECHO], Place())
        child.say({"a": 1})
        assert child.hear(20.0) == {"a": 1}
        pid = child.process.pid
    assert not psutil.pid_exists(pid)


def test_grandchildren_are_ended_too(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, json, time\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(json.dumps({'pid': p.pid}), flush=True); time.sleep(60)"
    )
    with Children(tmp_path) as family:
        pid = family.start("parent", [sys.executable, "-c", code], Place()).hear(20.0)["pid"]
        assert psutil.pid_exists(pid)
    gone, _ = psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=30)
    assert not psutil.pid_exists(pid) or gone


def test_a_dead_child_says_why(family: Children) -> None:
    child = family.start("dying", [sys.executable, "-c", "raise SystemExit('no room')"], Place())
    with pytest.raises(ChildFailed, match="dying ended: no room"):
        child.hear(20.0)


def test_the_pool_is_measured_and_reported(side: pool_side.PoolSide, options: Options) -> None:
    said: list[str] = []
    questions = Questions(options.seed, 1000)
    best = tune(side, options, questions, said.append)
    assert best.alone in ({"split": [3, 4, 1]}, {"split": [2, 4, 2]})
    measured = side_by_side([side], {"pool": best}, options, questions, said.append)
    figures = measured["pool"].figures()
    assert len(figures) == 2
    assert all((figure["ttft_s"] or 0) > 0 for figure in figures)
    text = report.sides_markdown("T", measured, {"pool": best}, compare(BARS, {"pool": figures}))
    assert "host 0–4 | 250.00 | 0.00 | 2 | 2 |" in text


def test_a_refusal_is_not_a_figure(side: pool_side.PoolSide) -> None:
    side.use({"split": [3, 4, 1]})
    with pytest.raises(NodeRefused, match="Bad luck"):
        side.ask([[1, 2, 3]], 13)


def test_report_is_written_whole(options: Options, tmp_path: Path) -> None:
    report.write(tmp_path, {"commit": "c"}, {"a": Tuned({}, {})}, ["## A\n"])
    assert {path.name for path in tmp_path.iterdir()} == {"report.json", "report.md"}
    assert "- commit: c" in (tmp_path / "report.md").read_text()
