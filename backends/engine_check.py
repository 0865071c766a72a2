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
    has_head = config.role.has_head
    step_rows, n_prompt, n_decoded = STEP_ROWS, PROMPT_ROWS, N_DECODED
    if has_head:
        step_rows, n_prompt, n_decoded = HEAD_ROWS, HEAD_ROWS, HEAD_DECODED
    starts = [*range(0, n_prompt, step_rows), *range(n_prompt, n_prompt + n_decoded)]
    ends = [*starts[1:], n_prompt + n_decoded]
    rows = [_step(stage, config, start, end) for start, end in zip(starts, ends, strict=True)]
    return np.concatenate(rows)


def _step(stage: ComparableStage, config: StageConfig, start: int, end: int) -> Rows:
    segments = (Segment(0, end - start, start),)
    due, n_scored = ([0], [end - start]) if config.role.has_head else ([], [])
    batch: Tokens | Hidden
    if config.role is Role.WHOLE:
        batch = Tokens(segments, [7 * index % stage.n_vocab for index in range(start + 1, end + 1)])
    else:
        rows = np.ascontiguousarray(device_check.inputs_of(config)[start:end]).reshape(-1)
        batch = Hidden(segments, rows.view(np.uint8).data)
    out = stage.forward(batch, due, n_scored)
    width = stage.n_vocab if isinstance(out, Logits) else config.width
    return np.frombuffer(out.rows, VALUE).reshape(end - start, width).copy()
