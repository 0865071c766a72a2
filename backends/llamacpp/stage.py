"""A stage on unmodified llama.cpp. It feeds hidden states in as embeddings and reads them through the eval callback."""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.contract import (
    CardSplit,
    CheckpointRule,
    DeviceCheck,
    DeviceUnusable,
    FamilyUnfit,
    Hidden,
    KvType,
    Logits,
    PictureGrid,
    Role,
    Segment,
    SlotCheckpoints,
    StageConfig,
    StageError,
    Tokens,
    scored_rows,
)
from backends.hidden_state_codec import VALUE, Rows, bytes_of
from backends.llamacpp import binding, devices
from backends.llamacpp.picture_positions import planes_of, time_of
from backends.llamacpp.thread_choice import ThreadChoice
from backends.llamacpp.token_embedding import TokenEmbedding

State = ctypes.Array[ctypes.c_uint8]
# Row counts for which devices have code of their own, in ggml's Vulkan back end: 1 to 8, up to 32, up to 64, and more.
WARM_ROWS = (*range(1, 9), 24, 48)
UNCUT_POSITIONS = 256  # llama.cpp reads cells in blocks of 256 and splits keys from 512 on


class Batch:
    """A llama_batch whose arrays we own. They are allocated once and refilled for each step."""

    def __init__(self, llama: Any, n_rows: int, n_slots: int, planes: int = 1) -> None:
        """Allocate the arrays. planes: the number of positions that llama.cpp expects per input hidden state."""
        self._slots = np.arange(n_slots, dtype=np.int32)
        self._first_slot = self._slots.ctypes.data
        self._n_rows, self._planes = n_rows, planes
        self._grids: dict[int, tuple[PictureGrid, ...]] = {}  # by slot
        self._pos = np.zeros(n_rows * planes, dtype=np.int32)
        self._n_ids = np.ones(n_rows, dtype=np.int32)
        self._ids = np.zeros(n_rows, dtype=np.uintp)  # pointers into _slots
        self._outputs = np.zeros(n_rows, dtype=np.int8)
        self._input: NDArray[Any] = self._pos  # kept alive while llama.cpp reads it
        self._types = dict(llama.llama_batch._fields_)
        self.struct = llama.llama_batch()
        self.struct.pos = self._pointer("pos", self._pos)
        self.struct.n_seq_id = self._pointer("n_seq_id", self._n_ids)
        self.struct.seq_id = self._pointer("seq_id", self._ids)
        self.struct.logits = self._pointer("logits", self._outputs)

    def place(self, segments: tuple[Segment, ...]) -> int:
        """Write the slots and positions of a step and return its number of rows.

        Raises StageError if the step does not fit.
        """
        start = 0
        for segment in segments:
            end = start + segment.n_tokens
            if end > self._n_rows or not 0 <= segment.slot < len(self._slots):
                raise StageError(f"{segment} is beyond the room of this stage")
            self._pos[start:end] = np.arange(segment.pos, segment.end, dtype=np.int32)
            self._ids[start:end] = self._first_slot + segment.slot * self._slots.itemsize
            start = end
        self.struct.n_tokens = start
        if self._planes > 1:
            self._fill_planes(segments, start)
        return start

    def lay_out(self, slot: int, grids: Sequence[PictureGrid]) -> None:
        """Give the rows of a slot's pictures their positions. Raises StageError if positions have one plane only."""
        if grids and self._planes == 1:
            raise StageError("the positions of this model have one dimension")
        self._grids[slot] = tuple(grids)

    def time_of(self, slot: int, index: int) -> int:
        """Return the position of a row of a slot in llama.cpp's memory. Raises StageError within a picture."""
        return time_of(index, self._grids.get(slot, ()))

    def _fill_planes(self, segments: tuple[Segment, ...], n_rows: int) -> None:
        """Write the positions to all planes except the last, which must be 0. They differ only for pictures."""
        planes = self._pos[: n_rows * self._planes].reshape(self._planes, n_rows)
        planes[1:-1] = planes[0]
        planes[-1] = 0
        start = 0
        for segment in segments:
            end = start + segment.n_tokens
            if grids := self._grids.get(segment.slot):
                planes[:-1, start:end] = planes_of(segment, grids)
            start = end

    def tokens(self, ids: NDArray[np.int32]) -> None:
        """Use these token ids as input."""
        self._input = np.ascontiguousarray(ids)
        self.struct.token = self._pointer("token", self._input)
        self.struct.embd = None

    def hidden(self, rows: Rows) -> None:
        """Use these hidden states as input."""
        self._input = np.ascontiguousarray(rows)
        self.struct.embd = self._pointer("embd", self._input)
        self.struct.token = None

    def flag_all(self, n_rows: int) -> None:
        """Mark every row as an output. The last layer drops rows that are not marked."""
        self._outputs[:n_rows] = 1

    def flag(self, n_rows: int, rows: list[int]) -> None:
        """Mark only the rows whose logits are needed."""
        self._outputs[:n_rows] = 0
        self._outputs[rows] = 1

    def _pointer(self, field: str, array: NDArray[Any]) -> Any:
        return ctypes.cast(array.ctypes.data, self._types[field])


