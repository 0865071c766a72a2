"""The vision of a model on this machine: a worker with its projector (mmproj) converts pictures to rows.

Pictures are decoded in separate processes (picture_reader.py) and never leave this machine. Other machines receive only
the hidden states that the next layers compute from them.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.catalog.gguf.gguf_file import part_paths
from app.core.errors import AppError, BadInput, Reason, StageLost
from app.inference.worker.picture_reader import decoded_picture
from app.inference.worker.worker import HERE, Worker
from app.machine.hardware.cores import Threads
from backends import worker_orders
from backends.contract import FIRST_PICTURE_ID
from backends.worker.process_resources import memory_allowance

LOAD_S = 600.0
SEE_S = 600.0  # a large picture is several tiles, each of which takes seconds on a slow processor
VALUE_BYTES = 4
MOST_CACHED_BYTES = 128 << 20  # the 16 pictures of a chat take 88 MB with the widest models
MOST_KNOWN = 1 << 16  # pictures whose ids are remembered
# Errors that another copy of the projector or another picture would not prevent
NO_FAULT_OF_FILE = frozenset(
    {"does_not_fit", "memory_short", "worker_closed", "worker_hung", "worker_memory_short", "worker_not_started"}
)


@dataclass(frozen=True, slots=True)
class SeenPart:
    """A part of the representation of a picture in a prompt: token ids, or row ids and the values of these rows.

    n_columns: the number of rows in a line of the picture if their positions have two dimensions, otherwise 0.
    """

    ids: tuple[int, ...]
    rows: bytes = b""  # float32
    n_columns: int = 0


@dataclass(frozen=True, slots=True)
class SeenPicture:
    """The representation of a picture in a prompt: its parts, in order."""

    parts: tuple[SeenPart, ...]

    @property
    def n_bytes(self) -> int:
        return sum(len(part.rows) for part in self.parts)


class VisionWorker:
    """A model's projector. It processes one picture at a time, and is loaded again if its process dies."""

    def __init__(
        self, worker: Worker, opened: worker_orders.ProjectorOpened, order: worker_orders.OpenProjector, model: str
    ) -> None:
        self._worker, self._order, self._model = worker, order, model
        self.width, self.is_causal = opened.width, opened.is_causal
        self._closed = False
        self._looking: asyncio.Task[SeenPicture | AppError] | None = None
        self._one_picture = asyncio.Lock()
        self._seen: OrderedDict[str, SeenPicture] = OrderedDict()  # by the hash of the file
        self._n_bytes = 0
        self._first_rows: OrderedDict[str, int] = OrderedDict()  # number of the first row of each known picture
        self._n_rows = 0  # numbers given to rows so far, never twice

    @classmethod
    async def open(
        cls, path: str, projector: str, threads: int, limit_bytes: int = 0, most_rows: int = 0, model: str = ""
    ) -> VisionWorker:
        """Load the projector of a model. Raises BadInput, DoesNotFit or StageLost.

        most_rows: the maximum number of rows for a picture of variable size, or 0 for the maximum in the file.
        model: the model's name for error messages.
        """
        order = worker_orders.OpenProjector(
            request=0,
            path=path,
            projector=projector,
            most_rows=most_rows,
            threads=threads,
            memory_limit_bytes=limit_bytes,
        )
        worker, opened = await _opened(order)
        return cls(worker, opened, order, model)

    async def see(self, data: bytes) -> SeenPicture:
        """Return the representation of a picture in the prompt. `data` is the picture's file. Raises BadInput or
        StageLost.
        """
        key = hashlib.sha256(data).hexdigest()
        if (known := self._known(key)) is not None:  # without waiting for the pictures of others
            return known
        async with self._one_picture:
            if (known := self._known(key)) is not None:
                return known
            if self._closed:
                raise StageLost("worker_closed", worker=HERE)
            async with asyncio.TaskGroup() as group:
                looking = self._looking = group.create_task(self._looked(key, data), name="look at a picture")
            if looking.cancelled():
                raise StageLost("worker_closed", worker=HERE)
            seen = looking.result()
            if isinstance(seen, AppError):
                raise seen
            return seen

    async def close(self) -> None:
        """End the projector's process, even if it is being loaded again. No picture can be processed afterward."""
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
        await self._worker.close()
        async with self._one_picture:
            await self._worker.close()  # it may have been replaced just before

    async def _looked(self, key: str, data: bytes) -> SeenPicture | AppError:
        """Return the representation of a new picture, or the error that explains why the model cannot process it."""
        try:
            picture = await decoded_picture(data)
            worker = await self._ready()
        except AppError as error:
            return error
        order = worker_orders.SeePicture(request=0, width=picture.width, height=picture.height, rgb=picture.data)
        try:
            seen = SeenPicture(self._numbered(key, await worker.ask_parts(order, (worker_orders.PictureParts,), SEE_S)))
        except AppError as error:
            return self._not_seen(error)
        self._remember(key, seen)
        return seen

    def _known(self, key: str) -> SeenPicture | None:
        if (known := self._seen.get(key)) is not None:
            self._seen.move_to_end(key)
        return known

    async def _ready(self) -> Worker:
        if self._worker.died is not None:
            try:
                self._worker, _ = await _opened(self._order)
            except AppError as error:
                raise unusable(self._model, error) from None
        return self._worker

    def _not_seen(self, error: AppError) -> AppError:
        """Return the error that explains why a picture could not be processed although the projector was loaded."""
        if error.reason.code in NO_FAULT_OF_FILE:
            return error
        return BadInput("picture_failed", model=self._model, words=error.reason)

    def _numbered(self, key: str, parts: Sequence[worker_orders.PictureParts]) -> tuple[SeenPart, ...]:
        """Assign an id to each row. A picture that is known already gets the same ids again."""
        pieces = list[tuple[tuple[int, ...], list[bytes], int]]()
        for part in parts:
            if part.continues and pieces:
                pieces[-1][1].append(part.rows)
            else:
                pieces.append((part.ids, [part.rows] if part.rows else [], part.n_columns))
        n_rows = sum(sum(map(len, rows)) for _, rows, _ in pieces) // (self.width * VALUE_BYTES)
        first = self._first_rows.pop(key, None)
        if first is None:
            first, self._n_rows = self._n_rows, self._n_rows + n_rows
        self._first_rows[key] = first
        while len(self._first_rows) > MOST_KNOWN:
            self._first_rows.popitem(last=False)
        seen = list[SeenPart]()
        for ids, rows, n_columns in pieces:
            values = b"".join(rows)
            if len(values) % (self.width * VALUE_BYTES * max(1, n_columns)) or n_columns < 0:
                self._worker.kill(Reason("worker_garbled", {"worker": HERE, "cause": Reason("vector")}))
                raise StageLost("worker_garbled", worker=HERE, cause=Reason("vector"))
            n = len(values) // (self.width * VALUE_BYTES)
            own = ids or tuple(FIRST_PICTURE_ID - first - row for row in range(n))
            seen.append(SeenPart(own, values, n_columns))
            first += n
        return tuple(seen)

    def _remember(self, key: str, seen: SeenPicture) -> None:
        self._seen[key] = seen
        self._n_bytes += seen.n_bytes
        while self._n_bytes > MOST_CACHED_BYTES and len(self._seen) > 1:
            _, oldest = self._seen.popitem(last=False)
            self._n_bytes -= oldest.n_bytes


async def _opened(order: worker_orders.OpenProjector) -> tuple[Worker, worker_orders.ProjectorOpened]:
    reads = [*part_paths(Path(order.path)), Path(order.projector)]
    worker = await Worker.start(HERE, threads=Threads(order.threads), reads=reads)
    if order.memory_limit_bytes:
        worker.limit_growth(memory_allowance(order.memory_limit_bytes, order.threads))
    try:
        return worker, await worker.ask(order, worker_orders.ProjectorOpened, LOAD_S)
    except BaseException:
        await worker.close()
        raise


def unusable(model: str, error: AppError) -> AppError:
    """Return the error that explains why a model cannot process pictures."""
    if error.reason.code in NO_FAULT_OF_FILE:
        return error
    return BadInput("projector_unusable", model=model, words=error.reason)
