"""Stages that are divided among devices, and between a device and the processor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backends.contract import StageConfig
from tests.cards.device import VULKAN0, VULKAN1, CaseFailed, environment, in_a_process
from tests.cards.divided_case import all_ways, cuts_of, experts, half, on_two, tensors
from tests.cards.test_families import CUT, WHOLE
from tests.cards.worker_pipeline import placed
from tests.families import proof
from tests.families.fixtures import families
from tests.inference.pool import answer, request

CPU = "CPU"
# The processor rounds hidden states to 8 bits where it multiplies them.
MIXED = 5e-3
TENSORS = 1e-3
PROMPT = tuple(range(5, 45))


def results_of(family: str, *divisions: str) -> list[dict[str, Any]]:
    case = in_a_process("tests.cards.divided_case", [family, *divisions], environment("0,0"), within_s=380)
    results: list[dict[str, Any]] = case["results"]
    return results


@pytest.mark.parametrize("family", ["llama", "qwen3-5"])
def test_a_stage_on_two_devices_says_what_one_says(family: str) -> None:
    for result in results_of(family, "on_two"):
        assert result["device_error"] <= (CUT if result["cuts"] else 0.0), result
        assert result["processor_bytes"] == 0, result  # nothing is silently left to the processor
        assert {device for stage in result["devices"] for device in stage} == {VULKAN0, VULKAN1}


@pytest.mark.parametrize("family", ["llama", "gemma3", "qwen3-moe"])
def test_devices_that_share_every_matrix_say_the_same_within_the_bounds(family: str) -> None:
    """Parts of each sum are added up in another order than on one device."""
    for result in results_of(family, "tensors"):
        assert 0 < result["device_error"] < TENSORS, result
        assert result["tokens"] >= result["compared"] - 1, result  # qwen3-moe has a near tie
        assert result["processor_bytes"] == 0 < result["device_bytes"], result
        assert all(device.startswith("Meta(") for stage in result["devices"] for device in stage), result


def test_a_family_for_which_the_engine_cannot_share_matrices_is_refused() -> None:
    with pytest.raises(CaseFailed, match="LLAMA_SPLIT_MODE_TENSOR not implemented for architecture 'olmo2'"):
        results_of("olmo2", "tensors")


@pytest.mark.parametrize("family", ["gemma3", "lfm2"])
def test_a_stage_on_a_device_and_the_processor_stays_within_the_bounds(family: str) -> None:
    for result in results_of(family, "half"):
        assert max(result["device_error"], result["processor_error"]) < WHOLE, result
        whole = [stage for stage in result["devices"] if len(stage) > 1]
        assert whole, result
        assert all(stage[0] == CPU and stage[-1] == VULKAN0 for stage in whole), result  # the first, not the last


def test_experts_are_left_to_the_processor() -> None:
    results = results_of("qwen3-moe", "experts", "all_ways")
    for result in results:
        assert max(result["device_error"], result["processor_error"]) < MIXED, result
        assert result["processor_bytes"] > 0, result
    whole, cut, divided, _ = results
    # A cut between devices changes nothing, and neither does one within a stage.
    assert whole["device_error"] == cut["device_error"], results
    assert all(device == VULKAN0 for stage in whole["devices"] for device in stage), results
    assert divided["devices"][0][0] == CPU, results
    assert divided["devices"][0][-1] == VULKAN1, results


@pytest.mark.parametrize(
    ("family", "divided"),
    [("llama", on_two), ("llama", tensors), ("qwen3-5", half), ("qwen3-moe", experts), ("qwen3-moe", all_ways)],
)
async def test_divided_stages_in_confined_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, divided: Callable[[StageConfig], StageConfig]
) -> None:
    monkeypatch.setenv("GGML_VK_VISIBLE_DEVICES", "0,0")
    home = proof.home(tmp_path)
    entry = home.shelf.import_file(families()[family].path)
    cuts = cuts_of(entry.model)
    answers = []
    for device in ("", VULKAN0):
        devices = [device] * (len(cuts) + 1)
        async with placed(home, entry, cuts, devices, divided=divided if device else None) as made:
            answers.append((await answer(made.pipeline, request(PROMPT, 12)))[0])
            assert all(bool(each.device_bytes) == bool(device) for each in made.opened)
    assert answers[0] == answers[1]
