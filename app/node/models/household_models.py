"""The models that other hosts of the household have loaded, and the requests that this machine forwards to them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Any

import aiohttp
import msgspec
from msgspec import Meta

from app.api import models as api
from app.api import requests
from app.api.models import SharedModel
from app.api.responses import Answer, AnsweredBy, AnswerLine, WaitingPlace
from app.api.snapshot import WaitingChat
from app.catalog.shelf import GUIDE
from app.core.errors import AppError, BadInput, Reason, Refused, Unreachable
from app.core.household.household import Machine
from app.core.household.household import SharedModel as HostedModel
from app.core.household.operations import Role
from app.core.ids import MachineId
from app.core.reasons import said
from app.core.wire_json import LineSplitter
from app.decoding import decode
from app.machine.settings import SettingsStore
from app.network.network import Network
from app.network.peer.peer_client import HostClient, reported_error
from app.network.traffic_limits import TooLong, TooSlow, whole_body
from app.node.control.answer_conversion import AnswerPart, part_of
from app.node.known_household import KnownHousehold
from app.node.models.model_manager import ModelManager
from app.node.models.received_calls import checked_calls

log = logging.getLogger(__name__)

MOST_BYTES = 4 << 20  # of one line of an answer, and of a list of models
ANY_NAMES = ("", "default")  # stand for any loaded model
FORBIDDEN = 403  # the status with which a host refuses every question of this machine
GONE_SECONDS = 1.0  # in which the link of a host that was killed ends after its answer
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
    vision: bool = False
    context: Annotated[int, Meta(ge=0, le=1 << 40)] = 0  # positions of a conversation, if the model is loaded


class HostOffers(msgspec.Struct, frozen=True):
    """The models that a host offers to its guests. `loaded` and `beside` are the names of those that are loaded."""

    models: Annotated[list[OfferedModel], Meta(max_length=4096)]
    loaded: Text | None = None
    beside: Annotated[list[Text], Meta(max_length=64)] = []


@dataclass(frozen=True, slots=True)
class Destination:
    """The machine that answers a request, and its name for the model, or "" for any model.

    host: None for this machine.
    instead_of: the name of the host that was requested but is no longer available, or "".
    """

    host: HostClient | None
    model: str
    instead_of: str = ""


class HostNotice:
    """The notice that questions for a model on another machine leave this computer. The user sees it only once."""

    def __init__(self, choices: SettingsStore) -> None:
        self._choices = choices

    @property
    def was_given(self) -> bool:
        return self._choices.now.told_of_hosts

    async def give(self, host: str) -> Reason | None:
        """Return the notice, or None if it was given before."""
        if self.was_given:
            return None
        await self._choices.change(lambda now: msgspec.structs.replace(now, told_of_hosts=True))
        return Reason("host_answers", {"host": host})


def reference(machine: Machine, model: HostedModel) -> str:
    """Return the name under which requests ask for this host's model."""
    return f"{model.name}@{machine.name}"


