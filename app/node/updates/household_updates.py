"""Requests to other machines of the household to update. Each owner decides on their own screen.

Only the request with a version number is sent. Each machine downloads its update from the address of its own build.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
import msgspec
from aiohttp import web

from app import __version__, launcher
from app.api.computer import AskedMachine, AskedMachines
from app.core.errors import AppError, Reason, Refused
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.decoding import decode
from app.network.network import Network
from app.network.peer.listener import MEMBER
from app.network.peer.peer_client import HostClient
from app.network.peer.peer_link import PeerLink
from app.network.traffic_limits import whole_body
from app.node.updates.release import Number

log = logging.getLogger(__name__)

UPDATES_PATH = "/updates"  # of the routes between machines
MOST_BYTES = 4096
SECONDS = 10.0
ASKED, SETTLED = 200, 204  # the owner is asked; the machine has the version, or its owner said no
ANSWERS = {ASKED: "asked", SETTLED: "settled"}


class Wish(msgspec.Struct, frozen=True):
    """The request of an admin to update to this version."""

    version: Number


@dataclass(frozen=True, slots=True)
class ReceivedWish:
    """A request that this machine received and that its owner has not answered yet."""

    machine: str
    version: str


class HouseholdUpdates:
    """Sends update requests to other machines, and stores the last one that this machine received."""

    def __init__(self, network: Network, note: Callable[[Reason], None], own: str = __version__) -> None:
        self._network, self._note, self._own = network, note, own
        self._answered: set[str] = set()  # versions that the owner was asked about and does not want now
        self.wish: ReceivedWish | None = None

    def application(self) -> web.Application:
        """Return the routes for other machines. The listener serves them only to members."""
        made = web.Application()
        made.add_routes([web.post("/asked", self._receive)])
        return made

    def answered(self) -> None:
        """Forget the request after the owner's answer, whatever it was. Later requests for the same version are
        ignored.
        """
        if self.wish is not None:
            self._answered.add(self.wish.version)
            self.wish = None

    async def ask(self, version: str) -> AskedMachines:
        """Ask all connected machines to update to a version. The result shows which machines could not be asked."""
        members, links = self._network.members, dict(self._network.links)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._ask(members[machine], link, version), name="ask for an update")
                for machine, link in links.items()
                if machine in members
            ]
        return AskedMachines(sorted((task.result() for task in tasks), key=lambda machine: machine.name), version)

    async def _ask(self, member: Member, link: PeerLink, version: str) -> AskedMachine:
        body = msgspec.json.encode(Wish(version))
        client = HostClient(member, link.address, link.host_session, link.finished, UPDATES_PATH)
        try:
            async with asyncio.timeout(SECONDS), client.request("POST", "/asked", body) as answer:
                return AskedMachine(member.name, ANSWERS.get(answer.status, ""))
        except (AppError, aiohttp.ClientError, OSError) as error:
            log.info("%s could not be asked to update: %s", member.name, error)
            return AskedMachine(member.name)

    async def _receive(self, request: web.Request) -> web.Response:
        """Store an admin's request until this machine's owner answers it. Raises Refused if the sender is not an
        admin.
        """
        member = request[MEMBER]
        if Role.ADMIN not in member.roles:
            raise Refused("not_admin")
        wish = decode(await whole_body(request.content, request.content_length, MOST_BYTES), Wish)
        if not launcher.is_newer(wish.version, self._own) or wish.version in self._answered:
            return web.Response(status=SETTLED)
        if self.wish is None or self.wish.version != wish.version:
            self._note(Reason("log_node_update_asked", {"machine": member.name, "version": wish.version}))
        self.wish = ReceivedWish(member.name, wish.version)
        return web.Response(status=ASKED)