class Boundary:
    """The eval callback of a context, which copies the output of the last layer and then stops the computation.

    llama.cpp calls it for each node of the graph, about 36 times per layer. Comparing a node's name takes 0.35 µs and
    comparing its address 0.13 µs. Because a graph is usually reused or rebuilt at the same address, the node is looked
    up by name only at first and by address afterwards. Its name is still verified each time its output is read.

    llama.cpp has functions that would need no callback (llama_set_embeddings_layer_inp, llama_set_embeddings_nextn). A
    cut stage cannot use them in the engine of 0.3.36: only two families offer the input of a layer after the last one,
    and most of those that offer the last hidden state have normed it before.
    """

    def __init__(self, name: str, layer: int, *, by_name: bool = False) -> None:
        """Create the callback for the node `name` of `layer`.

        by_name: whether to always look up the node by name. Recurrent models need this, because a step that misses a
        moved node cannot be undone and repeated.
        """
        self._name, self._by_name = f"{name}-{layer}".encode(), by_name
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self._get = binding.ggml("ggml_backend_tensor_get", None, pointer, pointer, size, size)
        self._n_bytes = binding.ggml("ggml_nbytes", size, pointer)
        self._name_of = binding.ggml("ggml_get_name", ctypes.c_char_p, pointer)
        self._named = _Named(self._name, self._name_of)
        self._known: set[int] = set()  # addresses at which the node has been found
        self._wanted: Container[int] = self._named
        self._rows: Rows | None = None  # kept alive while llama.cpp may write to it
        self._goal = (0, 0)  # address and size of the rows
        self.reached = False
        self.callback = binding.load().ggml_backend_sched_eval_callback(self._on_node)

    def expect(self, rows: Rows) -> None:
        """Copy the output to `rows` during the next step."""
        self._rows, self._goal, self.reached = rows, (rows.ctypes.data, rows.nbytes), False

    def came(self) -> None:
        """Raise StageError if the output was not copied."""
        self._rows = None
        if not self.reached:
            raise StageError(f"the model's graph has no {self._name.decode()} of {self._goal[1]} bytes")
        if not self._by_name:
            self._wanted = self._known

    def search(self) -> None:
        """Look up the node by name in the next step, because its address has changed."""
        self._wanted = self._named

    def _on_node(self, tensor: int, ask: bool, _user_data: int | None) -> bool:
        if ask:
            return tensor in self._wanted
        if self._name_of(tensor) != self._name:
            return True  # another node is now at this address: continue
        self._known.add(tensor)
        address, n_bytes = self._goal
        if self._rows is not None and self._n_bytes(tensor) == n_bytes:
            self._get(tensor, address, 0, n_bytes)
            self.reached = True
        return False  # only the norm and the head follow


class _Named:
    """A container whose members are the addresses of all nodes with a given name."""

    def __init__(self, name: bytes, name_of: Callable[[int], bytes]) -> None:
        self._name, self._name_of = name, name_of

    def __contains__(self, tensor: object) -> bool:
        assert isinstance(tensor, int)
        return self._name_of(tensor) == self._name


