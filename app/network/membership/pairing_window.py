"""Both sides of pairing: the temporary port of a pairing window, and the newcomer that connects to it.

app/core/household/pairing.py makes the decisions, and code_exchange.py defines the protocol. This module adds the
sockets and the clock.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from app.core.errors import AppError, BadInput, DoesNotFit, Reason, Refused, Unreachable
from app.core.household import pairing
from app.core.household.membership import Log
from app.core.household.operations import HouseholdId, Role
from app.core.household.operations import decode as decode_operation
from app.core.household.operations import encode as encode_operation
from app.core.ids import MachineId
from app.network.identity import BadCertificate, Identity
from app.network.membership.code_exchange import (
    CODE_DIGITS,
    MAX_PAIR_BYTES,
    NONCE_BYTES,
    Doorkeeper,
    Newcomer,
    PairAnswer,
    PairConfirm,
    PairHello,
    PairMessage,
    PairOperation,
    PairProof,
    PairRefuse,
    PairSigned,
    PairWelcome,
    WrongProof,
    decode,
    encode,
)
from app.network.membership.household_log import JoinResult
from app.network.messages import BadMessage, Refuse, received_reason, sent_facts
from app.network.sockets import Address, accept_connection, tune
from app.network.tls import fingerprint, free_handshake_memory, pairing_client_context, pairing_server_context, peer_der
from app.network.waiting_room import Entrance, WaitingRoom

HANDSHAKE_SECONDS, CONNECT_SECONDS, GOODBYE_SECONDS = 5.0, 3.0, 1.0
READ_AHEAD_BYTES = 2 * MAX_PAIR_BYTES

T = TypeVar("T", bound=PairMessage)


class PairingConnection:
    """A TLS connection between a newcomer and a member. Each message is JSON, preceded by its length in four bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    @classmethod
    async def accept(cls, sock: socket.socket, context: ssl.SSLContext) -> PairingConnection:
        """Perform the server's side of the TLS handshake on an accepted connection. Raises OSError."""
        tune(sock)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=READ_AHEAD_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            sock,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=GOODBYE_SECONDS,
        )
        return cls(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    @classmethod
    async def dial(cls, address: Address) -> PairingConnection:
        """Connect as the newcomer. The server's certificate is read but not verified. Raises OSError."""
        async with asyncio.timeout(CONNECT_SECONDS + HANDSHAKE_SECONDS):
            reader, writer = await asyncio.open_connection(
                address.host,
                address.port,
                limit=READ_AHEAD_BYTES,
                ssl=pairing_client_context(),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=GOODBYE_SECONDS,
            )
        return cls(reader, writer)

    def server_der(self) -> bytes:
        """Return the certificate that the other side presented, or b"" if there was none."""
        return peer_der(self.writer.get_extra_info("ssl_object")) or b""

    async def __aenter__(self) -> PairingConnection:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self.writer.wait_closed()

    async def send(self, message: PairMessage) -> None:
        raw = encode(message)
        self.writer.write(len(raw).to_bytes(4, "big") + raw)
        await self.writer.drain()

    async def receive(self, kind: type[T]) -> T:
        """Return the next message, which must be of type `kind`.

        Raises BadMessage for another message, AppError if the peer states a reason for ending, EOFError or OSError.
        """
        length = int.from_bytes(await self._reader.readexactly(4), "big")
        if length > MAX_PAIR_BYTES:
            raise BadMessage(f"{length} bytes announced")
        message = decode(await self._reader.readexactly(length))
        if isinstance(message, kind):
            return message
        if isinstance(message, PairRefuse):
            reason = received_reason(Refuse(code=message.code, facts=message.facts))
            raise Refused(reason.code, **reason.facts)
        raise BadMessage(f"{type(message).__name__} out of order")

    async def refuse(self, why: Reason) -> None:
        """Send the reason for ending the exchange. Errors are ignored, since the other side may already be gone."""
        with suppress(OSError):
            await self.send(PairRefuse(code=why.code, facts=sent_facts(why.facts)))


TICK_SECONDS = 0.2
CALLERS, CALLERS_OF_ONE_NETWORK = 32, 16  # simultaneous connections that have not sent a proof
GREETING_SECONDS = 5.0  # for everything up to the proof; the user has already typed the code
ANSWER_SECONDS = 0.05  # between two answers to greetings, each of which costs a few milliseconds
CALMING_SECONDS = 0.2  # pause after a failed attempt

log = logging.getLogger(__name__)
BROKEN = (BadMessage, OSError, EOFError)  # TimeoutError and ssl.SSLError are OSErrors


class Admission(Protocol):
    """The part of the household log's owner that the pairing window uses."""

    def admit(self, machine: MachineId, der: bytes, name: str) -> Log:
        """Admit `machine` on trial for its first link, and return the log to send to it. Raises Refused."""

    async def confirm(self, machine: MachineId) -> None:
        """Make the machine on trial a permanent member, now that its link is up."""

    def withdraw(self, machine: MachineId) -> None:
        """Drop the machine on trial, which never established a link."""

    def peer_port(self) -> int:
        """Return the port to which the newcomer connects its link."""


@dataclass(frozen=True, slots=True)
class PairingParty:
    """The identity, name and version that this machine presents when pairing."""

    identity: Identity
    name: str
    build: str


class PairingWindow:
    """A pairing window. It is open from the display of its code until the newcomer's first link is up."""

    def __init__(
        self,
        me: PairingParty,
        admission: Admission,
        sock: socket.socket,
        shown_host: str,
        roles: Sequence[Role],
        changed: Callable[[pairing.State], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.code = f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
        self.address = Address(shown_host, sock.getsockname()[1])
        self.roles = tuple(sorted(set(roles)))  # of the machine that will join
        self._me, self._admission, self._sock = me, admission, sock
        self._changed, self._clock = changed, clock
        self._context = pairing_server_context(me.identity.pem, me.identity.passphrase)
        self._state, _ = pairing.step(pairing.Closed(), pairing.WindowRequested(clock()))
        self._ended = asyncio.Event()
        room = WaitingRoom[socket.socket](CALLERS, CALLERS_OF_ONE_NETWORK)
        self._entrance = Entrance(self._call, room, HANDSHAKE_SECONDS)
        self._answering = asyncio.Lock()
        self._sent = False  # whether the whole log was sent

    @property
    def state(self) -> pairing.State:
        """Return the current state of the window."""
        return self._state

    @property
    def seconds_left(self) -> float:
        """Return for how many more seconds the code is valid, or 0 if it has expired."""
        until = getattr(self._state, "until_seconds", 0.0)
        good = not isinstance(self._state, pairing.Admitted)
        return max(0.0, until - self._clock()) if good else 0.0

    @property
    def tries_left(self) -> int:
        """Return how many more wrong codes are allowed."""
        return getattr(self._state, "tries", 0)

    @property
    def ended(self) -> bool:
        """Return whether the window has ended, successfully or not."""
        return self._ended.is_set()

    async def result(self) -> MachineId:
        """Wait for the window to end, and return the paired machine. Raises Refused with the reason if none joined."""
        await self._ended.wait()
        if isinstance(self._state, pairing.Done):
            return self._state.machine
        why = self._state.why if isinstance(self._state, pairing.Closed) else None
        reason = why or Reason("pairing_cancelled")
        raise Refused(reason.code, **reason.facts)

    async def close(self) -> None:
        """Close the window and invalidate its code."""
        self._apply(pairing.Canceled())

    async def linked(self, machine: MachineId) -> None:
        """Record that the link to `machine` is up, which makes the newcomer a permanent member."""
        self._apply(pairing.Linked(machine))
        if self._state == pairing.Done(machine):
            try:
                await self._admission.confirm(machine)
            except (DoesNotFit, Refused) as error:  # the machine did not become a member
                self._state = pairing.Closed(error.reason)
                self._changed(self._state)
            finally:
                self._ended.set()

    async def run(self) -> None:
        """Accept connections until the window ends."""
        self._changed(self._state)
        try:
            async with asyncio.TaskGroup() as tasks:
                helpers = (
                    tasks.create_task(self._accept(tasks), name="pairing port"),
                    tasks.create_task(self._tick(), name="pairing clock"),
                )
                await self._ended.wait()
                for helper in helpers:
                    helper.cancel()
                await asyncio.wait(helpers)  # nothing is accepted any more, so the port can be closed
                self._sock.close()
        finally:
            self._apply(pairing.Canceled())
            self._sock.close()

    def _apply(self, event: pairing.Event) -> tuple[pairing.Command, ...]:
        """Apply an event and execute the commands that need no socket. Return all commands."""
        before = self._state
        self._state, commands = pairing.step(before, event)
        for command in commands:
            if isinstance(command, pairing.RevokeAdmission):
                self._admission.withdraw(command.machine)
        if self._state != before:
            self._changed(self._state)
        if isinstance(self._state, pairing.Closed):
            self._ended.set()
        return commands

    async def _tick(self) -> None:
        while True:
            self._apply(pairing.TimePassed(self._clock()))
            await asyncio.sleep(TICK_SECONDS)

    async def _accept(self, tasks: asyncio.TaskGroup) -> None:
        def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            return tasks.create_task(work, name=f"pairing: {name}")

        while True:
            try:
                sock, host = await accept_connection(self._sock)
            except OSError:
                await asyncio.sleep(TICK_SECONDS)
                continue
            self._entrance.admit(sock, host, start)
            # if many connections arrive together, each is served before another can take its place
            await asyncio.sleep(0)

    async def _call(self, sock: socket.socket, _: str) -> None:
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                wire = await PairingConnection.accept(sock, self._context)
            async with wire:
                async with asyncio.timeout(GREETING_SECONDS):
                    met = await self._greet(wire)
                if met is not None:
                    self._entrance.room.leave(sock)  # no other connection can take its place now
                    async with asyncio.timeout(pairing.ATTEMPT_SECONDS):
                        await self._check_proof(wire, *met)
        except BROKEN as error:
            log.info("a pairing attempt failed: %s", error)
            free_handshake_memory(error)
            sock.close()
        except Exception:  # top of a task: a stranger may end the window only by the rules
            log.exception("a pairing attempt failed")
            sock.close()

    async def _greet(self, wire: PairingConnection) -> tuple[Doorkeeper, PairProof] | None:
        """Exchange the first messages. Return the newcomer's proof and the Doorkeeper that checks it, or None if the
        newcomer was refused.

        Several newcomers may be greeted at the same time.
        """
        try:
            hello = await wire.receive(PairHello)
            if not isinstance(self._state, pairing.Open):
                await wire.refuse(self._why_not())
                return None
            me, nonce = self._me, secrets.token_bytes(NONCE_BYTES)
            keeper = Doorkeeper(self.code, me.identity, me.name, me.build, nonce)
            async with self._answering:  # first come, first served
                answer = keeper.handle_hello(hello)
                await asyncio.sleep(ANSWER_SECONDS)
            await wire.send(answer)
            return keeper, await wire.receive(PairProof)
        except WrongProof:  # an invalid SPAKE2 message counts as a wrong guess
            if pairing.Check() in self._apply(pairing.ProofReceived(self._clock())):
                await self._refuse(wire, self._apply(pairing.ProofRejected()))
        except AppError as error:
            await self._refuse(wire, (), error.reason)
        except BadMessage:
            await self._refuse(wire, (pairing.EndAttempt(pairing.OUT_OF_ORDER),))
            raise
        return None

    async def _check_proof(self, wire: PairingConnection, keeper: Doorkeeper, proof: PairProof) -> None:
        """Check the newcomer's proof. If it is valid, admit the newcomer. Only one proof is checked at a time."""
        # the attempt is counted before the proof is checked
        if pairing.Check() not in self._apply(pairing.ProofReceived(self._clock())):
            await wire.refuse(self._why_not())
            return
        commands: tuple[pairing.Command, ...] = ()
        why: Reason | None = None
        event: pairing.Event = pairing.AttemptBroken()
        try:
            await self._exchange(wire, keeper, proof)
            return
        except WrongProof:
            event = pairing.ProofRejected()
        except AppError as error:
            why = error.reason
        except BROKEN as error:
            log.info("a pairing attempt failed: %s", error)
        finally:
            commands = self._after_attempt(event)
        await self._refuse(wire, commands, why)

    def _why_not(self) -> Reason:
        """Return the reason why no newcomer can be admitted now."""
        if isinstance(self._state, pairing.Closed):
            return self._state.why or Reason("pairing_cancelled")
        return Reason("pairing_busy")

    async def _refuse(
        self, wire: PairingConnection, commands: tuple[pairing.Command, ...], why: Reason | None = None
    ) -> None:
        drops = [command.why for command in commands if isinstance(command, pairing.EndAttempt)]
        await wire.refuse(why or (drops[0] if drops else pairing.UNFINISHED))
        await asyncio.sleep(CALMING_SECONDS)

    def _after_attempt(self, event: pairing.Event) -> tuple[pairing.Command, ...]:
        """Update the state of the window after an attempt, even if the attempt was canceled or timed out.

        Does nothing if the newcomer was admitted and received the whole log.
        """
        match self._state:
            case pairing.Checking() | pairing.Exchange():
                return self._apply(event)
            case pairing.Admitted() if not self._sent:  # the newcomer never received the whole log
                return self._apply(pairing.Canceled())
            case _:
                return ()

    async def _exchange(self, wire: PairingConnection, keeper: Doorkeeper, proof: PairProof) -> None:
        confirm = keeper.handle_proof(proof)
        self._require(pairing.ProofAccepted(), pairing.Confirm)
        await wire.send(confirm)
        machine, der, name = keeper.handle_signature(await wire.receive(PairSigned))
        self._require(pairing.Signed(machine, self._clock()), pairing.Admit)
        granted = self._admission.admit(machine, der, name)
        welcome = PairWelcome(
            household=granted.household, peer_port=self._admission.peer_port(), operations=len(granted.operations)
        )
        await wire.send(welcome)
        for operation in granted.operations:
            await wire.send(PairOperation(operation=encode_operation(operation).decode("ascii")))
        self._sent = True

    def _require(self, event: pairing.Event, command: type[pairing.Command]) -> None:
        """Apply an event. Raises BadMessage unless it results in `command`, for example because the window was
        closed."""
        if not any(isinstance(answer, command) for answer in self._apply(event)):
            raise BadMessage("the window is closed")


async def join(address: Address, code: str, me: PairingParty) -> JoinResult:
    """Join a household as the newcomer: prove knowledge of the code, and receive the household log.

    Pairing is complete only when the link to `peer_address` is up. Raises BadInput, Refused or Unreachable.
    """
    digits = "".join(code.split()).replace("-", "")
    if len(digits) != CODE_DIGITS or not (digits.isascii() and digits.isdecimal()):
        raise BadInput("code_form")
    try:
        wire = await PairingConnection.dial(address)
    except OSError as error:
        raise Unreachable("pairing_unreachable", address=str(address)) from error
    try:
        async with wire, asyncio.timeout(pairing.ATTEMPT_SECONDS):
            return await _join(wire, address, digits, me)
    except WrongProof as error:
        raise Refused("pairing_not_proved") from error
    except BROKEN as error:
        log.info("joining failed: %s", error)
        raise Unreachable("pairing_broken") from error
    except BadCertificate as error:
        raise Refused("pairing_odd_certificate", address=str(address)) from error


async def _join(wire: PairingConnection, address: Address, code: str, me: PairingParty) -> JoinResult:
    der = wire.server_der()
    nonce = secrets.token_bytes(NONCE_BYTES)
    newcomer = Newcomer(code, me.identity, me.name, me.build, der, nonce)
    await wire.send(newcomer.hello())
    answer = await wire.receive(PairAnswer)
    await wire.send(newcomer.handle_answer(answer))
    await wire.send(newcomer.handle_confirm(await wire.receive(PairConfirm)))
    welcome = await wire.receive(PairWelcome)
    operations = []
    for _ in range(welcome.operations):
        line = await wire.receive(PairOperation)
        try:
            operations.append(decode_operation(line.operation))
        except ValueError as error:
            raise BadMessage("operation") from error
    return JoinResult(
        household=HouseholdId(welcome.household),
        operations=tuple(operations),
        peer=fingerprint(der),
        peer_name=answer.name,
        peer_address=Address(address.host, welcome.peer_port),
    )
