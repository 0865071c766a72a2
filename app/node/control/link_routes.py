"""The control API's routes over the links to other machines: measured, and by which interface."""

from __future__ import annotations

from aiohttp import web

from app.core.errors import BadInput
from app.core.ids import MachineId
from app.node.control import requests as asked
from app.node.known_household import KnownHousehold
from app.node.links.link_registry import LinkBook


def link_routes(links: LinkBook, household: KnownHousehold) -> list[web.RouteDef]:
    """Each is a few lines over one method of the book of links."""

    async def measure(request: web.Request) -> web.Response:
        ref = request.query.get("machine")
        only = other_machine(household, ref) if ref is not None else None
        return web.json_response(await links.measure_now(only))

    async def prefer(request: web.Request) -> web.Response:
        order = await asked.body(request, asked.PreferInterface)
        machine = other_machine(household, request.match_info["ref"])
        return web.json_response(await links.prefer(machine, order.interface))

    return [web.post("/measure", measure), web.post("/machines/{ref}/interface", prefer)]


def other_machine(household: KnownHousehold, ref: str) -> MachineId:
    """The machine a person means, which is not this one. Raises BadInput."""
    machine = household.machine(ref)
    if machine.id == household.me:
        raise BadInput("interface_not_own", machine=machine.name)
    return machine.id
