"""Slot states that are saved to disk on the machine that computes the layers, and restored after a restart."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from app import __version__
from app.core.errors import AppError
from app.inference.worker.worker import Worker
from app.machine.kept_files import DamagedFile, SealedReader
from app.machine.prompt_vault import PromptVault
from backends import worker_orders
from backends.contract import NumberFormat, StageConfig

ASK_S = 300.0  # time limit of an order, which waits for the steps in flight
CANCELED_S = 1.0  # how long a canceled copy may take to be released
RESTORE_S = 45.0  # its host waits a little longer and then computes the prompt
QUIET_S = 0.25  # a worker that has not computed for so long is idle
PATIENCE_S = 300.0  # a copy that could not be written for so long, because the worker was never idle, is dropped
LOOK_S = 0.05
log = logging.getLogger(__name__)


def state_identity(layers: str, number: NumberFormat, config: StageConfig) -> str:
    """Return a text that identifies everything, apart from the tokens, on which the state of a slot depends.

    layers: identifies the file of the layers or of their model. number: the format of hidden states on the wire.
    """
    range_ = f"{config.layers.first}-{config.layers.last}"
    devices = ",".join(config.devices) + str(config.device_layers) + config.split
    context = config.kv_cells // config.slots if config.apart else config.kv_cells
    length = f" {context}" if config.traits.by_context else ""
    made_by = f"{__version__} {config.engine} {_engine_version()} {platform.machine()} {devices} {config.exact}"
    return f"{layers} {config.role} {range_} {number.name} {config.kv} {config.flash_attention} {made_by}{length}"


@cache
def _engine_version() -> str:
    try:
        return version("llama-cpp-python")
    except PackageNotFoundError:  # a build without packages' records, whose engine changes only with the version
        return ""


class SlotKeeper(Protocol):
    """A way to keep and restore the slots of one run, on this machine or on another."""

    async def keep(self, slot: int, positions: int, key: bytes) -> bool:
        """Copy the state of an unused slot, and write it to disk later, while the worker is idle. Return whether
        the copy was made.

        key: identifies the tokens. Never raises AppError.
        """
        ...

    async def restore(self, slot: int, key: bytes) -> int:
        """Restore a saved state in an empty slot. Return its number of positions, or 0 if there is no saved state.

        Never raises AppError.
        """
        ...


class WorkerSlotKeeper:
    """The slot keeper of a run in a worker of this machine.

    owner: the folder in the vault.
    identity: identifies everything, apart from the tokens, on which the state depends (see `state_identity`).
    room: returns how many bytes a copy may use now.
    """

    def __init__(
        self,
        worker: Worker,
        pipeline: bytes,
        epoch: Callable[[], int],
        vault: PromptVault,
        owner: str,
        identity: str,
        room: Callable[[], int],
    ) -> None:
        self._worker, self._pipeline, self._epoch = worker, pipeline.hex(), epoch
        self._vault, self._owner, self._identity = vault, owner, identity
        self._room = room
        self._turn = asyncio.Lock()  # held while the worker has a copy that is to be written to disk
        self._restoring = asyncio.Lock()
        self._read_bytes = self._written_bytes = 0  # memory that the worker may take for copies

    def most_copy_bytes(self) -> int:
        """Return the maximum amount of memory that the worker may use for copies now."""
        return self._read_bytes + self._written_bytes

    async def keep(self, slot: int, positions: int, key: bytes) -> bool:
        name, epoch, n_deletions = self._name(key), self._epoch(), self._vault.n_deletions
        if self._turn.locked() or not self._vault.is_on:
            return False
        if await self._vault.has(self._owner, name):
            return True
        await self._turn.acquire()
        is_copied, within_s = False, ASK_S
        try:
            self._read_bytes = most_bytes = min(self._room() - self._written_bytes, await self._vault.most_bytes())
            piece = await self._read(slot, epoch, 0, most_bytes)
            self._read_bytes = piece.total_bytes
            is_copied = piece.positions == positions and bool(piece.data)
        except asyncio.CancelledError:  # the layers are released, or the node ends
            within_s = CANCELED_S
            raise
        except AppError as error:
            log.info("a computed prompt is not kept: %s", error)
        finally:
            if not is_copied:
                await self._end_copy(slot, epoch, within_s)
        if is_copied:
            self._vault.spawn(self._write_out(slot, epoch, name, piece, n_deletions))
        return is_copied

    async def restore(self, slot: int, key: bytes) -> int:
        name, began = self._name(key), time.monotonic()
        reader = await self._vault.open(self._owner, name)
        if reader is None:
            return 0
        positions = 0
        try:
            async with asyncio.timeout(RESTORE_S), self._restoring:
                if reader.total_bytes <= self._room() - self._read_bytes:
                    self._written_bytes = reader.total_bytes
                    try:
                        positions = await self._write_in(slot, reader)
                    finally:
                        self._written_bytes = 0
        except (AppError, TimeoutError) as error:
            log.info("a kept prompt could not be restored: %s", error)
        except (DamagedFile, OSError):
            await self._vault.discard_damaged(self._owner, name)
        finally:
            reader.close()
        if positions:
            log.info("%d positions were restored in %.2f s", positions, time.monotonic() - began)
        return positions

    async def _write_in(self, slot: int, reader: SealedReader) -> int:
        """Send a state to the worker, and return its number of positions. Raises AppError, DamagedFile or OSError."""
        epoch, offset, pieces = self._epoch(), 0, reader.pieces()
        written = worker_orders.SlotWritten(request=0, n_bytes=0)
        while data := await self._vault.next_piece(pieces):
            order = worker_orders.WriteSlot(
                request=0,
                pipeline=self._pipeline,
                epoch=epoch,
                slot=slot,
                positions=reader.positions,
                total_bytes=reader.total_bytes,
                offset=offset,
                data=data,
            )
            written = await self._worker.ask(order, worker_orders.SlotWritten, ASK_S)
            offset += len(data)
            if written.n_bytes != offset:
                return 0
        return written.positions

    async def _write_out(
        self, slot: int, epoch: int, name: str, piece: worker_orders.SlotPiece, n_deletions: int
    ) -> None:
        """Write a copy to disk, piece by piece, while the worker is idle."""
        writer, within_s = None, ASK_S
        try:
            if self._vault.n_deletions != n_deletions:
                return
            writer = await self._vault.begin(self._owner, name, piece.positions, piece.total_bytes)
            if writer is None:
                return
            offset, total_bytes = 0, piece.total_bytes
            patience_ends = time.monotonic() + PATIENCE_S
            while True:
                await self._vault.run(partial(writer.add, piece.data))
                offset += len(piece.data)
                if offset >= total_bytes:
                    break
                while not self._is_idle():
                    if time.monotonic() > patience_ends:
                        return
                    await asyncio.sleep(LOOK_S)
                piece = await self._read(slot, epoch, offset, total_bytes)
                if not piece.data:
                    return
            await self._vault.commit(writer)
            writer = None
        except asyncio.CancelledError:  # the node ends, and so will the worker
            within_s = CANCELED_S
            raise
        except (AppError, OSError) as error:
            log.info("a computed prompt is not kept: %s", error)
        finally:
            try:
                if writer is not None:
                    await self._vault.run(writer.abort)
            finally:
                await self._end_copy(slot, epoch, within_s)

    async def _read(self, slot: int, epoch: int, offset: int, most_bytes: int) -> worker_orders.SlotPiece:
        order = worker_orders.ReadSlot(
            request=0, pipeline=self._pipeline, epoch=epoch, slot=slot, offset=offset, most_bytes=most_bytes
        )
        return await self._worker.ask(order, worker_orders.SlotPiece, ASK_S)

    def _is_idle(self) -> bool:
        worker = self._worker
        return worker.busy_since is None and time.monotonic() - worker.last_done_at > QUIET_S

    async def _end_copy(self, slot: int, epoch: int, within_s: float = ASK_S) -> None:
        """Make the worker release the remainder of its copy.

        within_s: how long to wait for a busy worker. If that is too short, the worker's next copy replaces this one.
        """
        try:
            with suppress(AppError, TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._read(slot, epoch, 0, 0)
        finally:
            self._read_bytes = 0
            self._turn.release()

    def _name(self, key: bytes) -> str:
        return hashlib.sha256(self._identity.encode() + b"\0" + key).hexdigest()
