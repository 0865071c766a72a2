"""The check of a device with a stage's own layers: it must compute a few rows as the processor does.

The Guide's known answer (backends/known_answer.py) covers one family in one number format. This check covers the
family, shapes and number formats of the stage that is about to compute: on each of its devices, the first layers; and
on the last one, the output matrix, if the stage has it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from backends.contract import DeviceCheck, FamilyUnfit, KvType, Role, Segment, StageConfig, StageError
from backends.hidden_state_codec import VALUE, Rows
from backends.llamacpp import binding, devices
from backends.llamacpp.stage import Batch, Boundary, LlamaStage

# Hybrid models have an attention layer among the first eight, and models with experts have begun to use them.
MOST_LAYERS = 8
# A prompt in two steps, then single tokens. The computation stops early after each, so a state that was not written
# back shows in the next one.
PROMPT_ROWS, STEP_ROWS, N_DECODED = 16, 8, 8
# Logits need all layers, of which the processor reads each for each step: few steps, the first of several rows.
HEAD_ROWS, HEAD_DECODED = 4, 2
CELLS = 256
# A typical row's root mean square difference from the processor, relative to the spread of what the layers add. See
# docs/engines.md for what was seen on a sound device. Rows that have nothing in common differ by 1.4.
MOST_APART = 0.35
# The same for logits, which hold the rounding of all layers.
MOST_APART_LOGITS = 0.7


def open_stage(config: StageConfig) -> LlamaStage:
    """Open a stage and, if its configuration requests it, compare its devices with the processor. Raises StageError."""
    if not config.device or not config.compared:
        return LlamaStage(config)
    checks = [check_alone(config, index) for index in range(1, len(config.devices))]
    stage = LlamaStage(config)
    try:
        checks.append(check_device(stage.model, config))
        if config.role.has_head:
            checks.append(check_head(stage.model, config))
    except StageError:
        stage.close()
        raise
    done = [check for check in checks if check is not None]
    if len(done) == len(checks):
        stage.check = DeviceCheck(max(each.apart for each in done), max(each.most_apart for each in done))
    return stage


def check_alone(config: StageConfig, index: int) -> DeviceCheck | None:
    """Compare one of several devices with the processor, before the stage needs its memory.

    It computes the first layers of the file, as many as it will hold of any, up to MOST_LAYERS. Returns None if the
    comparison is impossible. Raises StageError, which is FamilyUnfit if the device computes these layers wrongly.
    """
    if config.library:
        binding.load_backend(Path(config.library))
    name, n_layers = config.devices[index], len(config.layers)
    n_first = min(MOST_LAYERS, config.device_layers[index])
    begins_at = n_layers - sum(config.device_layers[index:])
    n_experts = n_first if begins_at < config.processor_experts else 0  # it has no room for experts
    alone = replace(config, device=name, more_devices=(), device_layers=(), processor_experts=n_experts)
    address = devices.device(name).address
    on = binding.LayerDevices((address,), n_layers=n_layers, processor_experts=n_experts, n_first=n_first)
    try:
        model = binding.load_model(config.path, on, mapped=True)
    except FamilyUnfit:
        raise
    except StageError:
        return None
    try:
        return check_device(model, alone, n_first)
    finally:
        binding.load().llama_model_free(model)


def check_device(model: Any, config: StageConfig, n_layers: int = 0) -> DeviceCheck | None:
    """Compare a device's results with the processor's. Return None if the comparison is impossible.

    model: the stage's file, opened on the device. n_layers: compute so many layers; 0: as many as are usual.

    Raises FamilyUnfit if the device computes these layers wrongly.
    """
    n_on_device = config.device_layers[0] if config.device_layers else len(config.layers)
    # the processor computes those before
    n_before = len(config.layers) - sum(config.device_layers) if config.device_layers else 0
    last = n_before + (n_layers or min(MOST_LAYERS, n_on_device)) - 1
    both = _both(model, config, last)
    if both is None:
        return None
    inputs = None if config.role is Role.WHOLE else inputs_of(config)
    return judge(*both, inputs, device=config.device)


def check_head(model: Any, config: StageConfig) -> DeviceCheck | None:
    """Compare the logits of a stage that has the output matrix. Return None if the comparison is impossible.

    model: the stage's file, opened on its devices. The output matrix is on the last one.

    Raises FamilyUnfit if they are wrong.
    """
    both = _both(model, config, None)
    if both is None:
        return None
    parts = (slice(HEAD_ROWS), slice(HEAD_ROWS, None))
    device = (config.device, *config.more_devices)[-1]
    return judge(*both, device=device, parts=parts, most_apart=MOST_APART_LOGITS)


def _both(model: Any, config: StageConfig, last: int | None) -> tuple[Rows, Rows] | None:
    """Return the rows of the processor and those of the device, or None if one of them cannot compute them."""
    ours = _rows(model, config, last, on_device=True)
    if ours is None:
        return None
    try:
        reference = binding.load_model(config.path, mapped=True)
    except StageError:
        return None
    try:
        expected = _rows(reference, config, last, on_device=False)
    finally:
        binding.load().llama_model_free(reference)
    return None if expected is None else (expected, ours)


PARTS = (slice(STEP_ROWS), slice(STEP_ROWS, PROMPT_ROWS), slice(PROMPT_ROWS, None))


def judge(
    expected: Rows,
    ours: Rows,
    inputs: Rows | None = None,
    *,
    device: str = "",
    parts: Sequence[slice] = PARTS,
    most_apart: float = MOST_APART,
) -> DeviceCheck | None:
    """Compare the rows of a device with those of the processor. Return None if the processor's rows are unusable.

    inputs: the input of the layers, which is not their merit. None if it is unknown. parts: the rows of the different
    kinds of steps.

    Raises FamilyUnfit if the typical row of a step differs too much, or the typical row of those that are computed one
    by one, for which devices have separate code. A row may differ for a good reason: where two experts are nearly
    equal, rounding decides which of them computes.
    """
    if not np.isfinite(expected).all():
        return None  # the file is at fault
    if not np.isfinite(ours).all():
        raise FamilyUnfit("the device computes values that are not finite", "device_not_finite", device=device)
    added = expected if inputs is None else expected - inputs
    spread = added.std(axis=1)
    if not spread.all():
        return None
    each = np.sqrt(np.mean(np.square(ours - expected), axis=1)) / spread
    apart = max(float(np.median(each[part])) for part in parts)
    if apart > most_apart:
        percent = str(round(100 * apart, 1))
        raise FamilyUnfit(
            f"the device's results are off by {percent} %", "device_apart", percent=percent, device=device
        )
    return DeviceCheck(round(apart, 5), round(float(each.max()), 5))


def known_rows(model: Any, config: StageConfig, last: int | None) -> Rows | None:
    """Return the processor's hidden states after a layer, or its logits if `last` is None.

    model: the stage's file, opened on the processor. The result is None if the rows cannot be computed.
    """
    return _rows(model, config, last, on_device=False)


def steps_of(step_rows: int, n_prompt: int, n_decoded: int) -> list[range]:
    """Return the positions of each step: those of a prompt, a few at a time, and then single ones."""
    prompt = [range(start, min(start + step_rows, n_prompt)) for start in range(0, n_prompt, step_rows)]
    return [*prompt, *(range(position, position + 1) for position in range(n_prompt, n_prompt + n_decoded))]


def tokens_of(positions: range, n_vocab: int) -> list[int]:
    """Return the tokens that a whole model is given at these positions."""
    return [7 * (position + 1) % n_vocab for position in positions]


def inputs_of(config: StageConfig) -> Rows:
    """Return the same random hidden states in every process."""
    chance = np.random.default_rng(config.width)
    return chance.standard_normal((PROMPT_ROWS + N_DECODED, config.width)).astype(VALUE)


def _rows(model: Any, config: StageConfig, last: int | None, *, on_device: bool) -> Rows | None:
    """Return the hidden states after a layer of a model, or the logits (None); None if they cannot be computed."""
    try:
        with closing(_Probe(model, config, last, on_device=on_device)) as probe:
            return probe.rows()
    except StageError:
        return None  # the model has no such node, or there is too little memory for a second context


class _Probe:
    """The first layers of a model, or all with the output matrix, in a small context of their own."""

    def __init__(self, model: Any, config: StageConfig, last: int | None, *, on_device: bool) -> None:
        """Create the context. last: the last layer to compute; None: the output matrix. Raises StageError."""
        llama = self._llama = binding.load()
        self._config, self._context = config, None
        most_rows, self._n_prompt, self._n_decoded = STEP_ROWS, PROMPT_ROWS, N_DECODED
        self._boundary = None
        if last is None:
            most_rows, self._n_prompt, self._n_decoded = HEAD_ROWS, HEAD_ROWS, HEAD_DECODED
        else:
            self._boundary = Boundary(config.traits.boundary, last, by_name=True)
        self._step_rows = min(most_rows, config.batch_rows)
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
        if self._boundary is not None:
            params.cb_eval = self._boundary.callback
        self._context = llama.llama_init_from_model(model, params)
        if not self._context:
            raise StageError(f"there is no room for a check: {binding.take_log()}")

    def rows(self) -> Rows:
        """Compute all steps. Raises StageError."""
        steps = steps_of(self._step_rows, self._n_prompt, self._n_decoded)
        return np.concatenate([self._step(step.start, step.stop) for step in steps])

    def _step(self, start: int, end: int) -> Rows:
        config, n_rows = self._config, end - start
        self._batch.place((Segment(0, n_rows, start),))
        if config.role is Role.WHOLE:
            self._batch.tokens(np.array(tokens_of(range(start, end), self._vocabulary), np.int32))
        else:
            self._batch.hidden(inputs_of(config)[start:end].reshape(-1))
        rows = np.empty((n_rows, config.width), dtype=VALUE)
        self._batch.flag_all(n_rows)
        if self._boundary is not None:
            self._boundary.expect(rows)
        if code := self._llama.llama_decode(self._context, self._batch.struct):
            raise StageError(f"llama.cpp failed with {code}: {binding.take_log()}")
        if self._boundary is None:
            return self._logits(n_rows)
        self._boundary.came()
        return rows

    def _logits(self, n_rows: int) -> Rows:
        start = ctypes.addressof(self._llama.llama_get_logits(self._context).contents)
        count = n_rows * self._vocabulary
        return np.frombuffer((ctypes.c_float * count).from_address(start), VALUE).reshape(n_rows, -1).copy()

    def close(self) -> None:
        if self._context:
            self._llama.llama_free(self._context)
        self._context = None
