"""The scheduler, which decides what the next micro-batch contains and when a waiting request gets a slot.

A pipeline of N machines reads prompts fastest with N + 1 micro-batches in flight: one on each machine and one queued at
the slowest. Answers in their decode phase are divided into N groups, so every machine has a group to compute. Prompts
fill the remaining rows of each micro-batch.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from backends.contract import Segment, SlotCheckpoints

# maximum rows of a micro-batch with a part of a prompt: the best value on CPUs; 32 or fewer are slower per row
CHUNK_ROWS = 64
BLOCK_ROWS = 16  # matrix multiplication works in blocks of rows; in chunks of other sizes, a row took 8 to 16 % longer
AGING_ROWS = 256  # for each micro-batch that passed it over, a prompt counts as this much shorter
MAX_OVERTAKEN = 4  # how often later requests may overtake the oldest one


@dataclass(frozen=True, slots=True)
class Limits:
    """The capacity of a pipeline. `machines` is the number of machines that compute concurrently."""

    slots: int
    kv_cells: int  # positions in the cache that all slots share
    context: int  # maximum positions per slot
    machines: int = 1
    chunk_rows: int = CHUNK_ROWS
    prompts_apart: bool = False  # whether the engine computes each prompt of a step separately

    @property
    def micro_batches(self) -> int:
        """Return the maximum number of micro-batches in flight."""
        return self.machines + 1


class Row(Protocol):
    """A running sequence, as seen by the scheduler."""

    @property
    def slot(self) -> int: ...
    @property
    def entered(self) -> int:
        """Return the number of positions that are in the KV cache or in flight to it."""
        ...

    @property
    def known(self) -> int:
        """Return the number of positions whose token ids are known."""
        ...

    @property
    def until(self) -> int:
        """Return the position beyond which the next chunk must not extend, usually `known`."""
        ...

    @property
    def since(self) -> int:
        """Return the number of the last micro-batch that it entered, or of the first one after its admission."""
        ...

    @property
    def is_apart(self) -> bool:
        """Return whether the sequence is computed alone.

        If a process ends during its step, no other sequence can be to blame. A picture that needs a step of its own is
        computed alone, too.
        """
        ...

    @property
    def block(self) -> int:
        """Return how many of the next rows are a picture that must be computed in one step, or 0."""
        ...

    @property
    def block_sees_all(self) -> bool:
        """Return whether the rows of `block` see each other."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """The next micro-batch."""

    segments: tuple[Segment, ...]
    more: bool  # whether other sequences are ready that did not fit
    sees_all: bool = False  # whether its rows see each other, which requires that it is a single segment


def chunk_size(pending: int, chunk_rows: int) -> int:
    """Return the number of rows in the next chunk.

    The number of chunks is as small as possible, and their sizes are nearly equal. All but the last consist of whole
    blocks.
    """
    n_chunks = -(-pending // chunk_rows)
    n_blocks = -(-pending // (n_chunks * BLOCK_ROWS))
    return min(n_blocks * BLOCK_ROWS, chunk_rows, pending)


def prompt_chunks(n_tokens: int, chunk_rows: int = CHUNK_ROWS) -> tuple[int, ...]:
    """Return the sizes of the chunks in which an otherwise idle pipeline reads a prompt."""
    sizes = []
    while n_tokens:
        sizes.append(chunk_size(n_tokens, chunk_rows))
        n_tokens -= sizes[-1]
    return tuple(sizes)


def next_batch(rows: Sequence[Row], limits: Limits, under_way: int, number: int) -> Batch | None:
    """Choose the segments of micro-batch `number`, or return None if nothing is ready.

    A sequence that is computed apart competes with the group of all other sequences. Whichever has waited longest is
    chosen.

    rows: the running sequences that may compute now. under_way: the number of micro-batches in flight. While any answer
    is in its decode phase, there is no additional micro-batch. It would split the answers into smaller groups, and each
    token would queue behind one more prompt chunk.
    """
    apart = [row for row in rows if row.is_apart and row.known > row.entered]
    if not apart:
        return _shared([row for row in rows if not row.is_apart], limits, under_way, number)
    first = min(apart, key=lambda row: (row.since, row.slot))
    rest = [row for row in rows if not row.is_apart]
    waiting = [row for row in rest if row.known > row.entered]
    is_next = not waiting or first.since <= min(row.since for row in waiting)
    if is_next and first.block:
        segment = Segment(first.slot, first.block, first.entered)
        return Batch((segment,), len(apart) + len(waiting) > 1 or segment.end < first.known, first.block_sees_all)
    batch = _shared([first] if is_next else rest, limits, under_way, number)
    return batch and replace(batch, more=batch.more or not is_next or len(apart) + len(waiting) > 1)


def _shared(rows: Sequence[Row], limits: Limits, under_way: int, number: int) -> Batch | None:
    ready = [row for row in rows if row.known - row.entered == 1]
    prompts = [row for row in rows if row.known - row.entered > 1]
    answering = sorted(row.slot for row in rows if row.known - row.entered <= 1)
    if answering and under_way >= limits.machines:
        return None
    chosen: list[Segment] = []
    if ready:
        share = min(-(-len(answering) // limits.machines), limits.chunk_rows)
        group = {slot: place // share for place, slot in enumerate(answering)}
        oldest = min(ready, key=lambda row: (row.since, row.slot))
        chosen = [
            Segment(row.slot, 1, row.entered)
            for row in sorted(ready, key=lambda row: row.slot)
            if group[row.slot] == group[oldest.slot]
        ]
    left = len(ready) - len(chosen)
    budget = limits.chunk_rows - len(chosen)
    prompts.sort(key=lambda row: row.known - row.entered - AGING_ROWS * (number - row.since))
    for place, row in enumerate(prompts):
        next_chunk = chunk_size(row.until - row.entered, limits.chunk_rows)
        size = min(next_chunk, budget)
        if limits.prompts_apart and size < next_chunk:
            # the engine computes it separately from the answers, so a second piece would read all weights once more
            size = 0 if place else size - size % BLOCK_ROWS or size
        if size > 0:
            chosen.append(Segment(row.slot, size, row.entered))
            budget -= size
        left += row.entered + size < row.known
    return Batch(tuple(chosen), left > 0) if chosen else None


def has_spare_machine(rows: Collection[Row], limits: Limits, under_way: int) -> bool:
    """Return whether a machine is idle although all known tokens are in flight.

    Such a machine may compute a guessed token.
    """
    idle = under_way < limits.machines and len(rows) < limits.machines
    return idle and all(row.entered >= row.known for row in rows)


@dataclass(frozen=True, slots=True)
class IdleSlot:
    """A slot that no request uses, and the tokens that remain in its KV cache."""

    slot: int
    used_at: int  # a counter of releases; the slot with the lowest value is evicted first
    conversation: str | None = None
    ids: Sequence[int] = ()
    kept: SlotCheckpoints | None = None  # None if the cache can be rolled back to any position
    n_beyond: int = 0  # positions after those of `ids` that are still in the cache, because their guesses were wrong

    @property
    def n_cells(self) -> int:
        """Return how many positions its cache holds."""
        return len(self.ids) + self.n_beyond


class CacheQuery(Protocol):
    """The part of a request that determines what it can reuse from a cache: its conversation and its tokens."""

    @property
    def conversation(self) -> str | None: ...
    @property
    def ids(self) -> Sequence[int]: ...


class WaitingRequest(CacheQuery, Protocol):
    """A request that is waiting for a slot."""

    @property
    def cells(self) -> int:
        """Return the maximum number of positions that the request may need for its prompt and its longest answer."""
        ...

    @property
    def has_priority(self) -> bool:
        """Return whether the request takes precedence over others, like the owner's own requests."""
        ...

    overtaken: int


