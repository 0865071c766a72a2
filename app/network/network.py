"""The household network of a node: its port for members, links, household log and pairing window.

    async with Network(home, identity, sock, local, handlers) as network: ...

The network owns all tasks that it starts. It reports events to `Handlers`, and passes on the manifests, tensor
bytes and frames that hosts send.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from aiohttp import web

from app import __version__
from app.core.errors import AppError, Busy, DoesNotFit, Reason, Refused, Unreachable
from app.core.household import pairing
from app.core.household.link import LinkEnd
from app.core.household.membership import Log, Member, added_by
from app.core.household.operations import Operation, OperationId, Role, encode
from app.core.ids import MachineId, clean_name
from app.network import messages
from app.network.discovery.address_book import AddressBook
from app.network.identity import Identity, NodeHome
from app.network.membership.household_log import JoinResult, LogKeeper, LogStore
from app.network.membership.pairing_window import PairingParty, PairingWindow, join
from app.network.messages import PROTOCOL, Hello, Leaving, Message, OpenStage, Refuse, log_batches
from app.network.peer.listener import Listener, StageHandlers
from app.network.peer.peer_link import Heartbeat, PeerLink, WorkerProgress
from app.network.peer.peer_links import LinkManager
from app.network.peer.probe import Probes
from app.network.sockets import Address, listening_near, own_host
from app.network.tls import peer_context
from app.network.traffic_limits import LinkPace

GOODBYE_SECONDS = 1.0
REMOVED_SECONDS = 1.5  # to notify a removed machine and close its link
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MachineDescription:
    """The description of this machine that is sent in its HELLO message."""

    name: str
    device: str
    engines: tuple[str, ...]
    total_bytes: int
    lendable_bytes: int


def hello(offer: MachineDescription, machine: MachineId, instance: str, peer_port: int) -> Hello:
    """Build the HELLO message of `machine`."""
    return Hello(
        protocol=PROTOCOL,
        build=__version__,
        id=machine,
        instance=instance,
        name=clean_name(offer.name),
        engines=list(offer.engines),
        lendable_bytes=offer.lendable_bytes,
        total_bytes=offer.total_bytes,
        device=offer.device,
        peer_port=peer_port,
    )


class Local(Protocol):
    """The services of the node that the network uses. They are called often, so they must not block."""

    def description(self) -> MachineDescription: ...
    def work(self) -> WorkerProgress: ...
    def busy(self) -> bool:
        """Return whether an answer is being generated or layers are loading here. Links are not measured then."""

    def link_end(self, own: str, other: str) -> LinkEnd:
        """Describe the interface used by a connection between these addresses."""


class Handlers(StageHandlers, Protocol):
    """Callbacks for network events, implemented by the node.

    For each link, `connected` is called first, then `message` for one message at a time, and finally
    `disconnected`. When a link ends, the handler of its current message is canceled.
    """

    async def connected(self, link: PeerLink) -> None: ...
    async def message(self, link: PeerLink, message: Message) -> None: ...
    async def disconnected(self, link: PeerLink) -> None: ...
    def suspected(self, link: PeerLink, doubted: bool) -> None:
        """Handle a machine that has been silent for 3 s (`doubted`) or that has been heard from again."""

    def refusal_changed(self, machine: MachineId) -> None:
        """Handle a machine that has started or stopped refusing a link, although it responds. The reason is in
        `LinkManager.refusals`.
        """

    def members_changed(self, members: Mapping[MachineId, Member]) -> None:
        """Handle a change of members. If this machine was removed from its household, `members` is empty."""

    def pairing_changed(self, state: pairing.State) -> None:
        """Handle a change in the state of the pairing window."""


class Network:
    """The household network of a node. It takes ownership of the listening socket `sock`."""

    def __init__(
        self,
        home: NodeHome,
        identity: Identity,
        sock: socket.socket,
        local: Local,
        handlers: Handlers,
        *,
        heartbeat: Heartbeat | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._identity, self._local, self._handlers = identity, local, handlers
        self._clock, self._heartbeat = clock, heartbeat or Heartbeat()
        self._host = sock.getsockname()[0]
        self._instance = secrets.token_hex(16)
        self._news = asyncio.Event()
        self._log = LogKeeper(identity, LogStore(home.household, home.write), self._news.set)
        self.probes = Probes(lambda: local.busy() or self._listener.transfers > 0, local.link_end, clock)
        self._listener = Listener(
            sock, self._on_control, handlers, self.probes.serve, clock, self.is_known_host, self.is_barred
        )
        self._contexts: dict[MachineId, ssl.SSLContext] = {}
        self._window: PairingWindow | None = None
        self._own: list[asyncio.Task[None]] = []
        self._reported_members: Mapping[MachineId, Member] | None = None
        self._reconciling = asyncio.Lock()
        self._joining = asyncio.Lock()

    async def __aenter__(self) -> Network:
        await self._log.load()
        self._tasks = asyncio.TaskGroup()
        await self._tasks.__aenter__()
        self.link_manager = LinkManager(self.id, self, self._tasks, self._heartbeat, self.pace, self._clock)
        self.address_book = AddressBook(lambda: self.members, self._log.addresses, self.link_manager.hint)
        await self._reconcile()
        self._start(self._listener.run(), "the port for members")
        self._start(self._tend(), "follow the household log")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._goodbye()
        finally:
            for task in self._own:
                task.cancel()
            await self._tasks.__aexit__(kind, error, trace)

    def mount(self, path: str, application: web.Application) -> None:
        """Serve `application` to members at `path`. Call this before entering the context."""
        self._listener.mount(path, application)

    @property
    def pace(self) -> LinkPace:
        """Return the owner's bandwidth limit for all traffic of this machine."""
        return self._listener.pace

    @property
    def id(self) -> MachineId:
        """Return the id of this machine."""
        return self._identity.id

    @property
    def port(self) -> int:
        """Return the port to which members connect."""
        return self._listener.port

    @property
    def address(self) -> Address:
        """Return the address at which other machines can most probably reach this one."""
        anywhere = self._host in ("::", "0.0.0.0")  # noqa: S104  compared, not bound
        return Address((self.address_book.own or own_host()) if anywhere else self._host, self.port)

    @property
    def log(self) -> Log | None:
        """Return the household log, or None before the first pairing."""
        return self._log.log

    @property
    def members(self) -> Mapping[MachineId, Member]:
        """Return all members of the household, including this machine. Empty before the first pairing."""
        return self._log.members

    @property
    def dismissed(self) -> bool:
        """Return whether this machine was removed from its household."""
        return self._log.dismissed

    @property
    def links(self) -> Mapping[MachineId, PeerLink]:
        """Return the links that are up, by peer."""
        return self.link_manager.up

    @property
    def window(self) -> PairingWindow | None:
        """Return the pairing window that was opened most recently."""
        return self._window

    def link(self, machine: MachineId) -> PeerLink:
        """Return the link to `machine`. Raises Unreachable if there is none."""
        link = self.link_manager.up.get(machine)
        if link is None:
            member = self.members.get(machine)
            raise Unreachable("peer_offline", name=member.name if member else machine[:16])
        return link

    def is_barred(self, machine: MachineId) -> bool:
        """Return whether a member has flooded this machine within the last minute."""
        return self.link_manager.is_barred(machine)

    def is_known_host(self, host: str) -> bool:
        """Return whether a member was ever reached at `host`. Its connections have priority when the port is full."""
        return self.address_book.was_reached_at(host)

    def addresses(self, machine: MachineId) -> Sequence[Address]:
        """Return the addresses at which `machine` may be reached, most likely first."""
        return self.address_book.addresses(machine)

    async def broadcast(self, message: Message, machines: Iterable[MachineId] | None = None) -> None:
        """Send a message over all links, or only over the links to `machines`. Lost links are skipped."""
        chosen = None if machines is None else set(machines)
        links = [link for link in self.link_manager.up.values() if chosen is None or link.peer in chosen]
        await asyncio.gather(*(self._quietly(link, message) for link in links))

    # the household

    async def open_pairing(self, roles: Sequence[Role]) -> PairingWindow:
        """Open a pairing window, whose code is valid for 120 s, to admit a machine with these `roles`.

        Creates the household if there is none. Raises Refused if this machine is not an admin, or Busy if a window
        is open.
        """
        if self._window is not None and not self._window.ended:
            raise Busy("pairing_open")
        await self._log.create_if_missing(self._local.description().name)
        self._log.require_admin()
        sock = listening_near(None if self._host == "::" else self._host, self.port + 1)
        window = PairingWindow(
            self._speaker(), self, sock, self.address.host, roles, self._handlers.pairing_changed, self._clock
        )
        self._window = window
        self._start(window.run(), "pairing window")
        return window

    async def join(self, address: Address, code: str) -> Member:
        """Join the household of the member that shows `code` at `address`. Return this member once the first link is
        up.

        If this fails, the previous state is restored. Raises BadInput, Refused, DoesNotFit or Unreachable.
        """
        if self._log.dismissed:
            raise Refused("removed_needs_reset")
        if not self._log.is_alone:
            raise Refused("household_already")
        async with self._joining:
            result = await join(address, code, self._speaker())
            host = self._log.adopt(result)
            try:
                self._open_port()
                await self._first_link(host, result)
            except BaseException as error:
                self._log.revert()
                self._open_port()
                if isinstance(error, AppError) and not isinstance(error, DoesNotFit):
                    raise Refused("pairing_unfinished") from error
                raise
            return host

    async def remove(self, machine: MachineId, kept: Sequence[OperationId] = ()) -> Member:
        """Remove `machine` from the household permanently. All members are notified and its links are closed within 2
        s. Raises Refused.

        kept: the `add` operations signed by `machine` (see `added_by`) that remain valid.
        """
        member = self.members.get(machine)
        operations = await self._log.remove(machine, kept)
        assert member is not None
        with suppress(TimeoutError):  # a machine whose link is blocked learns of it later
            async with asyncio.timeout(REMOVED_SECONDS / 2):
                await self._spread(operations, but=None)
        await self._reconcile()
        return member

    async def set_roles(self, machine: MachineId, roles: Sequence[Role]) -> Member:
        """Change the roles of `machine` for the whole household. Raises Refused."""
        await self._spread(await self._log.set_roles(machine, roles), but=None)
        return self.members[machine]

    async def rename(self, machine: MachineId, name: str) -> Member:
        """Rename `machine`. It adopts the new name when it learns of it. Raises Refused."""
        await self._spread(await self._log.rename(machine, name), but=None)
        return self.members[machine]

    def added_by(self, machine: MachineId) -> Sequence[Operation]:
        """Return the `add` operations that `machine` signed. Raises Refused.

        The user chooses which of them remain valid when the machine is removed.
        """
        self._log.require_admin()
        return added_by(self._log.log, machine) if self._log.log else ()

    # Admission: called by the pairing window

    def admit(self, machine: MachineId, der: bytes, name: str) -> Log:
        assert self._window is not None  # the window calls this method
        called = [self._local.description().name, *(link.name for link in self.link_manager.up.values())]
        granted = self._log.admit_on_trial(machine, der, name, self._window.roles, called)
        self._open_port()  # now, since the newcomer is about to connect
        return granted

    async def confirm(self, machine: MachineId) -> None:
        await self._spread(await self._log.confirm(machine), but=machine)

    def withdraw(self, machine: MachineId) -> None:
        self._log.withdraw(machine)

    def peer_port(self) -> int:
        return self.port

    # LinkServices: called by the link manager

    def hello(self) -> Hello:
        return hello(self._local.description(), self.id, self._instance, self.port)

    def work(self) -> WorkerProgress:
        return self._local.work()

    def dialing_context(self, member: Member) -> ssl.SSLContext:
        if member.id not in self._contexts:
            self._contexts[member.id] = self._context(ssl.Purpose.SERVER_AUTH, [member.der])
        return self._contexts[member.id]

    async def connected(self, link: PeerLink) -> None:
        if self._window is not None:
            await self._window.linked(link.peer)
        try:
            await self._log.remember(link.peer, link.address)
        except DoesNotFit as error:  # the machine was reached nevertheless
            log.warning("the address of %s cannot be saved: %s", link.name, error.reason)
        for batch in log_batches(self._log.lines()):
            await self._quietly(link, batch)
        self._start(self.address_book.introduce(link.peer, self.link_manager.up, self.broadcast), "introduce")
        await self._handlers.connected(link)

    async def message(self, link: PeerLink, message: Message) -> None:
        match message:
            case messages.Log(operations=lines):
                await self._merge_lines(link, lines)
            case OpenStage() if not self._is_host(link.peer):
                refuse = Refuse(code="role_missing", facts={"name": link.name})
                await self._quietly(link, refuse)
            case messages.Whereabouts():
                self.address_book.learn(message, link.address)
            case _:
                await self._handlers.message(link, message)

    async def _merge_lines(self, link: PeerLink, lines: Sequence[str]) -> None:
        if not await link.count_lines(len(lines)):
            return
        merged = await self._log.merge(lines)
        await self._spread(merged.new, but=link.peer)
        await link.count_lines(0, merged.n_false, merged.n_outside)

    async def disconnected(self, link: PeerLink) -> None:
        await self._handlers.disconnected(link)

    def suspect(self, link: PeerLink, doubted: bool) -> None:
        self._handlers.suspected(link, doubted)

    def flooded(self, machine: MachineId) -> None:
        self._listener.cut(machine)

    def refusal_changed(self, machine: MachineId) -> None:
        self._handlers.refusal_changed(machine)

    def _start(self, work: Coroutine[object, object, None], name: str) -> None:
        self._own = [task for task in self._own if not task.done()]
        self._own.append(self._tasks.create_task(work, name=name))

    async def _on_control(self, member: Member, socket: web.WebSocketResponse, host: str) -> None:
        await self.link_manager.accept(member, socket, host)

    async def _first_link(self, host: Member, result: JoinResult) -> None:
        """Link to the member that admitted this machine, and start serving the link."""
        await self._log.remember(host.id, result.peer_address)
        link = await self.link_manager.call(host, (result.peer_address,))
        self.link_manager.register(link)  # now, before anything else dials this machine
        try:
            await self._log.settle()
        except AppError:
            await self.link_manager.drop(link)
            raise
        self._start(self.link_manager.serve(link), f"link to {link.name}")

    async def _tend(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._reconcile()
            except Exception:  # top of a task: no line of the log may stop the node
                log.exception("the household log cannot be applied")

    async def _reconcile(self) -> None:
        """Update the port and the links to match the household log, and report membership changes to the node."""
        async with self._reconciling:
            self._open_port()
            members = {} if self._log.dismissed else self._log.confirmed
            gone = {machine for machine in self._reported_members or {} if machine not in members}
            strangers = {peer for peer in self.link_manager.up if peer not in self._let_in()}
            # before links are closed, so that a removed machine does not look like a lost one
            if members != self._reported_members:
                self._reported_members = dict(members)
                self._handlers.members_changed(members)
            for machine in (gone | strangers) - {self.id}:
                self._contexts.pop(machine, None)
                await self._part_from(machine)
            self._listener.cut_strangers()
            for machine, member in members.items():
                if machine != self.id:
                    self.link_manager.maintain(member)
            await self._log.forget_strangers()

    async def _part_from(self, machine: MachineId) -> None:
        """Notify a removed machine of its removal, then close its link."""
        link = self.link_manager.up.get(machine)
        if link is not None and not self._log.dismissed:
            try:
                async with asyncio.timeout(REMOVED_SECONDS / 2):
                    for batch in log_batches(self._log.lines()):
                        await self._quietly(link, batch)
            except TimeoutError:
                log.info("%s could not be notified of its removal", link.name)
        await self.link_manager.abandon(machine, Reason("removed_from_household"))

    def _open_port(self) -> None:
        """Admit only the current members from now on. The old TLS context is used until its last connection closes."""
        members = self._let_in()
        pins = [member.der for member in members.values()]
        self._listener.use(self._context(ssl.Purpose.CLIENT_AUTH, pins), members)

    def _let_in(self) -> Mapping[MachineId, Member]:
        return {} if self._log.dismissed else self.members

    async def _spread(self, operations: Sequence[Operation], but: MachineId | None) -> None:
        """Send new operations to all members except `but`."""
        if operations:
            lines = [encode(operation).decode("ascii") for operation in operations]
            peers = [machine for machine in self.link_manager.up if machine != but]
            for batch in log_batches(lines):
                await self.broadcast(batch, peers)

    async def _goodbye(self) -> None:
        if self._window is not None:
            await self._window.close()
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self.broadcast(Leaving(reason="shutting_down"))
        except TimeoutError:
            log.info("not all machines could be notified of the shutdown")
        await self.link_manager.close(Reason("shutting_down"))

    def _is_host(self, machine: MachineId) -> bool:
        return machine in self.members and Role.HOST in self.members[machine].roles

    def _context(self, purpose: ssl.Purpose, pins: Sequence[bytes]) -> ssl.SSLContext:
        return peer_context(purpose, self._identity.pem, self._identity.passphrase, pins)

    def _speaker(self) -> PairingParty:
        return PairingParty(self._identity, clean_name(self._local.description().name), __version__)

    async def _quietly(self, link: PeerLink, message: Message) -> None:
        """Send a message. Ignore a lost link, because its end is reported separately."""
        try:
            await link.send(message)
        except Unreachable as error:
            log.debug("not sent: %s", error.reason)
