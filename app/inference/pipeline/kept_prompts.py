"""The prompts whose computed states this host has kept on disk, and the choice of one that a new request can
reuse.

Each machine stores the states of its own layers (app/inference/stages/slot_keeper.py). Only this host stores the
tokens. The machines receive a hash made with this host's key, so that none of them can use it to check a guessed
prompt.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import msgspec

from app.core.scheduler.schedule import prompt_chunks
from app.machine.kept_files import DamagedFile
from app.machine.prompt_vault import OWN, PromptVault

TOKEN_BYTES = 4
LEAST_TOKENS = 512  # a shorter prompt is computed as fast as it is read
LEAST_GAIN = 256  # tokens beyond what the KV cache still has
MOST_PROMPTS, MOST_TOKENS = 256, 4 << 20  # the oldest are forgotten
INDEX = hashlib.sha256(b"index of prompts").hexdigest()
log = logging.getLogger(__name__)


class _Entry(msgspec.Struct, frozen=True):
    model: str
    scope: str
    ids: bytes  # int32
    used_at: float


@dataclass(frozen=True, slots=True)
class KeptPrompt:
    """A kept state whose first tokens are those of a request. `positions` is its length, and `usable` how many
    positions of it the request can use.
    """

    key: bytes
    positions: int
    usable: int


class PromptIndex:
    """The tokens of all kept prompts of this host, in one encrypted file."""

    def __init__(self, vault: PromptVault) -> None:
        self.vault = vault
        self._entries: dict[bytes, _Entry] = {}
        self._is_loaded, self._loading = False, asyncio.Lock()

    async def load(self) -> None:
        """Read the file on the first call. A damaged file is deleted, and its prompts will be computed again."""
        async with self._loading:
            if not self._is_loaded and self.vault.is_on:
                await self._load()
                self._is_loaded = True

    async def _load(self) -> None:
        reader = await self.vault.open(OWN, INDEX)
        if reader is None:
            return
        try:
            pieces, data = reader.pieces(), bytearray()
            while piece := await self.vault.next_piece(pieces):
                data += piece
            entries = msgspec.msgpack.decode(bytes(data), type=list[_Entry])
        except (OSError, DamagedFile, msgspec.MsgspecError):
            await self.vault.discard_damaged(OWN, INDEX)
            return
        finally:
            reader.close()
        for entry in entries:
            if key := await self._key(entry):
                self._entries[key] = entry

    async def add(self, model: str, scope: str, ids: Sequence[int]) -> None:
        """Record that the state of these tokens is kept. Forget kept prompts that these tokens continue."""
        entry = _Entry(model, scope, array("i", ids).tobytes(), time.time())
        key = await self._key(entry)
        if key is None:
            return
        covered = [k for k, known in self._entries.items() if _covers(entry, known)]
        for old in covered:
            del self._entries[old]
        self._entries[key] = entry
        self._forget_oldest()
        await self._save()

    async def remove(self, key: bytes) -> None:
        if self._entries.pop(key, None) is not None:
            await self._save()

    def forget(self) -> None:
        """Forget all prompts, because their files were deleted."""
        self._entries.clear()

    async def key_of(self, model: str, scope: str, ids: Sequence[int]) -> bytes | None:
        """Return the hash that identifies these tokens, or None if the key for the hash is not available."""
        return await self._key(_Entry(model, scope, array("i", ids).tobytes(), 0.0))

    def best(self, model: str, scope: str, ids: Sequence[int]) -> tuple[bytes, int, int] | None:
        """Return the kept prompt that shares the longest beginning with these tokens, or None: its key, its
        length, and the number of shared tokens.
        """
        packed = array("i", ids).tobytes()
        known = [
            (_shared_tokens(entry.ids, packed), -len(entry.ids), key, len(entry.ids) // TOKEN_BYTES)
            for key, entry in self._entries.items()
            if entry.model == model and entry.scope == scope
        ]
        shared, _, key, length = max(known, default=(0, 0, b"", 0))
        return (key, length, shared) if shared else None

    def _forget_oldest(self) -> None:
        by_age = sorted(self._entries.items(), key=lambda item: -item[1].used_at)
        n_tokens = accumulate(len(entry.ids) // TOKEN_BYTES for _, entry in by_age)
        kept = [item for item, total in zip(by_age, n_tokens, strict=True) if total <= MOST_TOKENS]
        self._entries = dict(kept[:MOST_PROMPTS])

    async def _key(self, entry: _Entry) -> bytes | None:
        secret = await self.vault.key()
        if secret is None:
            return None
        about = msgspec.msgpack.encode((entry.model, entry.scope, entry.ids))
        return hmac.new(secret, about, hashlib.sha256).digest()

    async def _save(self) -> None:
        data = msgspec.msgpack.encode(list(self._entries.values()))
        writer = await self.vault.begin(OWN, INDEX, len(self._entries), len(data))
        if writer is None:
            return
        try:
            await self.vault.run(lambda: writer.add(data))
            await self.vault.commit(writer)
        except OSError as error:
            await self.vault.run(writer.abort)
            log.info("the list of kept prompts could not be written: %s", error)


class ModelPrompts:
    """The kept prompts of one model."""

    def __init__(self, index: PromptIndex, model: str) -> None:
        self._index, self._model = index, model
        self._n_deletions = 0  # when the latest prompt was to be kept

    @property
    def is_on(self) -> bool:
        return self._index.vault.is_on

    async def find(self, scope: str, ids: Sequence[int], chunk_rows: int, *, recurrent: bool) -> KeptPrompt | None:
        """Return the kept prompt that saves the most computation for these tokens, or None.

        A kept prompt is used only up to the end of one of the request's chunks. The remaining tokens are then computed
        in the same chunks as without it, so that the answer is identical, bit for bit. A recurrent state can only be
        used as a whole.
        """
        if not self.is_on or len(ids) < LEAST_TOKENS:
            return None
        await self._index.load()
        if (best := self._index.best(self._model, scope, ids)) is None:
            return None
        await self._index.vault.touch(OWN, INDEX)  # without it, nobody could use the states
        key, length, shared = best
        shared = min(shared, len(ids) - 1)
        if recurrent:
            return KeptPrompt(key, length, length) if shared >= length else None
        usable = max((end for end in accumulate(prompt_chunks(len(ids), chunk_rows)) if end <= shared), default=0)
        return KeptPrompt(key, length, usable) if usable else None

    async def new_key(self, scope: str, ids: Sequence[int]) -> bytes | None:
        """Return the key under which to keep these tokens, or None if most of them are already kept."""
        if not self.is_on or len(ids) < LEAST_TOKENS:
            return None
        await self._index.load()
        best = self._index.best(self._model, scope, ids)
        if best is not None and best[2] > len(ids) - LEAST_TOKENS:
            return None
        self._n_deletions = self._index.vault.n_deletions
        return await self._index.key_of(self._model, scope, ids)

    async def add(self, scope: str, ids: Sequence[int]) -> None:
        """Record that these tokens are kept under the latest key from `new_key`, unless all prompts have been
        deleted since then.
        """
        if self._n_deletions == self._index.vault.n_deletions:
            await self._index.add(self._model, scope, ids)

    async def remove(self, key: bytes) -> None:
        await self._index.remove(key)


def _shared_tokens(a: bytes, b: bytes) -> int:
    """Return how many tokens two packed sequences have in common at their beginning."""
    low, high = 0, min(len(a), len(b)) // TOKEN_BYTES
    while low < high:  # as in `shared_prefix`, but without a list of numbers for each of many prompts
        middle = (low + high + 1) // 2
        if a[low * TOKEN_BYTES : middle * TOKEN_BYTES] == b[low * TOKEN_BYTES : middle * TOKEN_BYTES]:
            low = middle
        else:
            high = middle - 1
    return low


def _covers(entry: _Entry, other: _Entry) -> bool:
    same = (entry.model, entry.scope) == (other.model, other.scope)
    return same and entry.ids.startswith(other.ids)
