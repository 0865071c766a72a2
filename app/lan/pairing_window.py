"""The temporary port of a pairing window, and the newcomer's way through it.

core/pairing.py decides, lan/code_exchange.py speaks; here are the sockets and the clock.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from app.core import pairing
from app.core.errors import AppError, BadInput, DoesNotFit, Reason, Refused, Unreachable
from app.core.ids import MachineId
from app.core.membership import Log
from app.core.operations import HouseholdId, Operation
from app.core.operations import decode as decode_operation
from app.core.operations import encode as encode_operation
from app.lan.code_exchange import (
    CODE_DIGITS,
    NONCE_BYTES,
    Doorkeeper,
    Newcomer,
    PairAnswer,
    PairConfirm,
    PairHello,
    PairOperation,
    PairProof,
    PairSigned,
    PairWelcome,
    WrongProof,
)
from app.lan.identity import BadCertificate, Identity
from app.lan.messages import BadMessage
from app.lan.pair_wire import PairWire
from app.lan.sockets import Address, accepted
from app.lan.tls import fingerprint, let_go, pairing_server_context

TICK_SECONDS = 0.2
CALLERS = 8  # connections at a time; only one of them gets past its first message
CALMING_SECONDS = 0.2  # after a failed attempt: each costs us some milliseconds

log = logging.getLogger(__name__)
BROKEN = (BadMessage, OSError, EOFError)  # TimeoutError and ssl.SSLError are OSErrors


class Admission(Protocol):
    """Who keeps the household log."""

    def admit(self, machine: MachineId, der: bytes, name: str) -> Log:
        """Let `machine` in for its first link; the log it gets. Raises Refused."""

    async def keep(self, machine: MachineId) -> None:
        """Its link is up: it is a member for good."""

    def withdraw(self, machine: MachineId) -> None:
        """It never linked: forget it."""

    def peer_port(self) -> int:
        """Where it shall link to."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whom this side says to be."""

    identity: Identity
    name: str
    build: str


@dataclass(frozen=True, slots=True)
class JoinResult:
    """What the newcomer brings home. Nothing of it is verified but who `peer` is."""

    household: HouseholdId
    operations: tuple[Operation, ...]
    peer: MachineId
    peer_name: str
    peer_address: Address


