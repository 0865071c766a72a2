"""A stage that runs on MLX: its slots, its KV cache, and the computation of steps with the family's layers."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import mlx.core as mx
import numpy as np

from backends.apple.families.registry import FAMILIES
from backends.apple.step import Cache, Step
from backends.apple.weights import Weights
from backends.contract import (
    DeviceCheck,
    DeviceUnusable,
    FamilyUnfit,
    Hidden,
    KvType,
    Logits,
    OutOfMemory,
    PictureGrid,
    Role,
    Segment,
    StageConfig,
    StageError,
    Tokens,
    tells_out_of_memory,
)
from backends.gguf_weights.cells import Cells
from backends.gguf_weights.stage_file import StageFile
from backends.gguf_weights.states import States
from backends.gguf_weights.step_rows import StepRows
from backends.hidden_state_codec import Rows, bytes_of

PROCESSOR, METAL = "cpu", "Metal"
OUT_OF_MEMORY = "[malloc]"  # in the message of MLX's allocators


class MlxStage:
    """A Stage that runs on MLX. The rows that it returns are valid until the next `forward`.

    work_type: the number type of attention and of the inputs of matrices. None means float16 on Metal and float32 on
    the processor.
    """

    cache_type = mx.float16
    work_type: Any = None

    def __init__(self, config: StageConfig) -> None:
        """Load the layers. Raises StageError."""
        self._config = config
        self.check: DeviceCheck | None = None
        if config.kv is not KvType.F16:
            raise StageError("MLX keeps keys and values in f16 only", "mlx_kv", kv=config.kv.value)
        if len(config.devices) > 1 or config.device_layers or config.processor_experts:
            raise DeviceUnusable("a stage of MLX is on one device", "mlx_one_device")
        if config.batch_rows > config.kv_cells:
            raise StageError(f"{config.kv_cells} cells cannot hold a step of {config.batch_rows}")
        self._device = _device(config.device or PROCESSOR)
        self._failed = ""
        self._type = self.work_type or (mx.float32 if self._on_processor else mx.float16)
        with _told(), mx.stream(self._device):
            self._open(config)

    def _open(self, config: StageConfig) -> None:
        file = StageFile(config.path)
        family = FAMILIES.get(file.architecture)
        if family is None:
            name = file.architecture
            text = f"MLX computes no {name} here"
            raise FamilyUnfit(text, "mlx_family", architecture=name, device=config.device)
        weights = Weights(file, self._type)
        self._decoder = family(weights, config)
        sizes = self._decoder.sizes
        if sizes.n_layers != len(config.layers) or sizes.width != config.width:
            raise StageError(f"the file has {sizes.n_layers} layers of width {sizes.width}")
        file.require_all_used(sizes.n_layers)
        self._rows = StepRows(config, _no_pictures)
        self._cells = Cells(config.slots, config.kv_cells, apart=config.apart)
        self._cache = Cache(self._decoder.shapes, config.kv_cells, self.cache_type)
        self._states = States(config.slots, config.keep)
        self._is_recurrent = None in self._decoder.shapes
        self._n_weight_bytes = weights.n_bytes

    @property
    def n_vocab(self) -> int:
        """Return the number of logits per row."""
        return self._decoder.n_vocab

    @property
    def device_bytes(self) -> int:
        """Return the bytes that the stage uses on its graphics card, or 0 if it runs on the processor."""
        if self._on_processor:
            return 0
        return self._n_weight_bytes + self._cache.n_bytes + sum(self.device_work.values())

    @property
    def device_work(self) -> dict[str, int]:
        """Return, by device name, the bytes that the stage uses beyond weights and KV cache."""
        if self._on_processor:
            return {}
        most = mx.get_peak_memory()
        return {self._config.device: max(0, most - self._n_weight_bytes - self._cache.n_bytes)}

    @property
    def _on_processor(self) -> bool:
        return bool(self._device == mx.cpu)

    @property
    def vocabulary(self) -> str:
        """Return the path of the file whose vocabulary grammars need, or "" if it is unknown."""
        config = self._config
        return config.path if config.role is Role.WHOLE else config.embedding_path

    def forward(self, batch: Tokens | Hidden, due: Sequence[int], n_scored: Sequence[int] = ()) -> Hidden | Logits:
        rows = self._rows.of(batch)
        if self._failed:
            raise StageError(f"an earlier step failed in MLX: {self._failed}", "mlx_failed", words=self._failed)
        segments = batch.segments
        held = {segment.slot: self._cells.length(segment.slot) for segment in segments}
        states = self._states.copy(list(held)) if self._is_recurrent else {}
        try:
            for segment in segments:
                self._cells.extend(segment)
            with _told(), mx.stream(self._device):
                scored = n_scored or (1,) * len(due)
                return self._compute(segments, rows, due, scored, is_embedding=isinstance(batch, Tokens))
        except StageError:
            for slot, length in held.items():
                self._cells.cut_back(slot, length)
            self._states.restore(states)
            raise

    def _compute(
        self,
        segments: tuple[Segment, ...],
        rows: Rows,
        due: Sequence[int],
        n_scored: Sequence[int],
        *,
        is_embedding: bool,
    ) -> Hidden | Logits:
        if self._is_recurrent:
            self._states.before(segments)
        step = Step(segments, self._cells, self._cache, self._states, self._type)
        state = mx.array(rows)
        if is_embedding:
            state = self._decoder.enter(state)
        for index in range(len(self._config.layers)):
            state = self._decoder.layer(index, state, step)
        due_segments = tuple(segments[index] for index in due)
        has_head = self._config.role.has_head
        if has_head and due_segments:
            ends = list(accumulate(segment.n_tokens for segment in segments))
            scored = [row for i, n in zip(due, n_scored, strict=True) for row in range(ends[i] - n, ends[i])]
            state = self._decoder.leave(state[mx.array(scored)])
        try:
            mx.eval(state, *self._cache.parts(), *self._states.of_slots(segments))
        except Exception as error:  # the cache may be half written
            self._failed = str(error).partition("\n")[0]
            raise
        if not has_head:
            return Hidden(segments, _values(state))
        return Logits(due_segments, _values(state)) if due_segments else Logits((), memoryview(b""))

    def place(self, batch: Tokens | Hidden) -> int:
        """Return the number of rows of a step. Raises StageError if the step does not fit."""
        return len(self._rows.of(batch))

    def forget(self, slot: int, keep: int = 0) -> None:
        if self._is_recurrent:
            self._states.cut_back(slot, keep)
        self._cells.cut_back(slot, keep)

    def slot_bytes(self, slot: int) -> int:
        return 0  # its states are not kept: every version of MLX may compute other bits

    def read_slot(self, slot: int, room: mmap.mmap) -> None:
        raise StageError("states of MLX are not kept")

    def write_slot(self, slot: int, state: mmap.mmap, positions: int) -> bool:
        return False

    def lay_out(self, slot: int, grids: Sequence[PictureGrid]) -> None:
        """Raise StageError if there are pictures, which this engine does not support."""
        if grids:
            raise _no_pictures()

    def share(self, most: int) -> int:
        return max(1, min(most, self._config.threads))  # MLX decides itself how many threads compute

    def close(self) -> None:
        """Release the memory, including MLX's cache of freed buffers."""
        self.__dict__.pop("_decoder", None)
        self.__dict__.pop("_cache", None)
        mx.clear_cache()


def _no_pictures() -> StageError:
    return StageError("MLX computes no pictures here", "mlx_pictures")


def _values(rows: Any) -> memoryview:
    return bytes_of(np.array(rows, dtype=np.float32))


def _device(name: str) -> Any:
    """Return MLX's device for this name: cpu or Metal. Raises DeviceUnusable if this build of MLX lacks it."""
    if name == PROCESSOR:
        return mx.cpu
    if name == METAL and mx.metal.is_available():
        return mx.gpu
    why = "this build of MLX has no such device"
    raise DeviceUnusable(f"MLX cannot use {name}: {why}", "mlx_device", device=name, why=why)


@contextmanager
def _told() -> Iterator[None]:
    """Convert errors of MLX to StageError or OutOfMemory."""
    try:
        yield
    except (RuntimeError, ValueError, MemoryError) as error:
        words = str(error).partition("\n")[0]
        if isinstance(error, MemoryError) or OUT_OF_MEMORY in words or tells_out_of_memory(words):
            raise OutOfMemory(words) from None
        raise StageError(f"MLX failed: {words}", "mlx_failed", words=words) from None
