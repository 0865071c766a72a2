"""An engine without weights, for tests. Each layer adds 1, so the sampled tokens show whether every layer ran."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from backends.contract import (
    Hidden,
    Logits,
    PictureGrid,
    PictureRows,
    Role,
    Segment,
    SlotCheckpoints,
    StageConfig,
    StageError,
    Tokens,
)
from backends.hidden_state_codec import VALUE, Rows, bytes_of

PREFIX = "fake:"
CONTROL = ("<|bos|>", "<|im_end|>", "<|im_start|>")  # ids 0, 1, 2; token 3 + b is the byte b
BOS, END, FIRST_BYTE = 0, 1, len(CONTROL)
LETTERS = b" etaoinshrdlucmfwypvbgkjqxz"
DIGIT = 32  # tokens are written in base 4, one digit per value; 3 * 32 + 30 layers survive 8-bit wires
BASE = 4
MASK = (1 << 64) - 1
MARK = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Options:
    """The options in a path such as `fake:vocab=300,seconds_per_layer=0.001`."""

    vocab: int = 300
    seconds_per_layer: float = 0.0  # per step
    seconds_per_row: float = 0.0  # per layer, in addition
    bytes_per_layer: int = 0  # memory actually allocated
    bytes_per_step: int = 0  # memory that each step adds
    device_bytes: int = 0  # memory that it claims to use on a device
    length: int = 0  # approximate length of answers; 0: they never end
    error_at: int = 0  # the n-th step raises StageError; 0: none
    nan_from: int = 0  # rows from this position on are not finite; 0: none
    short_at: int = 0  # the n-th step runs out of memory
    die_at: int = 0  # the n-th step aborts the process
    error_from: int = 0  # rows from this position on raise StageError; 0: none
    die_from: int = 0  # rows from this position on abort the process; 0: none
    vanish_from: int = 0  # rows from this position on kill the process, as the system would; 0: none
    hang_at: int = 0  # the n-th step takes an hour


def options(path: str) -> Options:
    """Parse a path that begins with `fake:`. Raises StageError if it is invalid."""
    if not path.startswith(PREFIX):
        raise StageError(f"{path} is no path of the fake engine")
    kinds = {field.name: float if field.type == "float" else int for field in fields(Options)}
    try:
        pairs = (item.split("=") for item in path[len(PREFIX) :].split(",") if item)
        return Options(**{name: kinds[name](value) for name, value in pairs})  # type: ignore[arg-type]
    except (KeyError, ValueError) as error:
        raise StageError(f"{path} is no path of the fake engine: {error}") from None


class FakeStage:
    """A Stage whose layers only add 1.

    Its greedy tokens depend on the entire history of a slot and reveal any layer that was skipped at any position.
    """

    vocabulary = ""  # the fake engine has no vocabulary for grammars
    check = None  # it computes on no device

    def __init__(self, config: StageConfig) -> None:
        self.options = options(config.path)
        self.n_vocab = self.options.vocab
        self.device_bytes = self.options.device_bytes
        self.device_work: dict[str, int] = {}
        self._config = config
        self._takes_ids = config.role in (Role.FIRST, Role.WHOLE)
        self._scores = config.role.has_head
        if self._width < 1 or BASE**self._width < self.n_vocab:
            raise StageError(f"{config.width} values are too few for {self.n_vocab} tokens")
        self._powers = BASE ** np.arange(self._width, dtype=np.int64)
        self._marks: list[list[int]] = [[] for _ in range(config.slots)]  # a hash for each position of each slot
        self._held = bytearray(self.options.bytes_per_layer * len(config.layers))
        self._held[::4096] = b"\x01" * len(self._held[::4096])  # memory counts only once it is touched
        self._kept = [SlotCheckpoints(rule=config.keep)] * config.slots
        self._steps = 0

    @property
    def _width(self) -> int:
        return min(self._config.width, 31)  # base 4: 62 bits

    def forward(self, batch: Tokens | Hidden, due: Sequence[int], n_scored: Sequence[int] = ()) -> Hidden | Logits:
        self._pretend(sum(segment.n_tokens for segment in batch.segments))
        rows = self._rows_of(batch) + np.float32(len(self._config.layers))
        if any(0 < self.options.die_from < segment.end for segment in batch.segments):
            os.abort()
        if any(0 < self.options.vanish_from < segment.end for segment in batch.segments):
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        if any(0 < self.options.error_from < segment.end for segment in batch.segments):
            raise StageError("the fake engine was asked to fail")
        for segment, part in _split(batch.segments, rows):
            self._remember(segment, part)
            if 0 < self.options.nan_from < segment.end and not self._scores:
                part[-1] = np.nan
            self._kept[segment.slot] = self._kept[segment.slot].after(segment)
        if not self._scores:
            return Hidden(batch.segments, bytes_of(rows))
        due_segments = tuple(batch.segments[index] for index in due)
        numbers = n_scored or (1,) * len(due_segments)
        scored = [(s.slot, end) for s, n in zip(due_segments, numbers, strict=True) for end in range(s.end - n, s.end)]
        scores = np.stack([self._score(slot, pos + 1) for slot, pos in scored]) if scored else np.empty(0, VALUE)
        return Logits(due_segments, bytes_of(scores))

    def place(self, batch: Tokens | Hidden) -> int:
        """Return the number of rows in a step. Like the real engine, raise StageError if the step does not fit."""
        return len(self._rows_of(batch))

    def forget(self, slot: int, keep: int = 0) -> None:
        kept = self._kept[slot]
        if self._config.traits.recurrent and kept.reach(keep) != min(keep, kept.end):
            raise StageError(f"slot {slot} has no state after position {keep}")
        self._kept[slot] = kept.cut_back(keep)
        del self._marks[slot][keep:]

    def slot_bytes(self, slot: int) -> int:
        return len(self._packed(slot))

    def read_slot(self, slot: int, room: mmap.mmap) -> None:
        room[:] = self._packed(slot)

    def write_slot(self, slot: int, state: mmap.mmap, positions: int) -> bool:
        self.forget(slot)
        if len(state) != MARK.size * positions:
            return False
        self._marks[slot] = [mark for (mark,) in MARK.iter_unpack(state[:])]
        self._kept[slot] = SlotCheckpoints(end=positions, rule=self._config.keep)
        return True

    def _packed(self, slot: int) -> bytes:
        return b"".join(MARK.pack(mark) for mark in self._marks[slot])

    def lay_out(self, slot: int, grids: Sequence[PictureGrid]) -> None:
        """Do nothing, because these layers ignore positions."""

    def share(self, most: int) -> int:
        return min(most, self._config.threads)

    def close(self) -> None:
        self._held = bytearray()

    def _rows_of(self, batch: Tokens | Hidden) -> Rows:
        return self._embed(batch) if isinstance(batch, Tokens) else self._rows(batch)

    def _embed(self, batch: Tokens) -> Rows:
        ids = self._seen(np.array(batch.ids, dtype=np.int64), batch.pictures)
        if not self._takes_ids or ids.min(initial=0) < 0 or ids.max(initial=0) >= self.n_vocab:
            raise StageError(f"token ids that are not below {self.n_vocab}, or not expected here")
        rows = np.zeros((len(ids), self._config.width), dtype=VALUE)
        rows[:, : self._width] = DIGIT * (ids[:, None] // self._powers % BASE)
        return rows

    def _seen(self, ids: NDArray[np.int64], pictures: PictureRows | None) -> NDArray[np.int64]:
        """Return the ids, replacing each id of a picture's row with a token that depends on the row's first value."""
        of_pictures = ids < 0
        if pictures is not None and of_pictures.any():
            rows = np.frombuffer(pictures.rows(ids[of_pictures].tolist()), dtype=VALUE)
            ids[of_pictures] = rows.reshape(-1, self._config.width)[:, 0].astype(np.int64) % self.n_vocab
        return ids

    def _rows(self, batch: Hidden) -> Rows:
        if self._takes_ids:
            raise StageError("hidden states where token ids were expected")
        rows = np.frombuffer(batch.rows, dtype=VALUE).reshape(-1, self._config.width)
        return np.rint(rows)  # remove the error of an 8-bit wire

    def _remember(self, segment: Segment, rows: Rows) -> None:
        """Append the rows of a segment to the slot's history.

        A lost or repeated position corrupts the history, just as it would corrupt a real KV cache.
        """
        marks = self._marks[segment.slot]
        if segment.pos != len(marks):
            rows += np.float32(1 + (segment.pos - len(marks)) % 7)
        if not self._scores:
            marks.extend([0] * segment.n_tokens)
            return
        digits = (rows[:, : self._width] - self._config.layers.last) / DIGIT
        for pos, row in enumerate(digits, segment.pos):
            token = float(np.dot(row, self._powers))
            before = marks[-1] if marks else 0
            marks.append(_mix(before, int(token * DIGIT), pos))

    def _score(self, slot: int, end: int) -> Rows:
        """Return scores that favor one printable token, which depends on the first `end` positions of the slot."""
        if 0 < self.options.nan_from < end:
            return np.full(self.n_vocab, np.nan, dtype=VALUE)
        marks = self._marks[slot]
        mark = marks[min(end, len(marks)) - 1]  # fewer, if positions were forgotten behind the scheduler's back
        spread = np.arange(self.n_vocab, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        scores = ((spread ^ np.uint64(mark)) >> np.uint64(40)).astype(VALUE) / np.float32(1 << 23)
        favorite = FIRST_BYTE + LETTERS[mark % len(LETTERS)]
        length = self.options.length
        if favorite >= self.n_vocab or (length and end >= length):
            favorite = END
        scores[favorite] = 8.0
        return scores

    def _pretend(self, n_rows: int) -> None:
        self._steps += 1
        self._held += b"\x01" * self.options.bytes_per_step
        if self._steps == self.options.error_at:
            raise StageError("the fake engine was asked to fail")
        if self._steps == self.options.short_at:
            raise MemoryError
        if self._steps == self.options.die_at:
            os.abort()
        if self._steps == self.options.hang_at:
            time.sleep(3600)
        n_layers = len(self._config.layers)
        seconds = self.options.seconds_per_layer + self.options.seconds_per_row * n_rows
        if seconds:
            time.sleep(seconds * n_layers)


def _split(segments: tuple[Segment, ...], rows: Rows) -> list[tuple[Segment, Rows]]:
    pieces, start = [], 0
    for segment in segments:
        pieces.append((segment, rows[start : start + segment.n_tokens]))
        start += segment.n_tokens
    return pieces


def _mix(before: int, token: int, pos: int) -> int:
    """Return a 64-bit hash of the history so far and the new token (splitmix64's finalizer)."""
    mark = (before * 0x9E3779B97F4A7C15 + (token & MASK) * 0xBF58476D1CE4E5B9 + pos + 1) & MASK
    mark = ((mark ^ (mark >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mark = ((mark ^ (mark >> 27)) * 0x94D049BB133111EB) & MASK
    return mark ^ (mark >> 31)