class PairingWindow:
    """One window of M, from the shown code to the newcomer's first link."""

    def __init__(
        self,
        me: Speaker,
        admission: Admission,
        sock: socket.socket,
        shown_host: str,
        changed: Callable[[pairing.State], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.code = f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
        self.address = Address(shown_host, sock.getsockname()[1])
        self._me, self._admission, self._sock = me, admission, sock
        self._changed, self._clock = changed, clock
        self._context = pairing_server_context(me.identity.pem, me.identity.passphrase)
        self._state, _ = pairing.step(pairing.Closed(), pairing.Asked(clock()))
        self._ended = asyncio.Event()
        self._callers = 0
        self._sent = False  # the whole log went out

    @property
    def state(self) -> pairing.State:
        """Where the window is now."""
        return self._state

    @property
    def seconds_left(self) -> float:
        """How long the code is good; 0 when it no longer is."""
        until = getattr(self._state, "until_seconds", 0.0)
        good = not isinstance(self._state, pairing.Admitted)
        return max(0.0, until - self._clock()) if good else 0.0

    @property
    def tries_left(self) -> int:
        """Wrong codes that may still come."""
        return getattr(self._state, "tries", 0)

    @property
    def ended(self) -> bool:
        """Whether the window is over, well or not."""
        return self._ended.is_set()

    async def result(self) -> MachineId:
        """Waits for the end: the paired machine. Raises Refused with the reason otherwise."""
        await self._ended.wait()
        if isinstance(self._state, pairing.Done):
            return self._state.machine
        why = self._state.why if isinstance(self._state, pairing.Closed) else None
        reason = why or Reason("pairing_cancelled")
        raise Refused(reason.code, **reason.facts)

    async def close(self) -> None:
        """End the window; its code is void."""
        self._apply(pairing.Cancelled())

    async def linked(self, machine: MachineId) -> None:
        """`machine` has a link that passed the three checks."""
        self._apply(pairing.Linked(machine))
        if self._state == pairing.Done(machine):
            try:
                await self._admission.keep(machine)
            except (DoesNotFit, Refused) as error:  # it is no member then
                self._state = pairing.Closed(error.reason)
                self._changed(self._state)
            finally:
                self._ended.set()

    async def run(self) -> None:
        """Accept until the window has ended."""
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
                await asyncio.wait(helpers)  # nobody accepts any more: the port can go
                self._sock.close()
        finally:
            self._apply(pairing.Cancelled())
            self._sock.close()

    def _apply(self, event: pairing.Event) -> tuple[pairing.Command, ...]:
        """Take one step; what needs no socket is done here."""
        before = self._state
        self._state, commands = pairing.step(before, event)
        for command in commands:
            if isinstance(command, pairing.Withdraw):
                self._admission.withdraw(command.machine)
        if self._state != before:
            self._changed(self._state)
        if isinstance(self._state, pairing.Closed):
            self._ended.set()
        return commands

    async def _tick(self) -> None:
        while True:
            self._apply(pairing.Ticked(self._clock()))
            await asyncio.sleep(TICK_SECONDS)

    async def _accept(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            try:
                sock, _ = await accepted(self._sock)
            except OSError:
                await asyncio.sleep(TICK_SECONDS)
                continue
            if self._callers >= CALLERS:
                sock.close()
                continue
            self._callers += 1
            tasks.create_task(self._call(sock), name="somebody at the pairing port")

    async def _call(self, sock: socket.socket) -> None:
        try:
            async with asyncio.timeout(pairing.ATTEMPT_SECONDS):
                wire = await PairWire.accepted(sock, self._context)
                async with wire:
                    await self._meet(wire)
        except BROKEN as error:
            log.info("pairing attempt ended: %s", error)
            let_go(error)
            sock.close()
        except Exception:  # top of a task: no stranger may end the window but by its rules
            log.exception("pairing attempt")
            sock.close()
        finally:
            self._callers -= 1

    async def _meet(self, wire: PairWire) -> None:
        """Wait for its first message; then, if nobody else is being heard, hear it."""
        hello = await wire.receive(PairHello)
        if pairing.TurnAway() in self._apply(pairing.Came(self._clock())):
            await wire.refuse(Reason("pairing_busy"))
            return
        if isinstance(self._state, pairing.Closed):
            await wire.refuse(self._state.why or Reason("pairing_cancelled"))
            return
        commands: tuple[pairing.Command, ...] = ()
        why: Reason | None = None
        event: pairing.Event = pairing.Broken()
        try:
            await self._attempt(wire, hello)
            return
        except WrongProof:
            event = pairing.Failed()
        except AppError as error:
            why = error.reason
        except BROKEN as error:
            log.info("pairing attempt ended: %s", error)
        finally:
            commands = self._after_attempt(event)
        drops = [command.why for command in commands if isinstance(command, pairing.Drop)]
        await wire.refuse(why or (drops[0] if drops else pairing.UNFINISHED))
        await asyncio.sleep(CALMING_SECONDS)

    def _after_attempt(self, event: pairing.Event) -> tuple[pairing.Command, ...]:
        """However the attempt ended, cancelled or timed out: only `Admitted` by its own end."""
        match self._state:
            case pairing.Pake() | pairing.Confirm() | pairing.Checking() | pairing.Exchange():
                return self._apply(event)
            case pairing.Admitted() if not self._sent:  # it never got the whole log
                return self._apply(pairing.Cancelled())
            case _:
                return ()

    async def _attempt(self, wire: PairWire, hello: PairHello) -> None:
        me = self._me
        nonce = secrets.token_bytes(NONCE_BYTES)
        keeper = Doorkeeper(self.code, me.identity, me.name, me.build, nonce)
        answer = keeper.greeted(hello)
        self._must(pairing.Greeted(), pairing.Answer)
        await wire.send(answer)
        proof = await wire.receive(PairProof)
        self._must(pairing.Tried(), pairing.Check)  # counted, then checked
        confirm = keeper.proved(proof)
        self._must(pairing.Proved(), pairing.Confirmed)
        await wire.send(confirm)
        machine, der, name = keeper.signed(await wire.receive(PairSigned))
        self._must(pairing.Signed(machine, self._clock()), pairing.Admit)
        granted = self._admission.admit(machine, der, name)
        welcome = PairWelcome(
            household=granted.household,
            peer_port=self._admission.peer_port(),
            operations=len(granted.operations),
        )
        await wire.send(welcome)
        for operation in granted.operations:
            await wire.send(PairOperation(operation=encode_operation(operation).decode("ascii")))
        self._sent = True

    def _must(self, event: pairing.Event, command: type[pairing.Command]) -> None:
        """Go on only if the table says so: the window may have been closed meanwhile."""
        if not any(isinstance(given, command) for given in self._apply(event)):
            raise BadMessage("the window is closed")


async def join(address: Address, code: str, me: Speaker) -> JoinResult:
    """N's side: prove the code, take the log. Raises BadInput, Refused or Unreachable.

    N is paired only when its link to `peer_address` is up.
    """
    digits = "".join(code.split()).replace("-", "")
    if len(digits) != CODE_DIGITS or not (digits.isascii() and digits.isdecimal()):
        raise BadInput("code_form")
    try:
        wire = await PairWire.dialled(address)
    except OSError as error:
        raise Unreachable("pairing_unreachable", address=str(address)) from error
    try:
        async with wire, asyncio.timeout(pairing.ATTEMPT_SECONDS):
            return await _join(wire, address, digits, me)
    except WrongProof as error:
        raise Refused("pairing_not_proved") from error
    except BROKEN as error:
        log.info("joining ended: %s", error)
        raise Unreachable("pairing_broken") from error
    except BadCertificate as error:
        raise Refused("pairing_odd_certificate", address=str(address)) from error


async def _join(wire: PairWire, address: Address, code: str, me: Speaker) -> JoinResult:
    der = wire.server_der()
    nonce = secrets.token_bytes(NONCE_BYTES)
    newcomer = Newcomer(code, me.identity, me.name, me.build, der, nonce)
    await wire.send(newcomer.hello())
    answer = await wire.receive(PairAnswer)
    await wire.send(newcomer.answered(answer))
    await wire.send(newcomer.confirmed(await wire.receive(PairConfirm)))
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
