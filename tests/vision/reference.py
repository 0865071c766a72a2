"""The reference: llama.cpp with the whole model, and mtmd's own evaluation of a text with pictures."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.llamacpp import binding
from tests.families.home import CELLS
from tests.vision.tiny_models import Rgb

MARKER = b"<__reference__>"
STEP_ROWS = 128
Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Reference:
    """The scores after the prompt and after each token that was then generated greedily.

    n_prompt: rows of the prompt, of which some may have the same position.
    """

    n_prompt: int
    tokens: tuple[int, ...]
    scores: tuple[Scores, ...]


def reference(
    model: Path, projector: Path, text: str, pictures: Sequence[Rgb], n_tokens: int, most_rows: int = 0
) -> Reference:
    """Evaluate a text with mtmd_helper_eval_chunks, then generate. Each MARKER in it stands for a picture."""
    llama, mtmd = binding.load(), binding.load_mtmd()
    with _loaded(model, projector, most_rows) as (context, vision, vocabulary):
        bitmaps = [
            mtmd.mtmd_bitmap_init(
                picture.width, picture.height, (ctypes.c_uint8 * len(picture.data)).from_buffer_copy(picture.data)
            )
            for picture in pictures
        ]
        chunks = mtmd.mtmd_input_chunks_init()
        data = text.encode()
        order = mtmd.mtmd_input_text(data, len(data), True, True)
        some = (mtmd.mtmd_bitmap_p_ctypes * len(bitmaps))(*bitmaps)
        assert not mtmd.mtmd_tokenize(vision, chunks, ctypes.byref(order), some, len(bitmaps))
        past = ctypes.c_int32()
        assert not mtmd.mtmd_helper_eval_chunks(vision, context, chunks, 0, 0, STEP_ROWS, True, ctypes.byref(past))
        n_prompt, n_vocab = mtmd.mtmd_helper_get_n_tokens(chunks), llama.llama_vocab_n_tokens(vocabulary)
        tokens, scores = list[int](), list[Scores]()
        while True:
            row = np.ctypeslib.as_array(llama.llama_get_logits_ith(context, -1), (n_vocab,)).copy()
            scores.append(row)
            if len(scores) > n_tokens:
                break
            tokens.append(int(row.argmax()))
            batch = llama.llama_batch_get_one((ctypes.c_int32 * 1)(tokens[-1]), 1)
            assert not llama.llama_decode(context, batch)
        mtmd.mtmd_input_chunks_free(chunks)
        for bitmap in bitmaps:
            mtmd.mtmd_bitmap_free(bitmap)
    return Reference(n_prompt, tuple(tokens), tuple(scores))


@contextmanager
def _loaded(model: Path, projector: Path, most_rows: int) -> Iterator[tuple[Any, Any, Any]]:
    llama, mtmd = binding.load(), binding.load_mtmd()
    text_model = binding.load_model(str(model))
    params = llama.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = CELLS, STEP_ROWS, STEP_ROWS, 1
    params.n_threads = params.n_threads_batch = 1
    params.flash_attn_type = 1
    context = llama.llama_init_from_model(text_model, params)
    of_vision = mtmd.mtmd_context_params_default()
    of_vision.use_gpu = of_vision.print_timings = of_vision.warmup = False
    of_vision.n_threads, of_vision.media_marker = 1, MARKER
    of_vision.flash_attn_type = int(llama.LLAMA_FLASH_ATTN_TYPE_ENABLED)
    if most_rows:
        of_vision.image_max_tokens = most_rows
    vision = mtmd.mtmd_init_from_file(str(projector).encode(), text_model, of_vision)
    assert vision
    yield context, vision, llama.llama_model_get_vocab(text_model)
    mtmd.mtmd_free(vision)
    llama.llama_free(context)
    llama.llama_model_free(text_model)
