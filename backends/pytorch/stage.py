"""A stage on PyTorch: the slots, the cache of keys and values, and the steps through the layers of a family."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import numpy as np
import torch

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
from backends.pytorch.families.registry import FAMILIES
from backends.pytorch.step import Cache, Step
from backends.pytorch.weights import Weights

PROCESSOR = "cpu"
CPU_OUT_OF_MEMORY = "can't allocate memory"  # in the message of torch's allocator of main memory


class TorchStage:
    """A Stage that runs on PyTorch. The rows that it returns are valid until the next `forward`."""

    cache_type = torch.float16

    def __init__(self, config: StageConfig) -> None:
        """Load the layers. Raises StageError."""
        self._config = config
        self.check: DeviceCheck | None = None
        if config.kv is not KvType.F16:
            raise StageError("PyTorch keeps keys and values in f16 only", "torch_kv", kv=config.kv.value)
        if len(config.devices) > 1 or config.device_layers or config.processor_experts:
            raise DeviceUnusable("a stage of PyTorch is on one device", "torch_one_device")
        if config.batch_rows > config.kv_cells:
            raise StageError(f"{config.kv_cells} cells cannot hold a step of {config.batch_rows}")
        self._device = _device(config.device or PROCESSOR)
        self._used = config.threads
        self.share(config.threads)
        with _told():
            self._open(config)

    def _open(self, config: StageConfig) -> None:
        file = StageFile(config.path)
        family = FAMILIES.get(file.architecture)
        if family is None:
            name = file.architecture
            text = f"PyTorch computes no {name} here"
            raise FamilyUnfit(text, "torch_family", architecture=name, device=config.device)
        weights = Weights(file, self._device)
        self._decoder = family(weights, config)
        sizes = self._decoder.sizes
        if sizes.n_layers != len(config.layers) or sizes.width != config.width:
            raise StageError(f"the file has {sizes.n_layers} layers of width {sizes.width}")
        file.require_all_used(sizes.n_layers)
        self._rows = StepRows(config, _no_pictures)
        self._cells = Cells(config.slots, config.kv_cells, apart=config.apart)
        self._cache = Cache(self._decoder.shapes, config.kv_cells, self.cache_type, self._device)
        self._states = States(config.slots, config.keep)
        self._is_recurrent = None in self._decoder.shapes
        self._n_weight_bytes = weights.n_bytes

    @property
    def n_vocab(self) -> int:
        """Return the number of logits per row."""
        return self._decoder.n_vocab

    @property
    def device_bytes(self) -> int:
        """Return the memory that the stage takes on its device, or 0 if the processor computes."""
        if self._device.type == PROCESSOR:
            return 0
        return self._n_weight_bytes + self._cache.n_bytes + sum(self.device_work.values())

    @property
    def device_work(self) -> dict[str, int]:
        """Return the memory that the stage takes on its device besides weights and KV cache."""
        if self._device.type != "cuda":
            return {}
        reserved = torch.cuda.max_memory_reserved(self._device)
        return {self._config.device: max(0, reserved - self._n_weight_bytes - self._cache.n_bytes)}

    @property
    def vocabulary(self) -> str:
        """Return the path of the file with the vocabulary for grammars, or "" if it is unknown."""
        config = self._config
        return config.path if config.role is Role.WHOLE else config.embedding_path

    def forward(self, batch: Tokens | Hidden, due: Sequence[int], n_scored: Sequence[int] = ()) -> Hidden | Logits:
        rows = self._rows.of(batch)
        segments = batch.segments
        held = {segment.slot: self._cells.length(segment.slot) for segment in segments}
        states = self._states.copy(list(held)) if self._is_recurrent else {}
        try:
            for segment in segments:
                self._cells.extend(segment)
            with _told():
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
        step = Step(segments, self._cells, self._cache, self._states, self._device)
        with torch.inference_mode():
            state = torch.from_numpy(rows).to(self._device)
            if is_embedding:
                state = self._decoder.enter(state)
            for index in range(len(self._config.layers)):
                state = self._decoder.layer(index, state, step)
            if not self._config.role.has_head:
                return Hidden(segments, _values(state))
            ends = list(accumulate(segment.n_tokens for segment in segments))
            due_segments = tuple(segments[index] for index in due)
            if not due_segments:
                return Logits((), memoryview(b""))
            scored = [row for i, n in zip(due, n_scored, strict=True) for row in range(ends[i] - n, ends[i])]
            return Logits(due_segments, _values(self._decoder.leave(state[scored])))

    def place(self, batch: Tokens | Hidden) -> int:
        """Return the number of rows of a step. Raises StageError if it does not fit."""
        return len(self._rows.of(batch))

    def forget(self, slot: int, keep: int = 0) -> None:
        if self._is_recurrent:
            self._states.cut_back(slot, keep)
        self._cells.cut_back(slot, keep)

    def slot_bytes(self, slot: int) -> int:
        return 0  # its states are not kept: every version of PyTorch may compute other bits

    def read_slot(self, slot: int, room: mmap.mmap) -> None:
        raise StageError("states of PyTorch are not kept")

    def write_slot(self, slot: int, state: mmap.mmap, positions: int) -> bool:
        return False

    def lay_out(self, slot: int, grids: Sequence[PictureGrid]) -> None:
        """Raise StageError for pictures, which this engine does not compute."""
        if grids:
            raise _no_pictures()

    def share(self, most: int) -> int:
        self._used = max(1, min(most, self._config.threads))
        torch.set_num_threads(self._used)
        return self._used

    def close(self) -> None:
        """Release the memory, also what torch keeps for later on a card."""
        self.__dict__.pop("_decoder", None)
        self.__dict__.pop("_cache", None)
        if self._device.type == "cuda":
            torch.cuda.empty_cache()


def _no_pictures() -> StageError:
    return StageError("PyTorch computes no pictures here", "torch_pictures")


def _values(rows: Any) -> memoryview:
    return bytes_of(np.ascontiguousarray(rows.float().cpu().numpy()))


def _device(name: str) -> Any:
    """Return the device of this name: cpu, cuda:0, mps and so on. Raises DeviceUnusable if torch does not see it."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).partition("\n")[0]
        raise DeviceUnusable(f"torch cannot use {name}: {why}", "torch_device", device=name, why=why) from None
    return device


@contextmanager
def _told() -> Iterator[None]:
    """Turn torch's errors into those of a stage."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(str(error)) from None
    except RuntimeError as error:
        words = str(error).partition("\n")[0]
        if CPU_OUT_OF_MEMORY in words or tells_out_of_memory(words):
            raise OutOfMemory(words) from None
        raise StageError(f"PyTorch failed: {words}", "torch_failed", words=words) from None
