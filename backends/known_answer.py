"""The test of a device with a small model, which must produce the same answer there as on the processor."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np

from backends.contract import LLAMACPP, KnownAnswer, Layers, Logits, Role, Segment, StageConfig, Tokens
from backends.hidden_state_codec import VALUE, Rows
from backends.llamacpp import binding
from backends.worker.stage_runner import Engine, open_engine

PROMPT, CHUNK, N_DECODED = 24, 8, 16
CELLS = 256
MOST_APART = 0.05  # root mean square of the difference to the spread of the scores; 0.012 was seen on a sound device
NEAR_TIE = 0.3  # scores closer than this share of the spread may be swapped by rounding


def compare(path: str, device: str, library: str, engine: str = LLAMACPP) -> KnownAnswer:
    """Compute an answer on the processor and twice on a device, and compare the scores. Raises StageError.

    path: a whole model.
    library: the path of the device's back end, or the folder of another engine.
    engine: the engine that computes on the device.
    """
    expected = _scores(_config(path, "", ""), None)
    tokens = [int(row.argmax()) for row in expected]
    config = replace(_config(path, device, library), engine=engine)
    return judge(expected, _scores(config, tokens), _scores(config, tokens))


def judge(expected: list[Rows], first: list[Rows], again: list[Rows]) -> KnownAnswer:
    """Compare the scores of a device, computed twice, with those of the processor. Each row has `n_vocab` scores."""
    if not all(np.isfinite(row).all() for row in first):
        return KnownAnswer("not_finite")
    apart = round(max(_apart(row, sound) for row, sound in zip(first, expected, strict=True)), 5)
    if apart > MOST_APART:
        return KnownAnswer("apart", apart)
    if not all(_agrees(row, sound) for row, sound in zip(first, expected, strict=True)):
        return KnownAnswer("tokens", apart)
    if not all(np.array_equal(*rows) for rows in zip(first, again, strict=True)):
        return KnownAnswer("unsteady", apart)
    return KnownAnswer("", apart)


def _apart(row: Rows, expected: Rows) -> float:
    return float(np.sqrt(np.mean(np.square(row - expected))) / expected.std())


def _agrees(row: Rows, expected: Rows) -> bool:
    """Return whether the device's best token is also the best, or nearly the best, according to `expected`."""
    ours, theirs = int(row.argmax()), int(expected.argmax())
    return ours == theirs or expected[theirs] - expected[ours] < NEAR_TIE * expected.std()


def _scores(config: StageConfig, tokens: list[int] | None) -> list[Rows]:
    """Return the scores after a prompt and after each token of an answer.

    tokens: the answer. If None, each of its tokens is the one with the best score.
    """
    with closing(open_engine(config)) as stage:
        prompt = [3 + 7 * index % (stage.n_vocab - 3) for index in range(PROMPT)]
        rows: list[Rows] = []
        for start in range(0, PROMPT, CHUNK):
            out = _step(stage, prompt[start : start + CHUNK], start)
        rows.append(out)
        for index in range(N_DECODED):
            token = int(rows[-1].argmax()) if tokens is None else tokens[index]
            rows.append(_step(stage, [token], PROMPT + index))
        return rows


def _step(stage: Engine, ids: list[int], pos: int) -> Rows:
    out = stage.forward(Tokens((Segment(0, len(ids), pos),), ids), [0])
    assert isinstance(out, Logits)
    return np.frombuffer(out.rows, VALUE).copy()


def _config(path: str, device: str, library: str) -> StageConfig:
    llama, model = binding.load(), binding.load_model(path)
    try:
        n_layers, width = llama.llama_model_n_layer(model), llama.llama_model_n_embd(model)
    finally:
        llama.llama_model_free(model)
    return StageConfig(
        engine=LLAMACPP,
        path=path,
        embedding_path=path,
        role=Role.WHOLE,
        layers=Layers(0, n_layers),
        width=width,
        slots=1,
        kv_cells=CELLS,
        batch_rows=CHUNK,
        threads=1,
        device=device,
        library=library,
    )
