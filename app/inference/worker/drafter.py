"""A draft model in a separate worker on this machine, which guesses the next tokens of a larger model."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

from app.catalog.gguf.gguf_file import part_paths
from app.core.errors import Reason, StageLost
from app.core.scheduler.schedule import shared_prefix
from app.core.speculation.draft import DraftToken
from app.inference.worker.worker import HERE, Worker
from app.machine.hardware.cores import Threads
from backends import worker_orders

LOAD_S = 120.0
WRITE_S = 10.0  # a draft that takes longer is given up
READ_AT_ONCE = 256  # tokens of a prompt in one order, so that other answers need not wait long


class Drafter:
    """A loaded draft model. It writes for one answer at a time, and remembers which tokens it has read in each
    slot.
    """

    def __init__(self, worker: Worker, n_vocab: int, memory_bytes: int) -> None:
        self._worker, self._n_vocab, self.memory_bytes = worker, n_vocab, memory_bytes
        self._read: dict[int, array[int]] = {}  # what its KV cache holds, by slot

    @classmethod
    async def open(
        cls, path: Path, target: Path, *, n_vocab: int, context: int, slots: int, threads: Threads, limit_bytes: int
    ) -> Drafter:
        """Load a draft model for the model in the file `target`. Raises BadInput, DoesNotFit or StageLost."""
        reads = [*part_paths(path), *part_paths(target)]
        worker = await Worker.start(HERE, threads=threads, reads=reads)
        order = worker_orders.OpenDraft(
            request=0,
            path=str(path),
            target=str(target),
            context=context,
            slots=slots,
            threads=threads.most,
            memory_limit_bytes=limit_bytes,
        )
        try:
            opened = await worker.ask(order, worker_orders.DraftOpened, LOAD_S)
        except BaseException:
            await worker.close()
            raise
        return cls(worker, n_vocab, opened.memory_bytes)

    @property
    def alive(self) -> bool:
        return self._worker.died is None

    def n_unread(self, slot: int, tokens: Sequence[int]) -> int:
        """Return how many of these tokens the draft model has not read yet."""
        return len(tokens) - shared_prefix(self._read.get(slot, ()), tokens)

    async def write(self, slot: int, tokens: array[int], n: int) -> list[DraftToken]:
        """Read these tokens and guess up to `n` more.

        If more than READ_AT_ONCE tokens are unread, only so many are read, and the result is empty, so that other
        answers need not wait. Raises StageLost or BadInput.
        """
        before = self._read.get(slot, array("i"))
        keep = min(shared_prefix(before, tokens), len(tokens) - 1)
        part = tokens[keep : keep + READ_AT_ONCE]
        is_last = keep + len(part) == len(tokens)
        order = worker_orders.WriteDraft(request=0, slot=slot, keep=keep, ids=tuple(part), n_tokens=n if is_last else 0)
        self._read.pop(slot, None)
        written = await self._worker.ask(order, worker_orders.DraftWritten, WRITE_S)
        self._read[slot] = tokens[: keep + len(part)] + array("i", written.ids[:-1])
        if not is_last:
            return []
        if len(written.ids) != len(written.chances) or not all(0 <= token < self._n_vocab for token in written.ids):
            self._worker.kill(Reason("worker_garbled", {"worker": "draft", "cause": Reason("token_invalid")}))
            raise StageLost("worker_garbled", worker="draft", cause=Reason("token_invalid"))
        return [DraftToken(*pair) for pair in zip(written.ids, written.chances, strict=True)]

    def kill(self) -> None:
        """Kill the worker, which releases its memory immediately."""
        self._worker.kill(Reason("worker_closed", {"worker": "draft"}))

    async def close(self) -> None:
        await self._worker.close()
