"""The proof can fail: each rule of the cut, left out, is noticed on a family that needs it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.families.family_table import FAMILIES, Rule
from app.catalog.gguf.gguf_file import read_header
from app.catalog.stages import cut
from app.core.errors import AppError
from tests.families import proof
from tests.families.changed import fewer_heads, rewritten
from tests.families.driven import Workers
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
VARIANTS = (*(label for label in NEEDED_BY.values() if " " in label), "laguna of several head counts")


def file_of(label: str, folder: Path) -> Path:
    """The family's file, or the variant of it that shows what the rule is for."""
    name, _, variant = label.partition(" ")
    path = families()[name].path
    match variant:
        case "by interval":  # as converters wrote it before they listed the layers
            return rewritten(path, folder / "m.gguf", without=["qwen35.attention.recurrent_layers"])
        case "of 62 layers":
            return rewritten(path, folder / "m.gguf", n_layers=62)
        case "of several head counts":  # as the released ones: fewer where all positions are looked at
            return fewer_heads(path, folder / "m.gguf", (0, 4), 2)
    return path


def leave_out(rule: str, architecture: str, patch: pytest.MonkeyPatch) -> None:
    """Leave this out from now on, in this test."""
    family = FAMILIES[architecture]
    if rule == "turns":  # the half of F5 that is no metadata
        patch.setitem(FAMILIES, architecture, replace(family, turns=False))
    elif Rule[rule] in cut.BY_RULE:
        patch.delitem(cut.BY_RULE, Rule[rule])
    else:
        fewer = replace(family, rules=family.rules - {Rule[rule]})
        patch.setitem(FAMILIES, architecture, fewer)


async def holds(path: Path, workers: Workers, folder: Path) -> bool:
    """The proof of this file's cuts into two, as the table is now. What the engine refuses, or does not
    survive, does not hold."""
    home = proof.home(folder)
    entry = home.shelf.import_file(path)
    cuts = proof.twos(entry.model)
    assert cuts, "nothing to prove"
    try:
        verdict = await proof.prove(workers, home, entry, cuts[:: max(1, len(cuts) // 6)])
    except AppError:
        return False
    return verdict.holds


def test_each_rule_is_tried() -> None:
    assert set(NEEDED_BY) == {rule.name for rule in Rule} | {"turns"}


@pytest.mark.many(keep=3)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("rule", NEEDED_BY)
async def test_a_rule_that_is_left_out_is_noticed(
    rule: str, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_of(NEEDED_BY[rule], tmp_path)
    leave_out(rule, read_header(path).text("general.architecture"), monkeypatch)
    assert not await holds(path, workers, tmp_path)


@pytest.mark.many(keep=2)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("label", VARIANTS)
async def test_the_variants_hold_with_all_rules(label: str, workers: Workers, tmp_path: Path) -> None:
    assert await holds(file_of(label, tmp_path), workers, tmp_path)
