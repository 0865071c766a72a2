"""Tests of the check of a device with a stage's own layers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backends.contract import FamilyUnfit, StageConfig
from backends.hidden_state_codec import Rows
from backends.llamacpp import binding, device_check
from backends.llamacpp.device_check import (
    MOST_APART,
    N_DECODED,
    PROMPT_ROWS,
    STEP_ROWS,
    check_device,
    check_head,
    judge,
)
from tests.cards.check_case import reversed_weights
from tests.families import proof
from tests.families.fixtures import families

RECURRENT = "lfm2"


def rows(seed: int, n_rows: int = PROMPT_ROWS + N_DECODED, width: int = 64) -> Rows:
    return np.random.default_rng(seed).standard_normal((n_rows, width)).astype(np.float32)


def test_rounding_is_no_fault() -> None:
    expected = rows(1)
    check = judge(expected, expected + 0.05 * rows(2))
    assert check is not None
    assert 0.03 < check.apart < 0.07


def test_a_few_rows_with_another_expert_are_no_fault() -> None:
    expected = rows(1)
    ours = expected.copy()
    ours[::5] = rows(3)[::5]
    check = judge(expected, ours)
    assert check is not None
    assert check.apart == 0
    assert check.most_apart > 1


@pytest.mark.parametrize("wrong", [slice(STEP_ROWS), slice(STEP_ROWS, PROMPT_ROWS), slice(PROMPT_ROWS, None)])
def test_a_device_that_is_wrong_in_one_kind_of_step_is_refused(wrong: slice) -> None:
    """The second step is the first one to read a state that was written back."""
    expected = rows(1)
    ours = expected.copy()
    ours[wrong] += 2 * MOST_APART * rows(2)[wrong]
    with pytest.raises(FamilyUnfit) as refused:
        judge(expected, ours)
    assert refused.value.cause == "device_apart"
    assert 50 < float(str(refused.value.facts["percent"])) < 90


def test_one_value_that_is_no_number_is_refused() -> None:
    ours = rows(1)
    ours[3, 5] = np.nan
    with pytest.raises(FamilyUnfit) as refused:
        judge(rows(1), ours)
    assert refused.value.cause == "device_not_finite"


def test_a_file_whose_values_are_no_numbers_says_nothing_about_the_device() -> None:
    expected = rows(1)
    expected[0, 0] = np.inf
    assert judge(expected, rows(2)) is None


def test_what_went_into_the_layers_is_not_their_merit() -> None:
    """A residual stream hides the layers behind their input."""
    inputs, added = rows(1), rows(2)
    ours = 100 * inputs + 2 * MOST_APART * added
    assert judge(100 * inputs, ours) is not None
    with pytest.raises(FamilyUnfit):
        judge(100 * inputs + added, 100 * inputs + added + 2 * MOST_APART * rows(3), 100 * inputs)


def middle(folder: Path, family: str, **more: object) -> StageConfig:
    """Return a stage of the later half of a model."""
    home = proof.home(folder)
    entry = home.shelf.import_file(families()[family].path)
    boundaries = entry.model.cuts.boundaries
    run = proof.runs(entry.model.n_layers, (boundaries[len(boundaries) // 2],))[0]
    return replace(home.config(entry, *run, apart=False), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("batch_rows", [64, 3, 1])
@pytest.mark.parametrize("family", ["llama", RECURRENT])
def test_the_processor_agrees_with_itself_whatever_the_steps(tmp_path: Path, family: str, batch_rows: int) -> None:
    config = middle(tmp_path, family, batch_rows=batch_rows)
    model = binding.load_model(config.path)
    check = check_device(model, config)
    binding.load().llama_model_free(model)
    assert check is not None
    assert check.most_apart < 0.02  # the weights of the other copy are arranged otherwise


def test_other_layers_are_refused(tmp_path: Path) -> None:
    """The model that is taken for the device's has other weights than the file."""
    config, other = middle(tmp_path / "a", "llama"), middle(tmp_path / "b", "llama-tied")
    model = binding.load_model(other.path)
    with pytest.raises(FamilyUnfit, match="off by"):
        check_device(model, config)
    binding.load().llama_model_free(model)


def last(folder: Path, family: str) -> StageConfig:
    """Return the last stage of a model that is cut in two."""
    home = proof.home(folder)
    entry = home.shelf.import_file(families()[family].path)
    boundaries = entry.model.cuts.boundaries
    return home.config(entry, *proof.runs(entry.model.n_layers, (boundaries[len(boundaries) // 2],))[-1], apart=False)


@pytest.mark.parametrize("family", ["llama", "llama-tied", RECURRENT])
def test_the_processor_agrees_with_itself_on_the_logits(tmp_path: Path, family: str) -> None:
    config = last(tmp_path, family)
    model = binding.load_model(config.path)
    check = check_head(model, config)
    binding.load().llama_model_free(model)
    assert check is not None
    assert check.most_apart < 0.02


def test_an_output_matrix_that_is_computed_wrongly_is_refused(tmp_path: Path) -> None:
    """The layers are right: only the output matrix of the device's copy differs from the file."""
    config, other = last(tmp_path, "llama"), tmp_path / "other.gguf"
    reversed_weights(Path(config.path), other, "token_embd.weight")  # as stage files call it
    model = binding.load_model(str(other))
    assert check_device(model, config) is not None
    with pytest.raises(FamilyUnfit, match="off by") as refused:
        check_head(model, replace(config, device="Vulkan0", more_devices=("Vulkan1",)))
    binding.load().llama_model_free(model)
    assert refused.value.facts["device"] == "Vulkan1"  # the last device has the output matrix


def test_a_file_that_is_gone_and_a_node_that_is_missing_prove_nothing(tmp_path: Path) -> None:
    config = middle(tmp_path, "llama")
    model = binding.load_model(config.path)
    assert check_device(model, replace(config, path=str(tmp_path / "none.gguf"))) is None
    assert check_device(model, replace(config, traits=replace(config.traits, boundary="no_such_node"))) is None
    binding.load().llama_model_free(model)


@pytest.mark.parametrize("family", [RECURRENT, "falcon-h1"])
def test_a_state_that_is_lost_after_each_step_is_noticed(
    tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = middle(tmp_path, family)
    model = binding.load_model(config.path)
    step, llama = device_check._Probe._step, binding.load()
    probes: list[device_check._Probe] = []  # first that of the device, then that of the processor

    def forgetful(probe: device_check._Probe, start: int, end: int) -> Rows:
        if probe not in probes:
            probes.append(probe)
        if probe is probes[0]:
            llama.llama_memory_clear(llama.llama_get_memory(probe._context), True)
        return step(probe, start, end)

    monkeypatch.setattr(device_check._Probe, "_step", forgetful)
    with pytest.raises(FamilyUnfit, match="off by"):
        check_device(model, config)
    llama.llama_model_free(model)
