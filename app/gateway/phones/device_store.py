"""The phones and tablets that may chat here: their names, when they were used, and the hashes of their tokens."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from app.core.errors import BadInput, DoesNotFit, Reason
from app.core.reasons import os_cause
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically

MAX_DEVICES = 32
MAX_NAME_CHARS = 40
SAVED_SECONDS = 60.0  # a device's last use is saved at most this often


class Device(msgspec.Struct, frozen=True, omit_defaults=True):
    """A phone or tablet. Its token has 256 random bits, so a plain hash of it reveals nothing."""

    name: str
    token_sha256: str
    added_at: float  # Unix time
    used_at: float | None = None


class DeviceStore:
    """The devices by ID, kept in one file.

    A damaged file is set aside. Every device then needs a new code, and `note` reports this to the owner.
    """

    def __init__(
        self, file: Path, clock: Callable[[], float] = time.time, note: Callable[[Reason], None] = lambda _: None
    ) -> None:
        def lost(aside: Path) -> None:
            note(Reason("log_node_phones_lost", {"path": str(aside)}))

        self._file, self._clock = file, clock
        self._devices = read_json_or_default(file, dict[str, Device], "the list of phones", lost=lost)
        self._saved_at: dict[str, float] = {}
        self._saving = asyncio.Lock()

    def all(self) -> Mapping[str, Device]:
        return self._devices

    def name(self, device: str) -> str:
        """Return a device's name, or "" if it has been removed."""
        return known.name if (known := self._devices.get(device)) else ""

    def owner(self, presented: str) -> str | None:
        """Return the ID of the device with this token, or None. The comparison takes constant time."""
        digest, owner = _hash(presented), None
        for device, known in self._devices.items():
            if hmac.compare_digest(digest.encode(), known.token_sha256.encode()):
                owner = device
        return owner

    async def add(self, name: str) -> str:
        """Add a device and return its token, which is not stored anywhere. Raises BadInput or DoesNotFit."""
        token = "pd-" + secrets.token_urlsafe(32)

        def added(devices: dict[str, Device]) -> dict[str, Device]:
            self.require_room()
            unique = _unique(plain_name(name), {known.name for known in devices.values()})
            return devices | {secrets.token_hex(4): Device(unique, _hash(token), self._clock())}

        await self._change(added)
        return token

    def require_room(self) -> None:
        """Raise BadInput if the maximum number of devices is reached."""
        if len(self._devices) >= MAX_DEVICES:
            raise BadInput("phones_many", most=MAX_DEVICES)

    async def remove(self, ref: str) -> str:
        """Remove the device with this ID or name, and return its ID. Raises BadInput or DoesNotFit.

        An ID takes precedence over a name, because devices choose their own names.
        """
        ids = {known.name: device for device, known in self._devices.items()}
        device = ref if ref in self._devices else ids.get(ref)
        if device is None:
            raise BadInput("phone_unknown", name=ref[:MAX_NAME_CHARS], there=", ".join(sorted(ids)) or Reason("none"))
        await self._change(lambda devices: {key: known for key, known in devices.items() if key != device})
        return device

    async def note_use(self, device: str) -> None:
        """Record that a device has just asked a question. Raises DoesNotFit."""
        now = self._clock()
        used = {device: msgspec.structs.replace(self._devices[device], used_at=now)} if device in self._devices else {}
        if now - self._saved_at.get(device, 0.0) < SAVED_SECONDS:
            self._devices = self._devices | used
            return
        self._saved_at[device] = now
        await self._change(lambda devices: devices | (used if device in devices else {}))

    async def _change(self, how: Callable[[dict[str, Device]], dict[str, Device]]) -> None:
        async with self._saving:
            devices = how(self._devices)
            try:
                await asyncio.to_thread(write_atomically, self._file, msgspec.json.encode(devices))
            except OSError as error:
                raise DoesNotFit("settings_unsaved", path=str(self._file), why=os_cause(error)) from error
            self._devices = devices


def plain_name(name: str) -> str:
    """Return a device's name in a form for lists: a single line of limited length without control characters."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in name).split())[:MAX_NAME_CHARS].strip()


def _unique(name: str, taken: set[str]) -> str:
    name = name or "Phone"
    if name not in taken:
        return name
    number = next(number for number in range(2, MAX_DEVICES + 3) if f"{name} {number}" not in taken)
    return f"{name} {number}"


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