def neighbors(segments: Sequence[Segment]) -> list[list[int]]:
    """Return groups of segment indexes, each of which llama.cpp can compute in a single pass.

    When each slot has its own KV cells, a pass covers only adjacent slots with equal row counts
    (llama_batch_allocr::split_equal with `sequential`). llama.cpp would split any other step and reorder its rows.
    """
    order = sorted(range(len(segments)), key=lambda i: (segments[i].n_tokens, segments[i].slot))
    groups = [order[:1]]
    for before, index in pairwise(order):
        first, two = segments[before], segments[index]
        if first.n_tokens == two.n_tokens and first.slot + 1 == two.slot:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def prompts_alone(groups: Sequence[list[int]], segments: Sequence[Segment]) -> list[list[int]]:
    """Return the groups with each multi-row segment moved to a group of its own."""
    split: list[list[int]] = []
    for group in groups:
        if segments[group[0]].n_tokens > 1:
            split += [[index] for index in group]
        else:
            split.append(group)
    return split


def by_length(segments: Sequence[Segment]) -> list[list[int]]:
    """Group the indexes of segments: one group for all single-row segments, and one group for each longer segment."""
    single = [i for i, segment in enumerate(segments) if segment.n_tokens == 1]
    return [group for group in (single, *([i] for i in range(len(segments)) if i not in single)) if group]


class Parts:
    """A step that is split into several passes whose outputs are combined."""

    def __init__(self, batch: Tokens | Hidden, due: Sequence[int], n_scored: Sequence[int], width: int) -> None:
        self._batch, self._due, self._width = batch, due, width
        self._n_scored = dict(zip(due, n_scored or (1,) * len(due), strict=True))
        scored = accumulate(self._n_scored.values())
        self._scored = {i: range(end - n, end) for (i, n), end in zip(self._n_scored.items(), scored, strict=True)}
        ends = np.cumsum([segment.n_tokens for segment in batch.segments])
        self._rows = [np.arange(end - segment.n_tokens, end) for end, segment in zip(ends, batch.segments, strict=True)]
        self._out: np.ndarray | None = None
        self._is_hidden = True

    def take(self, group: Sequence[int]) -> tuple[Tokens | Hidden, list[int], list[int]]:
        """Return a step that consists of these segments, the indexes of its segments that need logits, and how many."""
        segments = tuple(self._batch.segments[index] for index in group)
        due = [place for place, index in enumerate(group) if index in self._due]
        n_scored = [self._n_scored[group[place]] for place in due]
        rows = np.concatenate([self._rows[index] for index in group])
        if isinstance(self._batch, Tokens):
            return Tokens(segments, tuple(self._batch.ids[row] for row in rows), self._batch.pictures), due, n_scored
        values = np.frombuffer(self._batch.rows, dtype=VALUE).reshape(-1, self._width)
        return Hidden(segments, bytes_of(values[rows])), due, n_scored

    def give(self, group: Sequence[int], out: Hidden | Logits) -> None:
        """Copy the output of a pass before the next pass overwrites it."""
        self._is_hidden = isinstance(out, Hidden)
        if isinstance(out, Hidden):
            rows = np.concatenate([self._rows[index] for index in group])
            n_rows, n_parts = sum(map(len, self._rows)), len(rows)
        else:
            rows = np.array([row for index in group for row in self._scored.get(index, ())], int)
            n_rows, n_parts = sum(self._n_scored.values()), len(rows)
        if not n_parts:
            return
        values = np.frombuffer(out.rows, dtype=VALUE).reshape(n_parts, -1)
        if self._out is None:
            self._out = np.empty((n_rows, values.shape[1]), dtype=VALUE)
        self._out[rows] = values

    def whole(self) -> Hidden | Logits:
        """Return the combined output, as if the step had been computed in a single pass."""
        rows = memoryview(b"") if self._out is None else bytes_of(self._out)
        if self._is_hidden:
            return Hidden(self._batch.segments, rows)
        return Logits(tuple(self._batch.segments[index] for index in self._due), rows)


