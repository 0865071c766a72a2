"""All links of this machine, whether dialed or accepted, with at most one per peer."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import ssl
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp
from aiohttp import web

from app.core.errors import AppError, Fact, Reason, Refused, Unreachable
from app.core.household.membership import Member
from app.core.ids import MachineId, clean_name, name_key, unless_taken
from app.network.messages import (
    BadMessage,
    Hello,
    HelloAck,
    Message,
    Refuse,
    are_compatible,
    as_ack,
    encode,
    received_reason,
    sent_facts,
)
from app.network.peer.peer_client import CLOSE_SECONDS, PeerClient
from app.network.peer.peer_link import Heartbeat, LinkEvents, PeerLink, Socket, receive
from app.network.sockets import Address, LocalInterface
from app.network.traffic_limits import Allowance, EventKind, Flood, LinkPace

HELLO_SECONDS = 2.0
NAMING = frozenset({"name", "machine", "older", "newer"})  # facts that contain the name of a machine

log = logging.getLogger(__name__)

REDIAL_SECONDS, REDIAL_AT_MOST_SECONDS = 0.5, 15.0
SIMULTANEOUS_SECONDS = 2.0  # two links within this time were dialed from both sides at the same time
OWN_CALL_SECONDS = 1.5  # how long an incoming call waits for our own call to succeed
PROOF_OF_LIFE_SECONDS = 1.5  # a working link receives something every second
REPLACED_SECONDS = 2.0
# How long a dialed machine may take to end an old link to us and then to answer
ACK_SECONDS = OWN_CALL_SECONDS + PROOF_OF_LIFE_SECONDS + CLOSE_SECONDS + REPLACED_SECONDS + HELLO_SECONDS
ADDRESSES_TRIED = 8
ANSWERED = frozenset(  # reasons which show that the machine is on and responding
    {"version_differs", "peer_is_another", "peer_refused", "peer_refused_us", "peer_hung_up", "identity_copied"}
)


async def say_hello(
    socket: Socket, mine: Hello, member: Member, within_seconds: float = HELLO_SECONDS, our_name: str = ""
) -> HelloAck:
    """Send HELLO and wait for HELLO_ACK, as the dialing side. Raises Refused or Unreachable.

    within_seconds: long enough for the other side to end an old link first.
    our_name: our name in the household.
    """
    await socket.send_str(encode(mine).decode("utf-8"))
    answer = await _first(socket, member, within_seconds)
    if isinstance(answer, Refuse):
        reason = received_reason(answer)
        raise Refused(reason.code, **_restrict_names(reason, {mine.name, our_name}, member))
    if not isinstance(answer, HelloAck):
        raise Refused("peer_speaks_oddly", name=member.name)
    check_greeting(answer, mine, member)
    return answer


async def receive_hello(socket: Socket, mine: Hello, member: Member) -> Hello:
    """Wait for HELLO and check it, as the accepting side. Raises Refused or Unreachable."""
    greeting = await _first(socket, member, HELLO_SECONDS)
    if not isinstance(greeting, Hello):
        raise Refused("peer_speaks_oddly", name=member.name)
    check_greeting(greeting, mine, member)
    return greeting


def check_greeting(theirs: Hello | HelloAck, mine: Hello, member: Member) -> None:
    """Check that both sides use compatible protocol versions, and that the id matches the certificate.

    Raises Refused.
    """
    if theirs.id == mine.id:
        code = "peer_is_this" if theirs.instance == mine.instance else "identity_copied"
        facts: dict[str, Fact] = {"name": clean_name(theirs.name)}
        raise Refused(code, **_restrict_names(Reason(code, facts), {mine.name}, member))
    if theirs.id != member.id:
        raise Refused("peer_speaks_oddly", name=member.name)
    if not are_compatible(theirs.protocol, mine.protocol):
        versions = Reason("version_differs", version_facts(theirs, mine))
        raise Refused(versions.code, **_restrict_names(versions, {mine.name}, member))


def version_facts(theirs: Hello | HelloAck, mine: Hello) -> dict[str, Fact]:
    """Return the facts of `version_differs`: the name and build of the older and of the newer side."""
    old, new = sorted((theirs, mine), key=lambda greeting: greeting.protocol)
    return {
        "older": clean_name(old.name),
        "older_build": old.build,
        "newer": clean_name(new.name),
        "newer_build": new.build,
    }


def _restrict_names(reason: Reason, ours: Collection[str], member: Member) -> dict[str, Fact]:
    """Return the facts of a peer's reason. Names other than the peer's and ours are replaced, since the peer may
    lie."""
    known = {name_key(name): clean_name(name) for name in (*ours, member.name) if name}
    return reason.mapped(lambda key, fact: known.get(name_key(str(fact)), member.name) if key in NAMING else fact).facts


async def _first(socket: Socket, member: Member, within_seconds: float) -> Message:
    try:
        async with asyncio.timeout(within_seconds):
            message = await receive(socket)
    except TimeoutError as error:
        raise Unreachable("peer_no_hello", name=member.name) from error
    except BadMessage as error:
        log.warning("%s sent an invalid message: %s", member.name, error)
        raise Refused("peer_speaks_oddly", name=member.name) from error
    if message is None:  # in TLS 1.3, the refusal of a certificate becomes visible only at the first read
        raise Refused("peer_refused_us", name=member.name)
    return message


class LinkServices(LinkEvents, Protocol):
    """The handler of the events of all links. It also provides what LinkManager needs to create links."""

    async def disconnected(self, link: PeerLink) -> None: ...
    def refusal_changed(self, machine: MachineId) -> None:
        """Handle a machine that starts or stops refusing a link although it responds; see `LinkManager.refusals`."""

    def flooded(self, machine: MachineId) -> None:
        """Abort all other connections of a machine immediately."""

    @property
    def members(self) -> Mapping[MachineId, Member]: ...
    def hello(self) -> Hello: ...
    def dialing_context(self, member: Member) -> ssl.SSLContext: ...
    def addresses(self, machine: MachineId) -> Sequence[Address]: ...


@dataclass(slots=True)
class _Call:
    """The attempts in progress to reach a member."""

    task: asyncio.Task[None]
    news: asyncio.Event = field(default_factory=asyncio.Event)  # a new address, or a lost link
    attempt: asyncio.Task[PeerLink | None] | None = None


class LinkManager:
    """The links of this machine, by peer. `maintain` and `abandon` set which machines to link to.

    `tasks` must outlive the link manager.
    """

    def __init__(
        self,
        me: MachineId,
        owner: LinkServices,
        tasks: asyncio.TaskGroup,
        heartbeat: Heartbeat,
        pace: LinkPace,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.up: dict[MachineId, PeerLink] = {}
        self.chosen_interfaces: dict[MachineId, LocalInterface] = {}  # the interface from which to dial each machine
        self.failed: dict[MachineId, Reason] = {}  # why the last call to a machine without a link failed
        # Why machines that responded twice in a row refused a link. Anything that they reported while last linked, such
        # as that they were shutting down, is outdated.
        self.refusals: dict[MachineId, Reason] = {}
        # returns whether a machine's announcements are received
        self.hears: Callable[[MachineId], bool | None] = lambda _: None
        self._me, self._owner, self._tasks = me, owner, tasks
        self._heartbeat, self._pace, self._clock = heartbeat, pace, clock
        self._calls: dict[MachineId, _Call] = {}
        self._welcoming: dict[MachineId, asyncio.Lock] = {}
        self._over = False
        self._allowances: dict[MachineId, Allowance] = {}

    def maintain(self, member: Member) -> None:
        """Maintain a link to `member` until `abandon` is called. Does nothing after `close`."""
        if member.id not in self._calls and not self._over:
            name = f"keep a link to {member.name}"
            task = self._tasks.create_task(self._keep(member), name=name)
            self._calls[member.id] = _Call(task)

    def hint(self, machine: MachineId) -> None:
        """Dial `machine` again without waiting. Its address may have changed, or its link was lost."""
        if machine in self._calls:
            self._calls[machine].news.set()

    def is_down(self, machine: MachineId) -> bool:
        """Return whether the last call to `machine` was refused, which means that its system is up but Poolhouse is
        not running."""
        why = self.failed.get(machine)
        return machine not in self.up and why is not None and bool(why.facts.get("refused"))

    def drop_stale(self, own_hosts: Collection[str]) -> None:
        """Close and redial the links that use an address which this machine no longer has.

        Nothing else would detect that they are dead. Their data connections also end and are reopened. This does
        not wait for the links to close, since that takes seconds on a dead path and the address may change again in
        the meantime. Loopback links are kept: 127.0.0.2 is an address of this machine even though no interface has
        it.
        """
        for link in self.up.values():
            own = link.own_host
            if own and own not in own_hosts and not ipaddress.ip_address(own).is_loopback:
                log.info("the address %s is gone, and the link to %s with it", own, link.name)
                why = Reason("link_lost", {"name": link.name})
                self._tasks.create_task(link.close(why), name="leave a link behind")

    async def abandon(self, machine: MachineId, why: Reason) -> None:
        """End the link to `machine` and stop dialing it."""
        call = self._calls.pop(machine, None)
        self._clear_failure(machine)
        if call is not None:
            call.task.cancel()
        link = self.up.get(machine)
        if link is not None:
            await link.close(why)

    async def close(self, why: Reason) -> None:
        """End all links and create no new ones, even if the household log changes during shutdown."""
        self._over = True
        async with asyncio.TaskGroup() as tasks:
            for machine in {*self._calls, *self.up}:
                tasks.create_task(self.abandon(machine, why), name="close a link")

    async def call(self, member: Member, addresses: Sequence[Address]) -> PeerLink:
        """Dial the addresses in parallel, and exchange HELLO on the first connection that opens.

        The interface chosen for this machine is tried first, then any other. The returned link is not running yet.
        Raises Refused or Unreachable.
        """
        if not addresses:
            raise Unreachable("peer_address_unknown", name=member.name)
        through, tried = self.chosen_interfaces.get(member.id), addresses[:ADDRESSES_TRIED]
        try:
            client, socket = await self._race(member, tried, through)
        except (Unreachable, Refused):  # on that interface, another machine may have the address
            if through is None:
                raise
            client, socket = await self._race(member, tried, None)
        try:
            mine, us = self._owner.hello(), self._owner.members.get(self._me)
            theirs = await say_hello(socket, mine, member, ACK_SECONDS, us.name if us is not None else mine.name)
        except BaseException as error:
            await asyncio.shield(client.close())
            if isinstance(error, OSError | aiohttp.ClientError):
                raise Refused("peer_refused_us", name=member.name) from error
            raise
        return self._made(socket, client, theirs, dialed=True)

    def _made(self, socket: Socket, client: PeerClient, theirs: Hello | HelloAck, *, dialed: bool) -> PeerLink:
        member = client.member.id
        return PeerLink(
            socket,
            client,
            theirs,
            lambda name: self._name(client.member, name),
            dialed,
            self._clock,
            lambda: self.hears(member),
            self._allowance(member),
        )

    def _name(self, member: Member, announced: str) -> str:
        """Return the name that a machine announces or, if another machine uses that name, its name in the household."""
        taken = {
            *(other.name for key, other in self._owner.members.items() if key != member.id),
            *(link.name for key, link in self.up.items() if key != member.id),
            self._owner.hello().name,
        }
        return unless_taken(announced, member.name, taken)

    def is_barred(self, machine: MachineId) -> bool:
        """Return whether a member has flooded this machine within the last minute."""
        return machine in self._allowances and self._allowances[machine].is_barred

    def _allowance(self, machine: MachineId) -> Allowance:
        if machine not in self._allowances:
            self._allowances[machine] = Allowance(self._clock, lambda: self._owner.flooded(machine))
        return self._allowances[machine]

    async def accept(self, member: Member, socket: web.WebSocketResponse, host: str) -> None:
        """Serve a link that a member dialed, from HELLO until it ends."""
        try:
            link = await self._welcome(member, socket, host)
        except AppError as error:
            if error.reason.code == "version_differs":  # it may be that only the other side can dial
                self._record_failure(member.id, error.reason)
            refuse = Refuse(code=error.reason.code, facts=sent_facts(error.reason.facts))
            with suppress(OSError, aiohttp.ClientError):
                await socket.send_str(encode(refuse).decode("utf-8"))
            return
        await self.serve(link)

    def register(self, link: PeerLink) -> None:
        """Register a link returned by `call` as up. The caller must call `serve` next."""
        self.up[link.peer] = link
        self._clear_failure(link.peer)

    async def reach(self, member: Member, address: Address) -> None:
        """Link to a member at an address that the user entered. The address is remembered like any other.

        Raises Refused or Unreachable.
        """
        if member.id in self.up:
            return
        link = await self.call(member, [address])
        if member.id in self.up:
            await self.drop(link)
            return
        self.register(link)
        self._tasks.create_task(self.serve(link), name=f"link to {member.name}")

    async def drop(self, link: PeerLink) -> None:
        """Discard a link that was never run."""
        if self.up.get(link.peer) is link:
            del self.up[link.peer]
        await link.close(Reason("link_doubled", {"name": link.name}))
        link.finished.set()

    async def serve(self, link: PeerLink) -> None:
        """Serve a link that is up, until it ends."""
        try:
            await link.run(self._owner, self._heartbeat)
        except Exception:  # top of a task: no fault of one peer may affect the links to others
            log.exception("link to %s", link.name)
        finally:
            if self.up.get(link.peer) is link:
                del self.up[link.peer]
                self.hint(link.peer)
            await self._part(link)

    async def _part(self, link: PeerLink) -> None:
        """Notify the owner of the end of a link, exactly once and before the next link to the same machine is up."""
        if link.announced:
            link.announced = False
            await self._owner.disconnected(link)

    async def _welcome(self, member: Member, socket: web.WebSocketResponse, host: str) -> PeerLink:
        """Exchange greetings as the accepting side, and return the link. Raises Refused or Unreachable."""
        if self.is_barred(member.id):
            raise Refused("peer_floods", name=member.name)
        try:
            self._allowance(member.id).take(EventKind.LINK)
        except Flood as error:
            log.warning("%s is flooding this machine: %s", member.name, error)
            raise Refused("peer_floods", name=member.name) from error
        mine = self._owner.hello()
        theirs = await receive_hello(socket, mine, member)
        async with self._welcoming.setdefault(member.id, asyncio.Lock()):
            await self._make_way(member.id, theirs)
            try:
                await socket.send_str(encode(as_ack(mine)).decode("utf-8"))
            except (OSError, aiohttp.ClientError) as error:
                raise Unreachable("link_lost", name=member.name) from error
            address = Address(host, theirs.peer_port)
            context = self._owner.dialing_context(member)
            client = PeerClient(member, address, context, pace=self._pace)
            link = self._made(socket, client, theirs, dialed=False)
            self.register(link)
            return link

    async def _keep(self, member: Member) -> None:
        """Keep dialing a member and serving the link. Redial immediately after a loss, then at growing intervals."""
        patience_seconds = REDIAL_SECONDS
        while True:
            call = self._calls[member.id]
            link = None if member.id in self.up else await self._attempt(member, call)
            if link is not None:
                patience_seconds = REDIAL_SECONDS
                await self.serve(link)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(None if member.id in self.up else patience_seconds):
                    await call.news.wait()
                    patience_seconds = REDIAL_SECONDS
            call.news.clear()
            patience_seconds = min(2 * patience_seconds, REDIAL_AT_MOST_SECONDS)

    async def _attempt(self, member: Member, call: _Call) -> PeerLink | None:
        """Dial once. If the other side's call succeeds first, `_make_way` cancels the attempt."""
        addresses = self._owner.addresses(member.id)
        if not addresses or self.is_barred(member.id):
            return None
        attempt = self._tasks.create_task(self._quietly(member, addresses), name=f"dial {member.name}")
        call.attempt = attempt
        try:
            await asyncio.wait({attempt})
        except asyncio.CancelledError:
            attempt.cancel()
            if attempt.done() and not attempt.cancelled() and (link := attempt.result()):
                await self.drop(link)
            raise
        finally:
            call.attempt = None
        return None if attempt.cancelled() else attempt.result()

    async def _quietly(self, member: Member, addresses: Sequence[Address]) -> PeerLink | None:
        try:
            link = await self.call(member, addresses)
        except AppError as error:
            log.debug("dialing %s: %s", member.name, error.reason)
            self._record_failure(member.id, error.reason)
            return None
        if member.id in self.up:  # the other side's call succeeded in the meantime
            await self.drop(link)
            return None
        self.register(link)  # here rather than in the waiting task, since `_make_way` may check immediately
        return link

    def _record_failure(self, machine: MachineId, why: Reason) -> None:
        """Record a failed call. A machine that is shutting down also hangs up, so only two failures in a row count
        as a refusal.
        """
        before, self.failed[machine] = self.failed.get(machine), why
        if why.code in ANSWERED:
            if before is not None and before.code == why.code and self.refusals.get(machine) != why:
                self.refusals[machine] = why
                self._owner.refusal_changed(machine)
        elif self.refusals.pop(machine, None):
            self._owner.refusal_changed(machine)

    def _clear_failure(self, machine: MachineId) -> None:
        self.failed.pop(machine, None)
        if self.refusals.pop(machine, None):
            self._owner.refusal_changed(machine)

    async def _make_way(self, machine: MachineId, theirs: Hello) -> None:
        """Decide between an incoming link and an existing link or call to the same machine. Raises Refused."""
        call = self._calls.get(machine)
        if call is not None and call.attempt is not None:
            if self._me < machine:  # if both sides are dialing, the call of the machine with the smaller id wins
                await asyncio.wait({call.attempt}, timeout=OWN_CALL_SECONDS)
            if call.attempt is not None:  # it may have ended in the meantime
                call.attempt.cancel()
        old = self.up.get(machine)
        if old is None:
            return
        if old.hello.instance != theirs.instance:
            if await old.answers_within(PROOF_OF_LIFE_SECONDS):
                raise Refused("identity_copied", name=old.name)
        elif self._me < machine and old.dialed and self._is_fresh(old):
            raise Refused("link_doubled", name=old.name)
        # a machine dials only if it has no link, so it has lost the old one
        await old.close(Reason("link_replaced", {"name": old.name}))
        with suppress(TimeoutError):
            async with asyncio.timeout(REPLACED_SECONDS):
                await old.finished.wait()
        await self._part(old)  # now, since a handler or a full socket may delay the end of the old link for long

    def _is_fresh(self, link: PeerLink) -> bool:
        return self._clock() - link.up_since_seconds < SIMULTANEOUS_SECONDS

    async def _race(
        self, member: Member, addresses: Sequence[Address], through: LocalInterface | None
    ) -> tuple[PeerClient, aiohttp.ClientWebSocketResponse]:
        """Dial all addresses in parallel. Return the first connection that opens, and close the others."""
        context = self._owner.dialing_context(member)
        clients = [PeerClient(member, address, context, through, self._pace) for address in addresses]
        won: list[tuple[PeerClient, aiohttp.ClientWebSocketResponse]] = []
        errors: list[AppError] = []

        async def run(client: PeerClient) -> None:
            try:
                won.append((client, await client.open_control()))
            except AppError as error:
                errors.append(error)
                return
            for other in runners:
                if other is not asyncio.current_task():
                    other.cancel()

        keep: PeerClient | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                runners = [tasks.create_task(run(c), name=f"dial {c.address}") for c in clients]
            keep = won[0][0] if won else None
        finally:
            losers = [client.close() for client in clients if client is not keep]
            try:
                await asyncio.shield(asyncio.gather(*losers))
            except asyncio.CancelledError:  # the winning connection is no longer wanted
                if keep is not None:
                    await asyncio.shield(keep.close())
                raise
        if not won:
            raise next((error for error in errors if isinstance(error, Refused)), errors[0])
        return won[0]
