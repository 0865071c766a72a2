"""The proof can fail: each rule of the cut, left out, is noticed on a family that needs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.catalog.rules import Rule
from tests.families.changed import rewritten
from tests.families.fixtures import families

NEEDED_BY = {
    "F1": "olmo2",
    "F2": "glm4-moe",
    "F3": "gemma3",
    "F4": "qwen3-5 by interval",
    "F5": "glm4-moe",
    "F6": "glm4-moe-mtp",
    "F7": "gemma2",
    "F8": "gemma3 of 62 layers",
    "F9": "qwen3-vl",
    "F10": "gemma4",
    "F11": "deepseek-v2-lite",
    "F12": "granite",
    "F13": "nemotron-h",
    "F14": "lfm2",
    "turns": "glm4",
}


def file_of(what: str, folder: Path) -> Path:
    """The family's file, or the variant of it that shows what the rule is for."""
    name, _, variant = what.partition(" ")
    path = families()[name].path
    match variant:
        case "by interval":  # as converters wrote it before they listed the layers
            return rewritten(path, folder / "m.gguf", without=["qwen35.attention.recurrent_layers"])
        case "of 62 layers":
            return rewritten(path, folder / "m.gguf", n_layers=62)
    return path


def told(rule: str, path: Path) -> str:
    """What the proof says without this rule; "crashed" when the engine did not survive."""
    command = [sys.executable, "-m", "tests.families.mutation", rule, str(path)]
    environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode < 0:
        return "crashed"
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_each_rule_is_tried() -> None:
    assert set(NEEDED_BY) == {rule.name for rule in Rule} | {"turns"}


@pytest.mark.parametrize("rule", NEEDED_BY)
def test_a_rule_that_is_left_out_is_noticed(rule: str, tmp_path: Path) -> None:
    assert told(rule, file_of(NEEDED_BY[rule], tmp_path)) in ("caught", "crashed")


@pytest.mark.parametrize("what", [what for what in NEEDED_BY.values() if " " in what])
def test_the_variants_hold_with_all_rules(what: str, tmp_path: Path) -> None:
    assert told("none", file_of(what, tmp_path)) == "holds"