class States:
    """The saved recurrent states of all slots of a context. SlotCheckpoints decides when a state is saved."""

    def __init__(self, llama: Any, context: Any, rule: CheckpointRule) -> None:
        self._llama, self._context = llama, context
        self._empty = SlotCheckpoints(rule=rule)
        self._flags = llama.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY  # excludes the KV cache
        self._slots: dict[int, SlotCheckpoints] = {}
        self._states: dict[tuple[int, int], State] = {}  # by slot and position

    def before(self, segments: Sequence[Segment]) -> None:
        """Save each state that may be needed later, before computing these segments overwrites it."""
        for segment in segments:
            slot = self._slots.get(segment.slot, self._empty)
            if slot.keeps(segment):
                self._states[segment.slot, slot.end] = self._read(segment.slot)
            self._set(segment.slot, slot.after(segment))

    def cut_back(self, slot: int, keep: int) -> None:
        """Restore the state after `keep` positions. Raises StageError if it was not saved."""
        held = self._slots.get(slot, self._empty)
        if held.reach(keep) != min(keep, held.end):
            raise StageError(f"slot {slot} has no state after position {keep}")
        if 0 < keep < held.end:
            self._write(slot, self._states[slot, keep])
        self._set(slot, held.cut_back(keep))

    def replaced(self, slot: int, positions: int) -> None:
        """Record that a slot has a state from elsewhere, which can be cut back only to its end."""
        self._set(slot, replace(self._empty, end=positions))

    def _set(self, slot: int, kept: SlotCheckpoints) -> None:
        self._slots[slot] = kept
        for key in [key for key in self._states if key[0] == slot and key[1] not in kept.marks]:
            del self._states[key]

    def _read(self, slot: int) -> State:
        n_bytes = self._llama.llama_state_seq_get_size_ext(self._context, slot, self._flags)
        state: State = (ctypes.c_uint8 * n_bytes)()
        got = self._llama.llama_state_seq_get_data_ext(self._context, state, n_bytes, slot, self._flags)
        if got != n_bytes:
            raise StageError(f"the state of slot {slot} cannot be kept")
        return state

    def _write(self, slot: int, state: State) -> None:
        n_bytes = len(state)
        done = self._llama.llama_state_seq_set_data_ext(self._context, state, n_bytes, slot, self._flags)
        if done != n_bytes:
            raise StageError(f"the state of slot {slot} cannot be put back")


def _bytes_at(room: mmap.mmap) -> State:
    return (ctypes.c_uint8 * len(room)).from_buffer(room)


def _shared(buffers: Mapping[str, int]) -> int:
    """Return the bytes of the buffers that several devices share."""
    return sum(n_bytes for name, n_bytes in buffers.items() if name.startswith(binding.SHARED))


