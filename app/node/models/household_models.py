"""Guest answers on the guest's side: finds hosts and their models, and forwards requests to them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from app.api import models as api
from app.api import requests
from app.api.responses import Answer, AnswerLine
from app.core.errors import AppError, Refused, Unreachable
from app.core.household.operations import Role
from app.core.wire_json import LineSplitter
from app.decoding import decode
from app.network.network import Network
from app.network.peer.peer_client import HostClient, reported_error
from app.network.traffic_limits import TooLong, TooSlow, whole_body
from app.node.control.answer_conversion import AnswerPart, part_of
from app.node.known_household import Rights
from app.node.models.model_manager import ModelManager

log = logging.getLogger(__name__)

MOST_BYTES = 4 << 20  # of one line of an answer, and of a list of models
ANY_NAMES = ("", "default")  # stand for any loaded model
OFFERS_SECONDS = 5.0  # for a host to reply; the others' models are used without it
HEADERS = {"Content-Type": "application/json"}
Text = Annotated[str, Meta(max_length=200)]


class OfferedModel(msgspec.Struct, frozen=True):
    """A model that a host offers."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    id: Text = ""
    architecture: Text = ""
    quantization: Text = ""
    file_bytes: Annotated[int, Meta(ge=0, le=1 << 50)] = 0
    embeds: bool = False
    writes: bool = True
    ranks: bool = False
    n_parameters: Annotated[int, Meta(ge=0, le=1 << 50)] = 0
    context: Annotated[int, Meta(ge=0, le=1 << 40)] = 0  # positions of a conversation, if the model is loaded


class HostOffers(msgspec.Struct, frozen=True):
    """The models that a host offers to its guests. `loaded` and `beside` name the loaded ones."""

    models: Annotated[list[OfferedModel], Meta(max_length=4096)]
    loaded: Text | None = None
    beside: Annotated[list[Text], Meta(max_length=64)] = []


class HouseholdModels:
    """Forwards a guest's requests to its hosts. Requests for a model loaded on this machine are answered here."""

    def __init__(self, network: Network, rights: Rights, model_manager: ModelManager) -> None:
        self._network, self._rights, self._model_manager = network, rights, model_manager

    def answering_hosts(self) -> list[str] | None:
        """Return the names of the hosts that answer for this machine, or None if it answers its own requests or is not
        a guest."""
        here = self._rights.is_guest() and not self._own()
        return [client.host.name for client in self.hosts()] if here else None

    def is_forwarded(self, model: str) -> bool:
        """Return whether a request for this model is forwarded to a host."""
        own = self._own()
        return self._rights.is_guest() and (not own or model not in (*ANY_NAMES, *own))

    async def offered(self) -> list[api.OfferedModel]:
        """Return the models that hosts offer to this machine. The list is empty if it is not a guest."""
        return await self.listed() if self._rights.is_guest() else []

    def require_single_machine(self, order: requests.PlanModel) -> None:
        """Raise Refused if this machine is a guest and the request would place the model on other machines."""
        several = len(order.split or ()) > 1 or order.shape in ("split", "replicas")
        if several and self._rights.is_guest():
            raise Refused("guest_alone", name=self._rights.name())

    def hosts(self) -> list[HostClient]:
        """Return the connected hosts, sorted by name."""
        network = self._network
        peers = [
            (member, link)
            for machine, link in network.links.items()
            if (member := network.members.get(machine)) and Role.HOST in member.roles
        ]
        return [
            HostClient(member, link.address, link.host_session, link.finished)
            for member, link in sorted(peers, key=lambda peer: (peer[1].name, peer[1].peer))
        ]

    async def host_for(self, model: str) -> HostClient:
        """Return a host that has the model loaded, or else one that has it on disk, or else the first host. Raises
        Unreachable or Refused."""
        hosts = self.hosts()
        if not hosts:
            raise Unreachable("guest_no_host")
        if len(hosts) == 1:
            return hosts[0]
        return _best(model, await _all_offers(hosts)) or hosts[0]

    async def listed(self) -> list[api.OfferedModel]:
        """Return the models of all hosts that reply, each with the host that would answer."""
        models: dict[str, api.OfferedModel] = {}
        offers_by_host = await _all_offers(self.hosts())
        for host, offers in offers_by_host:
            for offer in offers.models:
                if _best(offer.name, offers_by_host) is host:
                    described = api.OfferedModel(**msgspec.structs.asdict(offer), machine=host.host.name)
                    models.setdefault(offer.name, described)
        return list(models.values())

    async def ask(self, order: requests.Ask) -> AsyncGenerator[AnswerPart, None]:
        """Yield the parts of a host's answer. Raises the host's AppError, Unreachable or Refused."""
        host = await self.host_for(order.model or "")
        async with host.request("POST", "/ask", msgspec.json.encode(order), HEADERS) as answer:
            if answer.status != 200:
                raise reported_error(await _whole(host, answer), host.host.name, of_its_pool=True)
            async with aclosing(_lines(host.chunks(answer))) as lines:
                async for line in lines:
                    if line.error is not None:
                        raise reported_error(msgspec.json.encode(line.error), host.host.name, of_its_pool=True)
                    if (part := part_of(line)) is not None:
                        yield part
                    if isinstance(part, Answer):
                        return
        raise Unreachable("peer_offline", name=host.host.name)

    def _own(self) -> list[str]:
        return self._model_manager.loaded.names


def _best(model: str, offers_by_host: Sequence[tuple[HostClient, HostOffers]]) -> HostClient | None:
    """Return the host to use for a model: one that has it loaded, or else one that has it on disk, or None."""
    for host, offers in offers_by_host:
        if offers.loaded is not None and model in (*ANY_NAMES, offers.loaded, *offers.beside):
            return host
    having = (host for host, offers in offers_by_host if any(offer.name == model for offer in offers.models))
    return next(having, None)


async def _all_offers(hosts: Sequence[HostClient]) -> list[tuple[HostClient, HostOffers]]:
    """Return the offers of the hosts that reply. The other hosts are skipped; a request sent to one of them reports
    the reason."""
    async with asyncio.TaskGroup() as group:
        machines_in_use = [(host, group.create_task(_offers_soon(host), name="ask what a host has")) for host in hosts]
    return [(host, offers) for host, task in machines_in_use if (offers := task.result()) is not None]


async def _offers_soon(host: HostClient) -> HostOffers | None:
    try:
        async with asyncio.timeout(OFFERS_SECONDS):
            return await _offers(host)
    except (AppError, TimeoutError) as error:
        log.info("%s did not report its models: %r", host.host.name, error)
        return None


async def _offers(host: HostClient) -> HostOffers:
    async with host.request("GET", "/models") as answer:
        body = await _whole(host, answer)
        if answer.status != 200:
            raise reported_error(body, host.host.name)
        try:
            return decode(body, HostOffers)
        except (ValueError, RecursionError):
            raise Refused("peer_refused") from None


async def _whole(host: HostClient, answer: Any) -> bytes:
    try:
        return await whole_body(answer.content, answer.content_length, MOST_BYTES)
    except (TooLong, TooSlow, OSError):
        raise Unreachable("peer_offline", name=host.host.name) from None


async def _lines(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[AnswerLine, None]:
    """Yield the lines of an answer. Raises Refused if a line cannot be decoded."""
    cutter = LineSplitter(MOST_BYTES)
    async with aclosing(chunks):
        async for chunk in chunks:
            try:
                for line in cutter.feed(chunk):
                    yield decode(line, AnswerLine)
            except (ValueError, RecursionError):
                raise Refused("peer_refused") from None
