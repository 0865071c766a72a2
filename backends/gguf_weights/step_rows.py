"""The input rows of a stage's first layer: embeddings of token ids, or hidden states from another stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from backends.contract import Hidden, Role, StageConfig, StageError, Tokens
from backends.gguf_weights.block_types import unpack
from backends.gguf_weights.stage_file import StageFile
from backends.hidden_state_codec import VALUE, Rows


class StepRows:
    """A converter from a step to its input rows. It reads only the embeddings of tokens that occur."""

    def __init__(self, config: StageConfig, no_pictures: Callable[[], StageError]) -> None:
        """Open the token embedding if the stage needs it. Raises StageError.

        no_pictures: creates the error to raise for pictures, which these engines do not support.
        """
        self._config, self._no_pictures = config, no_pictures
        self._embedding = None
        if config.role in (Role.FIRST, Role.WHOLE):
            path = config.path if config.role is Role.WHOLE else config.embedding_path
            self._embedding = StageFile(path).tensor("token_embd.weight", (-1, config.width))

    def of(self, batch: Tokens | Hidden) -> Rows:
        """Return the input rows of a step: float32 `[n, width]`. Raises StageError if the step is invalid."""
        config = self._config
        n_rows = sum(segment.n_tokens for segment in batch.segments)
        if n_rows > config.batch_rows or any(not 0 <= each.slot < config.slots for each in batch.segments):
            raise StageError(f"a step of {n_rows} rows is beyond the room of this stage")
        if batch.sees_all:
            raise self._no_pictures()
        if isinstance(batch, Tokens):
            if self._embedding is None:
                raise StageError("token ids where hidden states were expected")
            ids = np.asarray(batch.ids, dtype=np.int64)
            if len(ids) != n_rows:
                raise StageError(f"{len(ids)} token ids for {n_rows} rows")
            return self._looked_up(ids)
        if self._embedding is not None:
            raise StageError("hidden states where token ids were expected")
        values = np.frombuffer(batch.rows, dtype=VALUE)
        if len(values) != n_rows * config.width:
            raise StageError(f"{len(values)} values for {n_rows} rows of {config.width}")
        return np.array(values.reshape(n_rows, config.width))

    def _looked_up(self, ids: np.ndarray[Any, np.dtype[np.int64]]) -> Rows:
        """Return the embeddings of these tokens. Raises StageError for ids of pictures and unknown tokens."""
        assert self._embedding is not None
        if (ids < 0).any():
            raise self._no_pictures()
        if (ids >= self._embedding.shape[0]).any():
            raise StageError(f"token ids beyond the {self._embedding.shape[0]} of the vocabulary")
        return unpack(self._embedding.blocks[ids], self._embedding.kind)
