"""The check of another engine with a stage's own layers: it must compute a few rows as llama.cpp does on the processor.

The Guide's known answer covers one family in one number format. This check covers the stage that is about to compute.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from backends.contract import (
    LLAMACPP,
    DeviceCheck,
    Hidden,
    Logits,
    Role,
    Segment,
    Stage,
    StageConfig,
    StageError,
    Tokens,
)
from backends.hidden_state_codec import VALUE, Rows
from backends.llamacpp import binding, device_check
from backends.llamacpp.device_check import HEAD_DECODED, HEAD_ROWS, N_DECODED, PROMPT_ROWS, STEP_ROWS


class ComparableStage(Stage, Protocol):
    """A stage that knows the size of its vocabulary, if it has the output matrix."""

    @property
    def n_vocab(self) -> int: ...


def compare_stage(stage: ComparableStage, config: StageConfig) -> DeviceCheck | None:
    """Compare an open stage with llama.cpp, which reads its file in place. Return None if that is impossible.

    The first stage of a pipeline takes only tokens, so it is not compared. Slot 0 is empty afterwards.

    Raises FamilyUnfit if the results differ too much.
    """
    if config.role is Role.FIRST or config.batch_rows < STEP_ROWS:
        return None
    try:
        model = binding.load_model(config.path, mapped=True)
    except StageError:
        return None
    has_head = config.role.has_head
    plain = replace(config, engine=LLAMACPP, device="", library="")
    try:
        expected = device_check.known_rows(model, plain, None if has_head else len(config.layers) - 1)
    finally:
        binding.load().llama_model_free(model)
    if expected is None:
        return None
    try:
        ours = _computed(stage, config)
    finally:
        stage.forget(0)
    if has_head:
        parts = (slice(HEAD_ROWS), slice(HEAD_ROWS, None))
        most_apart = device_check.MOST_APART_LOGITS
        return device_check.judge(expected, ours, device=config.engine, parts=parts, most_apart=most_apart)
    return device_check.judge(expected, ours, device_check.inputs_of(config), device=config.engine)


def _computed(stage: ComparableStage, config: StageConfig) -> Rows:
    """Return the hidden states after the stage, or its logits: of a prompt in steps, then of single rows."""
    if config.role.has_head:
        steps = device_check.steps_of(HEAD_ROWS, HEAD_ROWS, HEAD_DECODED)
    else:
        steps = device_check.steps_of(STEP_ROWS, PROMPT_ROWS, N_DECODED)
    return np.concatenate([_step(stage, config, positions) for positions in steps])


def _step(stage: ComparableStage, config: StageConfig, positions: range) -> Rows:
    n_rows = len(positions)
    segments = (Segment(0, n_rows, positions.start),)
    due, n_scored = ([0], [n_rows]) if config.role.has_head else ([], [])
    batch: Tokens | Hidden
    if config.role is Role.WHOLE:
        batch = Tokens(segments, device_check.tokens_of(positions, stage.n_vocab))
    else:
        rows = np.ascontiguousarray(device_check.inputs_of(config)[positions.start : positions.stop]).reshape(-1)
        batch = Hidden(segments, rows.view(np.uint8).data)
    out = stage.forward(batch, due, n_scored)
    width = stage.n_vocab if isinstance(out, Logits) else config.width
    return np.frombuffer(out.rows, VALUE).reshape(n_rows, width).copy()
