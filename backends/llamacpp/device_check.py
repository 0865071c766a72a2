"""The check of a device with a stage's own layers: a few rows must come out there as on the processor.

The Guide's known answer (backends/known_answer.py) covers one family in one number format. This check covers the
family, shapes and number formats of the stage that is about to compute.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

from backends.contract import DeviceCheck, FamilyUnfit, KvType, Role, Segment, StageConfig, StageError
from backends.hidden_state_codec import VALUE, Rows
from backends.llamacpp import binding
from backends.llamacpp.stage import Batch, Boundary, LlamaStage

# Hybrid models have an attention layer among the first eight, and models with experts have begun to use them.
MOST_LAYERS = 8
# A prompt in two steps, then single tokens. The computation stops early after each, so a state that was not written
# back shows in the next one.
PROMPT_ROWS, STEP_ROWS, N_DECODED = 16, 8, 8
CELLS = 256
# A typical row's root mean square difference from the processor, relative to the spread of what the layers add. See
# docs/engines.md for what was seen on a sound device. Rows that have nothing in common differ by 1.4.
MOST_APART = 0.35


def open_stage(config: StageConfig) -> LlamaStage:
    """Open a stage and, if its configuration requests it, compare its device with the processor. Raises StageError."""
    stage = LlamaStage(config)
    if config.device and config.compared:
        try:
            stage.check = check_device(stage.model, config)
        except StageError:
            stage.close()
            raise
    return stage


def check_device(model: Any, config: StageConfig) -> DeviceCheck | None:
    """Compare a device's results with the processor's. Return None if the comparison is impossible.

    model: the stage's file, opened on the device.

    Raises FamilyUnfit if the device computes these layers wrongly.
    """
    ours = _rows(model, config, on_device=True)
    try:
        reference = binding.load_model(config.path, mapped=True)
    except StageError:
        return None
    try:
        expected = _rows(reference, config, on_device=False)
    finally:
        binding.load().llama_model_free(reference)
    if ours is None or expected is None:
        return None
    inputs = None if config.role is Role.WHOLE else _inputs(config)
    return judge(expected, ours, inputs)


def judge(expected: Rows, ours: Rows, inputs: Rows | None = None) -> DeviceCheck | None:
    """Compare the rows of a device with those of the processor. Return None if the processor's rows are unusable.

    inputs: the input of the layers, which is not their merit. None if it is unknown.

    Raises FamilyUnfit if the typical row of a step differs too much, or the typical one of those computed one by one,
    for which devices have code of their own. A row may differ for a good reason: where two experts are nearly equal,
    rounding decides which of them computes.
    """
    if not np.isfinite(expected).all():
        return None  # the file is at fault
    if not np.isfinite(ours).all():
        raise FamilyUnfit("the device computes values that are not finite", "device_not_finite")
    added = expected if inputs is None else expected - inputs
    spread = added.std(axis=1)
    if not spread.all():
        return None
    each = np.sqrt(np.mean(np.square(ours - expected), axis=1)) / spread
    parts = (each[:STEP_ROWS], each[STEP_ROWS:PROMPT_ROWS], each[PROMPT_ROWS:])
    apart = max(float(np.median(part)) for part in parts)
    if apart > MOST_APART:
        percent = str(round(100 * apart, 1))
        raise FamilyUnfit(f"the device's results are off by {percent} %", "device_apart", percent=percent)
    return DeviceCheck(round(apart, 5), round(float(each.max()), 5))


def _inputs(config: StageConfig) -> Rows:
    """Return the same random hidden states in every process."""
    chance = np.random.default_rng(config.width)
    return chance.standard_normal((PROMPT_ROWS + N_DECODED, config.width)).astype(VALUE)


def _rows(model: Any, config: StageConfig, *, on_device: bool) -> Rows | None:
    """Return the hidden states after the first layers of a model, or None if they cannot be computed."""
    try:
        with closing(_Probe(model, config, on_device=on_device)) as probe:
            return probe.rows()
    except StageError:
        return None  # the model has no such node, or there is too little memory for a second context


class _Probe:
    """The first layers of a model in a small context of their own."""

    def __init__(self, model: Any, config: StageConfig, *, on_device: bool) -> None:
        """Create the context. Raises StageError."""
        llama = self._llama = binding.load()
        self._config, self._context = config, None
        self._step_rows = min(STEP_ROWS, config.batch_rows)
        n_on_devices = sum(config.device_layers) or len(config.layers)  # the processor computes those before
        last = len(config.layers) - n_on_devices + min(MOST_LAYERS, n_on_devices) - 1
        self._boundary = Boundary(config.traits.boundary, last, by_name=True)
        self._vocabulary = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
        planes = 1 if config.role is Role.WHOLE else binding.position_planes(model)
        self._batch = Batch(llama, self._step_rows, 1, planes)
        params = llama.llama_context_default_params()
        params.n_ctx, params.n_seq_max = CELLS, 1
        params.n_batch = params.n_ubatch = self._step_rows
        params.n_threads = params.n_threads_batch = config.threads
        params.flash_attn_type = int(config.flash_attention)
        if config.kv is KvType.Q8_0:
            params.type_k = params.type_v = llama.GGML_TYPE_Q8_0
        params.offload_kqv = on_device
        params.op_offload = on_device and not config.uses_processor
        params.cb_eval = self._boundary.callback
        self._context = llama.llama_init_from_model(model, params)
        if not self._context:
            raise StageError(f"there is no room for a check: {binding.take_log()}")

    def rows(self) -> Rows:
        """Compute all steps. Raises StageError."""
        single = range(PROMPT_ROWS, PROMPT_ROWS + N_DECODED)
        starts = [*range(0, PROMPT_ROWS, self._step_rows), *single]
        return np.concatenate(
            [self._step(start, end) for start, end in zip(starts, [*starts[1:], single.stop], strict=True)]
        )

    def _step(self, start: int, end: int) -> Rows:
        config, n_rows = self._config, end - start
        self._batch.place((Segment(0, n_rows, start),))
        if config.role is Role.WHOLE:
            self._batch.tokens(
                np.array([7 * index % self._vocabulary for index in range(start + 1, end + 1)], np.int32)
            )
        else:
            self._batch.hidden(_inputs(config)[start:end].reshape(-1))
        rows = np.empty((n_rows, config.width), dtype=VALUE)
        self._batch.flag_all(n_rows)
        self._boundary.expect(rows)
        if code := self._llama.llama_decode(self._context, self._batch.struct):
            raise StageError(f"llama.cpp failed with {code}: {binding.take_log()}")
        self._boundary.came()
        return rows

    def close(self) -> None:
        if self._context:
            self._llama.llama_free(self._context)
        self._context = None
