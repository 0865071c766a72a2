"""Engine packs for other machines of the household, if the owner allows copies. Nothing is sent unasked.

The listener has already checked that the requester is a member with the right to use other machines. Only whole
packs are offered, also if no graphics card of this computer uses them.
"""

from __future__ import annotations

import asyncio
import logging
import re

import msgspec
from aiohttp import web

from app.catalog.transfers.file_transfer import MY_TURN
from app.core.errors import BadInput, Busy, Refused
from app.machine.engine_packs.manifest import MAX_MANIFEST_BYTES
from app.machine.engine_packs.store import PackStore
from app.machine.settings import SettingsStore
from app.network.peer.listener import MEMBER
from app.network.traffic_limits import LinkPace
from app.node.downloads.file_streams import send_file
from app.node.pack_offers import MOST_OFFERED, Offered, OfferedPacks

log = logging.getLogger(__name__)

_SHA256 = re.compile(r"[0-9a-f]{64}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,2}")


class PackServer:
    """The routes that offer and send engine packs. Only one file is sent at a time."""

    def __init__(self, store: PackStore, choices: SettingsStore, pace: LinkPace) -> None:
        self._store, self._choices, self._pace = store, choices, pace
        self._turn = asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """Return whether a file is being sent."""
        return self._turn.locked()

    def application(self) -> web.Application:
        made = web.Application()
        made.add_routes([
            web.get("/offered", self._offered),
            web.get("/{sha256}/manifest", self._manifest),
            web.get("/{sha256}/{number}", self._file),
        ])  # fmt: skip
        return made

    async def _offered(self, request: web.Request) -> web.Response:
        """Respond with the packs that this machine would give."""
        offered = await asyncio.to_thread(self._packs) if self._choices.now.share_models else []
        return web.Response(body=msgspec.json.encode(OfferedPacks(offered)), content_type="application/json")

    def _packs(self) -> list[Offered]:
        whole = (pack for pack in self._store.packs() if pack.is_whole and pack.manifest and pack.sha256)
        return [Offered.of(pack) for pack in whole][:MOST_OFFERED]

    async def _manifest(self, request: web.Request) -> web.StreamResponse:
        return await self._send(request, -1)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        number = request.match_info["number"]
        if not _NUMBER.fullmatch(number):
            raise BadInput("pack_gone", name=self._choices.now.name)
        return await self._send(request, int(number))

    async def _send(self, request: web.Request, number: int) -> web.StreamResponse:
        """Send one file of a pack from the requested position, or its manifest."""
        own_name = self._choices.now.name
        if not self._choices.now.share_models:
            raise Refused("pack_not_shared", name=own_name)
        sha256 = request.match_info["sha256"]
        is_hash = _SHA256.fullmatch(sha256) is not None
        path = await asyncio.to_thread(self._store.file_of, sha256, number) if is_hash else None
        if path is None:
            raise BadInput("pack_gone", name=own_name)
        if self._turn.locked():
            raise Busy(MY_TURN, name=own_name)
        async with self._turn:
            if number < 0:
                log.info("%s copies the engine pack %s", request[MEMBER].name, path.parent.name)
            try:
                if number < 0 and path.stat().st_size > MAX_MANIFEST_BYTES:
                    raise BadInput("pack_gone", name=own_name)
                return await send_file(
                    request, path, self._pace, lambda: self._choices.now.share_models, lambda _: None
                )
            except (FileNotFoundError, PermissionError):
                raise BadInput("pack_gone", name=own_name) from None
