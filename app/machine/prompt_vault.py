"""The service that stores computed prompts on this machine's disk, within the owner's limits.

It accesses the disk outside the event loop.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from app.core.errors import AppError, Refused
from app.core.reasons import os_cause
from app.machine.kept_files import OWN, DamagedFile, KeptFiles, SealedReader, SealedWriter
from app.machine.paths import Home
from app.machine.secret_stores import SecretMap

PROMPT_KEY = "prompt key"  # the name of the secret
KEY_BYTES = 32
DAY_S = 86400.0
__all__ = ["OWN", "PROMPT_KEY", "PromptVault"]
log = logging.getLogger(__name__)
T = TypeVar("T")


class PromptVault:
    """The computed prompts on this machine's disk.

    is_on: returns whether the owner lets prompts be stored. chosen_bytes: returns the owner's limit, or None for the
    default limit.
    """

    def __init__(self, home: Home, is_on: Callable[[], bool], chosen_bytes: Callable[[], int | None]) -> None:
        self._files = KeptFiles(home.kept)
        self._secrets = SecretMap(home, PROMPT_KEY)
        self._is_on, self._chosen_bytes = is_on, chosen_bytes
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="prompts")
        self._key: bytes | None = None
        self.is_locked = False  # whether the key cannot be read, so nothing is kept
        self.used_bytes = self.limit_bytes = 0  # as last measured
        self.n_deletions = 0  # of all files; what was begun before one is not kept after it
        self._tasks = set[asyncio.Task[None]]()

    @property
    def is_on(self) -> bool:
        return self._is_on() and not self.is_locked

    async def keep_rules(self) -> None:
        """Delete incomplete files once, then delete long unused files now and every day. Runs until canceled.

        The vault closes when this is canceled.
        """
        try:
            await self.run(self._files.clean)
            while True:
                try:
                    await self.apply_rules()
                except (OSError, Refused) as error:
                    log.warning("the rules for kept prompts were not applied: %s", error)
                await asyncio.sleep(DAY_S)
        finally:
            await self.close()

    async def apply_rules(self) -> None:
        """Delete the files that the owner's current settings no longer allow."""
        if self._is_on():
            await self.run(lambda: self._files.trim(self._files.limit_bytes(self._chosen_bytes())))
        else:
            await self.remove_all()
        await self.measure()

    async def key(self) -> bytes | None:
        """Return this machine's key, creating it at the first call. Return None if it cannot be read."""
        if self._key is None and not self.is_locked:
            try:
                await self._secrets.change(
                    lambda known: known or {"key": base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}
                )
                self._key = base64.b64decode((await self._secrets.all())["key"], validate=True)
            except (AppError, KeyError, ValueError) as error:
                self.is_locked = True
                log.warning("prompts are not kept, because their key cannot be read: %s", error)
        return self._key

    async def begin(self, owner: str, name: str, positions: int, total_bytes: int) -> SealedWriter | None:
        """Begin a file. Return None if it may not or cannot be stored."""
        key = await self.key() if self.is_on else None
        if key is None:
            return None
        try:
            return await self.run(
                lambda: self._files.write(owner, name, key, positions, total_bytes, self._limit_now())
            )
        except OSError as error:
            log.info("a computed prompt is not kept: %s", error)
            return None

    async def commit(self, writer: SealedWriter) -> None:
        """Complete a file, then delete old ones if the limit is exceeded after concurrent writes.

        Raises OSError.
        """
        await self.run(writer.commit)
        await self.run(lambda: self._files.trim(self._limit_now()))
        await self.measure()

    async def open(self, owner: str, name: str) -> SealedReader | None:
        """Open a file. Return None if there is none. If it is damaged, delete it and return None."""
        key = await self.key() if self.is_on else None
        if key is None:
            return None
        try:
            return await self.run(lambda: self._files.read(owner, name, key))
        except (OSError, DamagedFile):
            await self.discard_damaged(owner, name)
            return None

    async def touch(self, owner: str, name: str) -> None:
        """Mark a file as just used."""
        await self.run(lambda: self._files.touch(owner, name))

    async def discard_damaged(self, owner: str, name: str) -> None:
        """Delete a file that cannot be opened. Its prompt will be computed again."""
        log.warning("a kept prompt is damaged and was deleted; it is computed again")
        await self.remove(owner, name)

    async def most_bytes(self) -> int:
        """Return the current limit for the size of all files together."""
        return await self.run(self._limit_now)

    async def has(self, owner: str, name: str) -> bool:
        return await self.run(lambda: self._files.has(owner, name))

    async def remove(self, owner: str, name: str) -> None:
        try:
            await self.run(lambda: self._files.remove(owner, name))
            await self.measure()
        except OSError as error:
            log.warning("a kept prompt could not be deleted: %s", error)

    async def remove_all(self) -> None:
        """Delete all files, including the prompts of other machines. Raises Refused if one could not be deleted."""
        self.n_deletions += 1
        try:
            await self.run(self._files.remove_all)
        except OSError as error:
            raise Refused("prompts_left", why=os_cause(error)) from error
        finally:
            await self.measure()

    async def keep_only(self, members: set[str]) -> None:
        """Delete the files of hosts that are not members of the household."""
        for owner in await self.run(self._files.owners):
            if owner not in members:
                try:
                    await self.run(lambda gone=owner: self._files.remove_owner(gone))  # type: ignore[misc]
                except OSError as error:
                    log.warning("the prompts of a removed machine could not be deleted: %s", error)
        await self.measure()

    async def next_piece(self, pieces: Iterator[bytes]) -> bytes:
        """Return the next piece of a file, or b"" at its end. Raises OSError or DamagedFile."""
        return await self.run(lambda: next(pieces, b""))

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function on the disk thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task in the background. It is canceled when the vault closes."""
        task = asyncio.get_running_loop().create_task(work, name="keep a prompt")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel all work. Incomplete files are deleted."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _limit_now(self) -> int:
        return self._files.limit_bytes(self._chosen_bytes())

    async def measure(self) -> None:
        """Update the size in use and the current limit."""
        self.used_bytes, self.limit_bytes = await self.run(lambda: (self._files.used_bytes(), self._limit_now()))