class LlamaStage:
    """A Stage that runs on llama.cpp. The rows that it returns are valid until the next `forward`."""

    def __init__(self, config: StageConfig) -> None:
        """Load the layers. Raises StageError with llama.cpp's message."""
        self._config = config
        self.check: DeviceCheck | None = None  # how far the device differs from the processor (device_check.py)
        self._model: Any = None
        self._context: Any = None
        self._embedding: TokenEmbedding | None = None
        self._choice = ThreadChoice(config.threads, config.begin_threads, exact=config.exact)
        self._threads = self._choice.used  # the number set in the context
        self._furthest = 0  # end position of the latest step
        self._ends: dict[int, int] = {}  # end position of each slot
        self._most_cells = 0  # the largest number of cells ever in use
        self._scores_at, self._view = (0, 0), memoryview(b"")
        self._sees_all = False  # as set in the context
        if config.batch_rows > config.kv_cells:
            raise StageError(f"{config.kv_cells} cells cannot hold a step of {config.batch_rows}")
        self._llama = binding.load()
        try:
            self._open(config)
        except StageError:
            self.close()
            raise

    def _open(self, config: StageConfig) -> None:
        if config.role is not Role.WHOLE and not config.any_engine:
            binding.require_proved()
        if config.role is Role.FIRST:
            self._embedding = TokenEmbedding(config.embedding_path, config.width)
        try:
            self._model = binding.load_model(config.path, self._layer_devices())
        except FamilyUnfit as error:
            if error.facts.get("device") not in config.devices:  # llama.cpp names the place of only one tensor
                error.facts["device"] = config.device
            raise
        self.layer_devices = binding.layer_devices()[: len(config.layers)]
        self._check_devices(config)
        self._check_model(config)
        traits = config.traits
        self._boundary = None
        if not config.role.has_head:
            last = len(config.layers) - 1
            self._boundary = Boundary(traits.boundary, last, by_name=traits.recurrent)
        self._context = self._new_context(config)
        self._memory = self._llama.llama_get_memory(self._context)
        planes = binding.position_planes(self._model) if config.role is Role.WHOLE else traits.position_planes
        self._batch = Batch(self._llama, config.batch_rows, config.slots, planes)
        self._states: States | None = None
        if traits.recurrent:
            self._states = States(self._llama, self._context, config.keep)
        self.buffers = binding.take_buffers()  # bytes by buffer type
        self.work_buffers = binding.take_work_buffers()
        if config.device:
            self._warm_up()

    def _layer_devices(self) -> binding.LayerDevices:
        """Return the devices that compute the layers. Raises StageError."""
        config = self._config
        if not config.device:
            return binding.PROCESSOR
        if config.library:
            binding.load_backend(Path(config.library))
        addresses = tuple(devices.device(name).address for name in config.devices)
        if self._shares_tensors:
            return binding.LayerDevices(addresses, n_layers=len(config.layers), shares_tensors=True)
        return binding.LayerDevices(addresses, config.device_layers, len(config.layers), config.processor_experts)

    @property
    def _shares_tensors(self) -> bool:
        """Return whether several devices each hold a part of every matrix."""
        return self._config.split is CardSplit.TENSORS and len(self._config.devices) > 1

    def _check_devices(self, config: StageConfig) -> None:
        """Raise DeviceUnusable if another device, or the processor, computes a layer that was planned for a device."""
        if not config.device:
            return
        if self._shares_tensors:
            unshared = [index for index, name in enumerate(self.layer_devices) if not name.startswith(binding.SHARED)]
            if unshared:
                layer = f"layer {config.layers.first + unshared[0]}"
                raise DeviceUnusable(f"the devices cannot share {layer}", "device_tensor", tensor=layer)
            return
        counts = config.device_layers or (len(config.layers),)
        planned = [name for name, count in zip(config.devices, counts, strict=True) for _ in range(count)]
        first = len(config.layers) - len(planned)
        for index, name in enumerate(planned, first):
            if self.layer_devices[index] != name:
                layer = f"layer {config.layers.first + index}"
                raise DeviceUnusable(f"the device cannot compute with {layer}", "device_tensor", tensor=layer)

    def _warm_up(self) -> None:
        """Compute steps of all usual sizes and forget them.

        A device compiles its code for the first step of each size, which can take seconds. While a stage is being
        loaded, there is time for that.
        """
        config = self._config
        counts = {*(count for count in WARM_ROWS if count < config.batch_rows), config.batch_rows}
        # The largest first: Mesa's software device (22.3) crashes if its first step of two rows follows one of one row.
        for n_rows in sorted(counts, reverse=True):
            segments = (Segment(0, n_rows, 0),)
            rows = np.zeros((n_rows, config.width), dtype=VALUE)
            takes_ids = config.role in (Role.FIRST, Role.WHOLE)
            batch = Tokens(segments, (0,) * n_rows) if takes_ids else Hidden(segments, bytes_of(rows))
            self._pass(batch, [0])
            self._llama.llama_memory_clear(self._memory, True)
        self._ends, self._furthest, self._most_cells = {}, 0, 0

    @property
    def model(self) -> Any:
        """Return llama.cpp's model, which is None once the stage is closed."""
        return self._model

    @property
    def device_bytes(self) -> int:
        """Return the memory that the stage takes on its devices, or 0 if the processor computes."""
        if self._shares_tensors:  # llama.cpp reports the largest part
            return len(self._config.devices) * _shared(self.buffers)
        return sum(self.buffers.get(device, 0) for device in self._config.devices)

    @property
    def device_work(self) -> dict[str, int]:
        """Return, for each device, the memory that the stage takes besides weights and KV cache."""
        if self._shares_tensors:
            return dict.fromkeys(self._config.devices, _shared(self.work_buffers))
        return {device: n for device in self._config.devices if (n := self.work_buffers.get(device, 0))}

    @property
    def n_vocab(self) -> int:
        """Return the number of logits per row."""
        return int(self._llama.llama_vocab_n_tokens(self._llama.llama_model_get_vocab(self._model)))

    @property
    def vocabulary(self) -> str:
        """Return the path of the file with the vocabulary for grammars, or "" if it is unknown.

        This is the whole model's file, because stage files contain no vocabulary.
        """
        config = self._config
        return config.path if config.role is Role.WHOLE else config.embedding_path

    def forward(self, batch: Tokens | Hidden, due: Sequence[int], n_scored: Sequence[int] = ()) -> Hidden | Logits:
        if self._states is not None:
            self._states.before(batch.segments)
        if isinstance(batch, Tokens) and self._config.role is Role.WHOLE and min(batch.ids, default=0) < 0:
            return self._forward_pictures(batch, due, n_scored)
        groups = self._groups(batch.segments)
        if groups == [list(range(len(batch.segments)))]:
            return self._pass(batch, due, n_scored)
        parts = Parts(batch, due, n_scored, self._config.width)
        for group in groups:
            part, part_due, part_scored = parts.take(group)
            parts.give(group, self._pass(part, part_due, part_scored))
        return parts.whole()

    def _forward_pictures(self, batch: Tokens, due: Sequence[int], n_scored: Sequence[int]) -> Logits:
        """Compute a step of a whole model that contains rows of pictures.

        llama.cpp takes either token ids or rows in one pass, so each stretch of one kind is computed in its own.
        """
        scores, start = [], 0
        numbers = dict(zip(due, n_scored or (1,) * len(due), strict=True))
        for index, segment in enumerate(batch.segments):
            ids = np.asarray(batch.ids[start : start + segment.n_tokens], dtype=np.int32)
            start += segment.n_tokens
            edges = [0, *(np.flatnonzero(np.diff(ids < 0)) + 1), len(ids)]
            for first, last in pairwise(map(int, edges)):
                part = (Segment(segment.slot, last - first, segment.pos + first),)
                is_due = [0] if last == len(ids) and index in due else []
                tokens = Tokens(part, ids[first:last], batch.pictures, batch.sees_all)  # type: ignore[arg-type]
                out = self._pass(tokens, is_due, [numbers[index]] if is_due else ())
                if is_due:
                    scores.append(bytes(out.rows))
        return Logits(tuple(batch.segments[index] for index in sorted(due)), memoryview(b"".join(scores)))

    def _groups(self, segments: Sequence[Segment]) -> list[list[int]]:
        """Return groups of segment indexes, each of which is computed in one pass."""
        if self._config.apart:
            groups = neighbors(segments)
            return prompts_alone(groups, segments) if self._config.traits.recurrent else groups
        return by_length(segments) if self._config.traits.recurrent else [list(range(len(segments)))]

    def _pass(self, batch: Tokens | Hidden, due: Sequence[int], n_scored: Sequence[int] = ()) -> Hidden | Logits:
        """Run the layers once.

        If each slot has its own KV cells, the segments must be in adjacent slots and have equal row counts.
        """
        self._see_all(batch.sees_all)
        segments, n_rows = batch.segments, self.place(batch)
        if self._boundary is None:
            return self._scores(segments, n_rows, due, n_scored or (1,) * len(due))
        rows = np.empty((n_rows, self._config.width), dtype=VALUE)
        self._batch.flag_all(n_rows)
        self._boundary.expect(rows)
        self._decode(n_rows)
        if not self._boundary.reached:  # the graph was rebuilt elsewhere in memory
            self._take_back(segments)
            self._boundary.search()
            self._decode(n_rows)
        self._boundary.came()
        return Hidden(segments, bytes_of(rows))

    def _see_all(self, sees_all: bool) -> None:
        """Let every row of the next step attend to all its rows, or only to those before it."""
        if sees_all != self._sees_all:
            self._llama.llama_set_causal_attn(self._context, not sees_all)
            self._sees_all = sees_all
            if self._boundary is not None:
                self._boundary.search()  # the graph is built anew

    def place(self, batch: Tokens | Hidden) -> int:
        """Write the rows of a step into the batch without computing it, and return their number. Raises StageError."""
        n_rows = self._batch.place(batch.segments)
        self._furthest = max(segment.end for segment in batch.segments)
        self._ends |= {segment.slot: segment.end for segment in batch.segments}
        self._most_cells = max(self._most_cells, sum(self._ends.values()))
        if isinstance(batch, Tokens):
            self._feed_ids(batch, n_rows)
        else:
            self._feed_rows(np.frombuffer(batch.rows, dtype=VALUE), n_rows)
        return n_rows

    def forget(self, slot: int, keep: int = 0) -> None:
        if self._states is not None:
            self._states.cut_back(slot, keep)
        if not self._llama.llama_memory_seq_rm(self._memory, slot, self._batch.time_of(slot, keep), -1):
            raise StageError(f"slot {slot} cannot be cut back to position {keep}")
        self._ends[slot] = min(self._ends.get(slot, 0), keep)

    def slot_bytes(self, slot: int) -> int:
        return int(self._llama.llama_state_seq_get_size(self._context, slot))

    def read_slot(self, slot: int, room: mmap.mmap) -> None:
        if self._llama.llama_state_seq_get_data(self._context, _bytes_at(room), len(room), slot) != len(room):
            raise StageError(f"the state of slot {slot} cannot be read")

    def write_slot(self, slot: int, state: mmap.mmap, positions: int) -> bool:
        self.forget(slot)
        n_read = self._llama.llama_state_seq_set_data(self._context, _bytes_at(state), len(state), slot)
        last = self._llama.llama_memory_seq_pos_max(self._memory, slot)
        if n_read != len(state) or last != positions - 1:
            self.forget(slot)
            return False
        self._ends[slot] = positions
        self._most_cells = max(self._most_cells, sum(self._ends.values()))
        if self._states is not None:
            self._states.replaced(slot, positions)
        return True

    def lay_out(self, slot: int, grids: Sequence[PictureGrid]) -> None:
        self._batch.lay_out(slot, grids)

    def share(self, most: int) -> int:
        self._choice.limit(most)
        return self._choice.used

    def close(self) -> None:
        if self._context:
            self._llama.llama_free(self._context)
        if self._model:
            self._llama.llama_model_free(self._model)
        self._context = self._model = self._embedding = None

    def _feed_ids(self, batch: Tokens, n_rows: int) -> None:
        numbers = np.asarray(batch.ids, dtype=np.int32)
        if len(numbers) != n_rows:
            raise StageError(f"{len(numbers)} token ids for {n_rows} rows")
        are_pictures = numbers < 0
        if are_pictures.any():
            self._feed_pictures(batch, numbers, are_pictures)
        elif self._embedding is not None:
            self._feed_rows(self._embedding.rows(numbers).reshape(-1), n_rows)
        elif self._config.role is Role.WHOLE:
            self._batch.tokens(numbers)
        else:
            raise StageError("token ids where hidden states were expected")

    def _feed_pictures(self, batch: Tokens, numbers: NDArray[np.int32], are_pictures: NDArray[np.bool_]) -> None:
        """Use rows of pictures as input, which are never scaled, beside the embeddings of tokens."""
        if batch.pictures is None or (self._embedding is None and not are_pictures.all()):
            raise StageError("a picture where none was expected")
        rows = np.empty((len(numbers), self._config.width), dtype=VALUE)
        shown = np.frombuffer(batch.pictures.rows(numbers[are_pictures].tolist()), dtype=VALUE)
        rows[are_pictures] = shown.reshape(-1, self._config.width)
        if self._embedding is not None:
            scale = np.float32(self._config.traits.input_scale)
            rows[~are_pictures] = self._embedding.rows(numbers[~are_pictures]) * scale
        self._batch.hidden(rows)

    def _feed_rows(self, rows: Rows, n_rows: int) -> None:
        if self._config.role is Role.WHOLE:
            raise StageError("hidden states where token ids were expected")
        if len(rows) != n_rows * self._config.width:
            raise StageError(f"{len(rows)} values for {n_rows} rows of {self._config.width}")
        scale = self._config.traits.input_scale
        self._batch.hidden(rows if scale == 1.0 else rows * np.float32(scale))

    def _scores(
        self, segments: tuple[Segment, ...], n_rows: int, due: Sequence[int], n_scored: Sequence[int]
    ) -> Logits:
        ends = list(accumulate(segment.n_tokens for segment in segments))
        scored = [row for i, n in zip(due, n_scored, strict=True) for row in range(ends[i] - n, ends[i])]
        self._batch.flag(n_rows, scored)
        self._decode(n_rows)
        due_segments = tuple(segments[index] for index in due)
        if not due_segments:
            return Logits(due_segments, memoryview(b""))
        start = self._llama.llama_get_logits(self._context)
        return Logits(due_segments, self._seen(ctypes.addressof(start.contents), len(scored)))

    def _seen(self, address: int, n_rows: int) -> memoryview:
        """Return a view of the scores at `address`. It is cached because the address rarely changes."""
        if (address, n_rows) != self._scores_at:
            count = n_rows * self.n_vocab
            self._view = memoryview((ctypes.c_float * count).from_address(address)).cast("B")
            self._scores_at = (address, n_rows)
        return self._view

    def _decode(self, n_rows: int) -> None:
        threads = self._choice.next(n_rows, tied=self._is_tied(n_rows))
        if threads != self._threads:
            self._llama.llama_set_n_threads(self._context, threads, threads)
            self._threads = threads
        began = time.perf_counter()
        code = self._llama.llama_decode(self._context, self._batch.struct)
        self._choice.took(time.perf_counter() - began)
        if code == 1:
            raise StageError(f"the {self._config.kv_cells} cells of the KV cache are full")
        if code:
            words = binding.take_log()
            raise StageError(f"llama.cpp failed with {code}: {words}", "llama_failed", status=code, words=words)

    def _is_tied(self, n_rows: int) -> bool:
        """Return whether flash attention may split the keys of this step among threads (thread_choice.py).

        Attention reads all cells up to the last one in use. Because the first free cells are always used first, the
        position of that cell never exceeds the largest number of cells ever in use.
        """
        config = self._config
        if n_rows != 1 or not config.flash_attention or config.kv is not KvType.F16:
            return False
        own = config.apart or config.slots == 1
        return (self._furthest if own else self._most_cells) > UNCUT_POSITIONS

    def _take_back(self, segments: tuple[Segment, ...]) -> None:
        for segment in segments:
            self.forget(segment.slot, segment.pos)

    def _check_model(self, config: StageConfig) -> None:
        n_layers = self._llama.llama_model_n_layer(self._model)
        width = self._llama.llama_model_n_embd(self._model)
        if n_layers != len(config.layers) or width != config.width:
            raise StageError(f"the file has {n_layers} layers of width {width}")
        planes = binding.position_planes(self._model)
        if config.role is not Role.WHOLE and planes != config.traits.position_planes:
            raise StageError(f"the file has {planes} positions for each hidden state")

    def _new_context(self, config: StageConfig) -> Any:
        params = self._llama.llama_context_default_params()
        params.n_ctx = config.kv_cells
        params.n_batch = params.n_ubatch = config.batch_rows
        params.n_seq_max = config.slots
        params.n_threads = params.n_threads_batch = self._threads
        params.kv_unified = not config.apart
        if config.kv is KvType.Q8_0:
            params.type_k = params.type_v = self._llama.GGML_TYPE_Q8_0
        params.flash_attn_type = int(config.flash_attention)
        params.offload_kqv = bool(config.device)
        # For long steps, it copies the processor's weights to the device, which takes memory there that nobody counts.
        params.op_offload = not config.uses_processor
        if self._boundary is None:
            # The default reserves room for n_batch rows of logits.
            params.n_outputs_max = scored_rows(config.slots, recurrent=config.traits.recurrent)
        else:
            params.cb_eval = self._boundary.callback
        binding.take_log()
        context = self._llama.llama_init_from_model(self._model, params)
        if not context:
            words = binding.take_log()
            text = f"llama.cpp has no room for {config.kv_cells} cells: {words}"
            raise StageError(text, "llama_no_room_cells", count=config.kv_cells, words=words)
        return context