@dataclass(frozen=True, slots=True)
class Admission:
    """The decision to give `slot` to the waiting request at `index`, which reuses its first `keep` positions.

    The slots in `evicted` are emptied.
    """

    index: int
    slot: int
    keep: int
    evicted: tuple[int, ...] = ()


def admit(
    waiting: Sequence[WaitingRequest], idle: Sequence[IdleSlot], reserved_cells: int, limits: Limits
) -> Admission | None:
    """Choose the request that gets a slot now.

    The result is None if no slot is free, or if the KV cache has too little room for the next request.

    reserved_cells: positions reserved for running requests. The request that shares most with an idle slot of its own
    conversation goes first, but it may overtake the oldest request at most MAX_OVERTAKEN times. A request with priority
    can be overtaken only by another request with priority.
    """
    if not waiting or not idle:
        return None
    order = [0]
    if waiting[0].overtaken < MAX_OVERTAKEN:
        gains = [
            _best_slot(request, idle)[1] if request.has_priority >= waiting[0].has_priority else 0
            for request in waiting
        ]
        order = sorted({0, max(range(len(gains)), key=lambda i: (gains[i], -i))}, key=lambda i: -gains[i])
    for index in order:
        admission = _place(index, waiting[index], idle, reserved_cells, limits)
        if admission is not None:
            return admission
    return None