class HouseholdModels:
    """Forwards requests to the hosts of the household.

    A guest forwards every request for a model that it has not loaded itself. Other members forward a request if it
    names another machine, or if another host has loaded the model and this machine does not have its file.

    has_file: returns whether this machine has the file of a model.
    group: runs loads that continue after a host was lost.
    changed: called when a chat's position in the queue of a host changes.
    """

    def __init__(
        self,
        network: Network,
        household: KnownHousehold,
        model_manager: ModelManager,
        notice: HostNotice,
        has_file: Callable[[str], Awaitable[bool]],
        group: asyncio.TaskGroup,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._network, self._household, self._model_manager = network, household, model_manager
        self._rights, self._notice, self._changed = household.rights, notice, changed
        self.has_file, self._group = has_file, group
        self._waiting: dict[object, WaitingChat] = {}  # requests of this machine that wait at a host

    def answering_hosts(self) -> list[str] | None:
        """Return the names of the hosts that answer all requests of this guest. Return None if it is not a guest,
        or has a model of its own.
        """
        return [client.host.name for client in self.hosts()] if self.answers_all else None

    @property
    def answers_all(self) -> bool:
        """Return whether hosts answer every request of this machine, because it is a guest without a model of its
        own.
        """
        return self._rights.is_guest() and not self._own()

    def shared(self) -> list[SharedModel]:
        """Return the models that other connected hosts have loaded for the household, sorted by host. The list is empty
        if this machine may not ask them."""
        default = None if self._rights.is_guest() else self._default()
        return [
            SharedModel(
                model.name,
                machine.name,
                machine.id,
                reference(machine, model),
                model.context,
                model.is_ready,
                default == (machine, model),
                model.is_base,
                model.sees,
                model.picture_tokens,
            )
            for machine, model in self._shared()
        ]

    def waiting(self) -> list[WaitingChat]:
        """Return the chats of this machine that wait for a turn at a host."""
        return list(self._waiting.values())

    async def destination(self, model: str, *, by_program: bool = False) -> Destination:
        """Return the machine that answers requests for a model: a host, or this machine. Raises BadInput,
        Unreachable or Refused.

        model: a name, a reference, or "" for any model.
        by_program: whether the request comes from a program. Programs cannot show the notice, so a request that names
            no model is forwarded only after the user has seen it. A name that looks like a reference may also belong to
            a model on another server.
        """
        name, machine = self._parts(model, may_be_server=by_program)
        if self._rights.is_guest():
            own = self._own()
            is_own = bool(own) and name in (*ANY_NAMES, *own)
            return Destination(None, name) if is_own else await self._host_for_guest(name, machine)
        if machine is not None:
            is_own = machine.id == self._household.me
            return Destination(None, name) if is_own else await self._host_of(machine, name)
        if name in ANY_NAMES:
            may = self._notice.was_given or not by_program
            pair = self._default() if may else None
            return self._destination(*pair) if pair is not None else Destination(None, model)
        if name in self._own() or name == GUIDE:
            return Destination(None, model)
        pair = next((pair for pair in self._shared() if pair[1].name == name), None)
        if pair is None or await self.has_file(name):  # another machine may claim any name
            return Destination(None, model)
        return self._destination(*pair)

    def listed_by_reference(self, *, has_guide: bool = True) -> list[api.OfferedModel]:
        """Return the shared models under their references, for the lists that programs read.

        The result is empty for a guest, because its programs see all models of its hosts under their names.

        has_guide: whether the list already contains this machine's own Guide. If so, the Guides of other machines are
            left out.
        """
        pairs = [] if self._rights.is_guest() else self._shared()
        return [
            api.OfferedModel(
                name=reference(machine, model),
                id=model.id,
                context=model.context,
                machine=machine.name,
                vision=model.sees,
            )
            for machine, model in pairs
            if model.is_ready and not (has_guide and model.name == GUIDE)
        ]

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

    async def listed(self) -> list[api.OfferedModel]:
        """Return the models of all hosts that reply. Each entry names the host that would answer."""
        models: dict[str, api.OfferedModel] = {}
        offers_by_host = await _all_offers(self.hosts())
        for host, offers in offers_by_host:
            for offer in offers.models:
                if _best(offer.name, offers_by_host) is host:
                    described = api.OfferedModel(**msgspec.structs.asdict(offer), machine=host.host.name)
                    models.setdefault(offer.name, described)
        return list(models.values())

    async def ask(self, order: requests.Ask, there: Destination) -> AsyncGenerator[AnswerPart, None]:
        """Yield the parts of a host's answer. Raises the host's AppError, Unreachable or Refused."""
        assert there.host is not None
        host, is_guest = there.host, self._rights.is_guest()
        named = there.model if is_guest else f"{there.model}@{host.host.name}"
        if not is_guest and (notice := await self._notice.give(host.host.name)):
            yield AnsweredBy(named, said(notice), notice)
        order = msgspec.structs.replace(order, model=there.model or None)
        request, reported = object(), None  # several requests without a conversation may wait
        try:
            async with host.request("POST", "/ask", msgspec.json.encode(order), HEADERS) as answer:
                if answer.status == FORBIDDEN:
                    raise Refused("host_answers_not", host=host.host.name)
                if answer.status != 200:
                    raise (reported := reported_error(await _whole(host, answer), host.host.name, of_its_pool=True))
                async with aclosing(_lines(host.chunks(answer))) as lines:
                    async for line in lines:
                        self._note_place(request, order.conversation or "", line.waiting)
                        if line.error is not None:
                            body = msgspec.json.encode(line.error)
                            raise (reported := reported_error(body, host.host.name, of_its_pool=True))
                        if isinstance(part := part_of(line), Answer):
                            part = checked_calls(part, order)
                            yield part if is_guest else msgspec.structs.replace(part, model=named)
                            return
                        if part is not None:
                            yield part
            raise Unreachable("peer_offline", name=host.host.name)
        except Unreachable as error:
            if error is reported:  # a machine that computes for the host
                raise
            raise await self._host_lost(host, there.model) or error from None
        finally:
            self._note_place(request, "", None)

    def replacement_notice(self, there: Destination) -> Reason | None:
        """Return a notice that names the machine that answers in place of the requested host, or None if that host
        answers.
        """
        if not there.instead_of:
            return None
        machine = self._rights.name() if there.host is None else there.host.host.name
        return Reason("host_replaced", {"host": there.instead_of, "machine": machine})

    async def _host_lost(self, host: HostClient, model: str) -> AppError | None:
        """Let another machine load the model of a host that was lost during an answer. Return the error to report,
        which names this machine.

        Return None for a guest, whose next question goes to any host. If the host is still connected, it ended the
        answer itself, and nothing is loaded.
        """
        gone = host.host
        if self._rights.is_guest() or not model:
            return None
        if not await host.is_gone(GONE_SECONDS):
            return Refused("host_ended_answer", host=gone.name)
        try:
            following = await self._replacement(gone.id, gone.name, model)
        except Unreachable as error:
            return error
        loading = self._load_here(model) if following.host is None else _load_there(following.host, model)
        self._group.create_task(loading, name="load the model of a lost host")
        name = self._rights.name() if following.host is None else following.host.host.name
        return Unreachable("host_gone_next", host=gone.name, machine=name, model=model)

    async def _load_here(self, model: str) -> None:
        if model not in self._own():
            try:
                await self._model_manager.load(requests.LoadModel(model=model), lambda _: None)
            except AppError as error:
                log.warning("%s could not be loaded after its host was lost: %s", model, error.reason)

    def _note_place(self, request: object, conversation: str, place: WaitingPlace | None) -> None:
        """Show a request's position in the queue of its host, or remove it if None."""
        if place is not None:
            self._waiting[request] = WaitingChat(conversation, place.place, place.seconds)
        elif self._waiting.pop(request, None) is None:
            return
        self._changed()

    def _own(self) -> list[str]:
        return self._model_manager.loaded.names

    def _shared(self) -> list[tuple[Machine, HostedModel]]:
        """Return the models that other connected hosts share. Models that are ready come first."""
        if not self._rights.may_ask():
            return []
        shared = [
            (machine, model)
            for machine in self._household.now.machines.values()
            if machine.online and machine.id != self._household.me and str(Role.HOST) in machine.roles
            for model in machine.about.models
        ]
        return sorted(shared, key=lambda pair: (not pair[1].is_ready, pair[0].name.casefold(), pair[0].id))

    def _default(self) -> tuple[Machine, HostedModel] | None:
        """Return the shared model for requests that name none: the first that is ready.

        Return None if a model is loaded or loading here, or if a load failed here.
        """
        manager = self._model_manager
        if self._own() or manager.loading or manager.failed_load() is not None:
            return None
        return next((pair for pair in self._shared() if pair[1].is_ready and pair[1].name != GUIDE), None)

    def _parts(self, model: str, *, may_be_server: bool) -> tuple[str, Machine | None]:
        """Split a reference into a model name and a machine. For a name without a machine, the second part is
        None.

        may_be_server: whether a reference to an unknown machine is treated as the name of another server's model.
            Otherwise, it raises BadInput.
        """
        model = model.removesuffix(":latest")
        name, separator, ref = model.partition("@")  # names of machines may contain "@", those of models may not
        if not separator:
            return model, None
        try:
            return name, self._household.machine(ref)
        except BadInput:
            if may_be_server:
                return model, None
            raise

    def _destination(self, machine: Machine, model: HostedModel) -> Destination:
        """Return the destination for a shared model. Raises Unreachable if the link to its machine has just
        closed.
        """
        client = next((client for client in self.hosts() if client.host.id == machine.id), None)
        if client is None:
            raise Unreachable("peer_offline", name=machine.name)
        return Destination(client, model.name)

    async def _host_of(self, machine: Machine, name: str) -> Destination:
        """Return the host that a reference names, or its replacement if it is no longer connected. Raises
        Unreachable or Refused.
        """
        if not self._rights.may_ask():
            raise Refused("household_asks_not")
        if (client := next((client for client in self.hosts() if client.host.id == machine.id), None)) is not None:
            return Destination(client, name)
        return await self._replacement(machine.id, machine.name, name)

    async def _replacement(self, gone: MachineId, host: str, model: str) -> Destination:
        """Return the machine that answers in place of a host that is gone. Raises Unreachable if there is none.

        The candidates, in order: this machine or another that has the model loaded; this machine if it has the file and
        no other model loaded; another machine that has the file.
        """
        own = self._own()
        if model in own:
            return Destination(None, model, host)
        pairs = (pair for pair in self._shared() if pair[1].name == model and pair[0].id != gone)
        if (pair := next(pairs, None)) is not None:
            return replace(self._destination(*pair), instead_of=host)
        if not own and await self.has_file(model):
            return Destination(None, model, host)
        remaining = [client for client in self.hosts() if client.host.id != gone]
        if (host_with_file := _best(model, await _all_offers(remaining))) is not None:
            return Destination(host_with_file, model, host)
        raise Unreachable("host_gone", host=host, model=model)

    async def _host_for_guest(self, name: str, machine: Machine | None) -> Destination:
        """Return the host that answers a guest. Raises Unreachable if no host is connected.

        The candidates, in order: the host that the reference names, one that has the model loaded, one that has it on
        disk, and the first host.
        """
        hosts = self.hosts()
        if not hosts:
            raise Unreachable("guest_no_host")
        of_machine = (client for client in hosts if machine is not None and client.host.id == machine.id)
        if (client := next(of_machine, None)) is not None:
            return Destination(client, name)
        if len(hosts) == 1:
            return Destination(hosts[0], name)
        loaded = [pair for pair in self._shared() if name in (*ANY_NAMES, pair[1].name)]
        if loaded and name not in ANY_NAMES:
            return self._destination(*loaded[0])
        return Destination(_best(name, await _all_offers(hosts)) or hosts[0], name)


async def _load_there(host: HostClient, model: str) -> None:
    """Ask a host to load a model. If the host refuses or fails, this is only logged."""
    body = msgspec.json.encode({"model": model})  # Ollama's request to load a model: no prompt
    try:
        async with host.request("POST", "/api/generate", body, HEADERS) as answer:
            await _whole(host, answer)
    except AppError as error:
        log.warning("%s could not be loaded on %s: %s", model, host.host.name, error.reason)


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
    except (TooLong, TooSlow, OSError, aiohttp.ClientError):
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
