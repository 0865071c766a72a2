"""Engine packs for other machines of the household, if the owner allows copies. Nothing is sent unasked.

The listener has already checked that the requester is a member with the right to use other machines. Only complete
packs are offered, even if no graphics card of this computer uses them. Requests use what the node already knows about
its packs, so they neither read the disk to find them nor wait for a change of the packs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from aiohttp import web

from app.catalog.transfers.file_transfer import MY_TURN
from app.core.errors import BadInput, Busy, Refused
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import MachineId
from app.machine.engine_packs.manifest import MANIFEST
from app.machine.engine_packs.store import InstalledPack
from app.machine.settings import SettingsStore
from app.network.peer.listener import MEMBER
from app.network.traffic_limits import LinkPace
from app.node.downloads.file_streams import send_file
from app.node.engines.engine_packs import EnginePackService
from app.node.engines.pack_offers import MOST_OFFERED, Offered, OfferedPacks

log = logging.getLogger(__name__)

_NUMBER = re.compile(r"0|[1-9][0-9]{0,2}")


class PackServer:
    """The routes that offer and send engine packs. Each member receives one file at a time."""

    def __init__(
        self,
        packs: EnginePackService,
        choices: SettingsStore,
        pace: LinkPace,
        members: Callable[[], Mapping[MachineId, Member]],
    ) -> None:
        """Create the routes. A member needs the right to use other machines; if it loses the right, its transfer
        is stopped.

        members: returns the current members of the household.
        """
        self._packs, self._choices, self._pace, self._members = packs, choices, pace, members
        self._receivers: set[MachineId] = set()

    @property
    def is_busy(self) -> bool:
        """Return whether a file is being sent."""
        return bool(self._receivers)

    def application(self) -> web.Application:
        made = web.Application()
        made.add_routes([
            web.get("/offered", self._offered),
            web.get("/{sha256}/manifest", self._manifest),
            web.get("/{sha256}/{number}", self._file),
        ])  # fmt: skip
        return made

    async def _offered(self, request: web.Request) -> web.Response:
        """Respond with the packs that this machine offers."""
        whole = self._packs.whole[:MOST_OFFERED] if self._choices.now.share_models else ()
        offered = [Offered.of(pack) for pack in whole]
        return web.Response(body=msgspec.json.encode(OfferedPacks(offered)), content_type="application/json")

    async def _manifest(self, request: web.Request) -> web.StreamResponse:
        """Send a manifest, even while the member receives a file. Manifests are small, and every copy starts with
        one.
        """
        pack, member = self._wanted(request), request[MEMBER]
        log.info("%s copies the engine pack %s", member.name, pack.name)
        return await self._send(request, self._packs.path_of(pack, MANIFEST))

    async def _file(self, request: web.Request) -> web.StreamResponse:
        """Send one file of a pack from the requested position."""
        pack, number = self._wanted(request), request.match_info["number"]
        files = pack.manifest.files if pack.manifest else []
        if not _NUMBER.fullmatch(number) or int(number) >= len(files):
            raise BadInput("pack_gone", name=self._choices.now.name)
        receiver = request[MEMBER].id
        if receiver in self._receivers:
            raise Busy(MY_TURN, name=self._choices.now.name)
        self._receivers.add(receiver)
        try:
            return await self._send(request, self._packs.path_of(pack, files[int(number)].path))
        finally:
            self._receivers.discard(receiver)

    def _wanted(self, request: web.Request) -> InstalledPack:
        """Return the requested pack, identified by the hash of its manifest. Raises Refused or BadInput."""
        own_name = self._choices.now.name
        if not self._choices.now.share_models:
            raise Refused("pack_not_shared", name=own_name)
        sha256 = request.match_info["sha256"]
        pack = next((pack for pack in self._packs.whole if pack.sha256 == sha256), None)
        if pack is None:
            raise BadInput("pack_gone", name=own_name)
        return pack

    async def _send(self, request: web.Request, path: Path) -> web.StreamResponse:
        receiver = request[MEMBER].id

        def is_allowed() -> bool:
            member = self._members().get(receiver)
            return self._choices.now.share_models and member is not None and Role.HOST in member.roles

        try:
            return await send_file(request, path, self._pace, is_allowed, lambda _: None)
        except (FileNotFoundError, PermissionError):
            raise BadInput("pack_gone", name=self._choices.now.name) from None