def shared_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the length of the longest common prefix of two sequences of token ids."""
    low, high = 0, min(len(a), len(b))
    while low < high:  # bisection compares whole slices in C
        middle = (low + high + 1) // 2
        if list(a[low:middle]) == list(b[low:middle]):
            low = middle
        else:
            high = middle - 1
    return low


def reusable_positions(request: CacheQuery, idle: Sequence[IdleSlot]) -> int:
    """Return how many positions of a request are already in an idle slot."""
    return _best_slot(request, idle)[1] if idle else 0


def _best_slot(request: CacheQuery, idle: Sequence[IdleSlot]) -> tuple[IdleSlot, int]:
    """Return the idle slot to use and the number of its positions to reuse.

    The slot with the longest shared prefix is preferred, then an empty slot, then the least recently used.
    """
    best, keep = min(idle, key=lambda slot: (len(slot.ids) > 0, slot.used_at)), 0
    if request.conversation is None:
        return best, 0
    for slot in idle:
        if slot.conversation == request.conversation:
            # the last position is always computed, because its logits give the first token
            shared = min(shared_prefix(slot.ids, request.ids), len(request.ids) - 1)
            shared = shared if slot.kept is None else slot.kept.reach(shared)
            if shared > keep:
                best, keep = slot, shared
    return best, keep


def _place(
    index: int, request: WaitingRequest, idle: Sequence[IdleSlot], reserved_cells: int, limits: Limits
) -> Admission | None:
    best, keep = _best_slot(request, idle)
    evictable = sorted((s for s in idle if s is not best and s.n_cells), key=lambda slot: slot.used_at)
    short = reserved_cells + request.cells + sum(s.n_cells for s in evictable) - limits.kv_cells
    evicted = []
    for slot in evictable:
        if short <= 0:
            break
        evicted.append(slot.slot)
        short -= slot.n_cells
    return Admission(index, best.slot, keep, tuple(evicted)) if short <= 0 else None


FIRST_S = 1.0  # the assumed duration of a request until one has ended


NEWEST = 0.2  # the weight of the latest request in the usual duration


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A request that is waiting for a slot.

    `place` is 1 for the next request. `seconds` is None until an answer has ended.
    """

    conversation: str | None
    place: int
    seconds: float | None


@dataclass(slots=True)
class UsualDuration:
    """The usual duration of a request, learned from recent requests."""

    seconds: float = FIRST_S
    is_known: bool = False

    def record(self, seconds: float) -> None:
        """Update the usual duration with the duration of a completed request."""
        part = NEWEST if self.is_known else 1.0
        self.seconds += part * (seconds - self.seconds)
        self.is_known = True

    def wait(self, n_before: int, slots: int) -> int:
        """Return the expected wait behind `n_before` requests, in whole seconds and at least one."""
        return max(1, math.ceil(self.seconds * n_before / slots))


def queue_place(waiting: Sequence[WaitingRequest], has_priority: bool) -> int:
    """Return the index at which a new request enters the queue, and count it as overtaking the requests behind it.

    A request with priority may overtake each other request at most MAX_OVERTAKEN times.
    """
    place = len(waiting)
    while has_priority and place and not waiting[place - 1].has_priority:
        if waiting[place - 1].overtaken >= MAX_OVERTAKEN:
            break
        place -= 1
    for request in waiting[place:]:
        request.overtaken += 1
    return place


def queued_requests(
    waiting: Sequence[str | None], elapsed_s: Sequence[float], usual: UsualDuration, slots: int
) -> tuple[QueuedRequest, ...]:
    """Return the waiting requests in order. `waiting` lists their conversations.

    elapsed_s: how long each running request has been running. A slot is expected to become free when its request has
    taken the usual time. An overdue request may end at any moment. It is expected to take as much longer as it is
    already overdue.
    """
    if not usual.is_known:
        return tuple(QueuedRequest(conversation, place, None) for place, conversation in enumerate(waiting, 1))
    free = [abs(usual.seconds - elapsed) for elapsed in elapsed_s[:slots]]
    free += [0.0] * (slots - len(free))
    heapq.heapify(free)
    entries = []
    for place, conversation in enumerate(waiting, 1):
        seconds = free[0]
        heapq.heapreplace(free, seconds + usual.seconds)
        entries.append(QueuedRequest(conversation, place, seconds))
    return tuple(entries)
