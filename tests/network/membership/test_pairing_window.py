"""A pairing window on its real port: tries, time, strangers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from app.core.errors import AppError, BadInput, Refused, Unreachable
from app.core.household import pairing
from app.core.household.membership import Log
from app.core.household.operations import FIRST_ROLES, Add
from app.core.ids import MachineId
from app.network.identity import Identity
from app.network.membership.code_exchange import Newcomer, PairAnswer, PairConfirm, PairHello, PairProof
from app.network.membership.household_log import JoinResult, new_household, sign_operation
from app.network.membership.pairing_window import (
    CALLERS,
    CALLERS_OF_ONE_NETWORK,
    PairingConnection,
    PairingParty,
    PairingWindow,
    join,
)
from app.network.sockets import Address, listening_socket
from tests.network.nodes import an_identity, until


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Door:
    """An admission that remembers, and the window it belongs to."""

    def __init__(self, member: Identity, new: Identity) -> None:
        self.member, self.new = member, new
        self.log = new_household(member, "member")
        self.admitted: list[MachineId] = []
        self.kept: list[MachineId] = []
        self.withdrawn: list[MachineId] = []
        self.states: list[pairing.State] = []
        self.clock = Clock()
        sock = listening_socket("127.0.0.1", 0)
        me = PairingParty(member, "member", "0.1")
        self.window = PairingWindow(me, self, sock, "127.0.0.1", (), self.states.append, self.clock)

    def admit(self, machine: MachineId, der: bytes, name: str) -> Log:
        self.admitted.append(machine)
        body = Add(self.log.household, machine, der, name, FIRST_ROLES)
        operation = sign_operation(self.member, body)
        return Log(self.log.household, (*self.log.operations, operation))

    async def confirm(self, machine: MachineId) -> None:
        self.kept.append(machine)

    def withdraw(self, machine: MachineId) -> None:
        self.withdrawn.append(machine)

    def peer_port(self) -> int:
        return 4242

    async def join(self, code: str | None = None) -> JoinResult:
        speaker = PairingParty(self.new, "new", "0.1")
        return await join(self.window.address, code or self.window.code, speaker)

    @property
    def wrong_code(self) -> str:
        return f"{(int(self.window.code) + 1) % 1_000_000:06}"


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Door]:
    identities = [(await an_identity(tmp_path / name))[1] for name in ("member", "new")]
    made = Door(*identities)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(made.window.run())
        await asyncio.sleep(0)
        yield made
        running.cancel()


async def code_of(error: pytest.ExceptionInfo[AppError]) -> str:
    return error.value.reason.code


async def test_pairing_ends_with_the_first_link(door: Door) -> None:
    assert len(door.window.code) == 6
    assert door.window.seconds_left == pytest.approx(120)
    result = await door.join(f" {door.window.code[:3]}-{door.window.code[3:]} ")
    assert result.peer == door.member.id
    assert result.peer_address == Address("127.0.0.1", 4242)
    assert [operation.body.machine for operation in result.operations] == [door.member.id, door.new.id]
    assert door.admitted == [door.new.id]
    assert not door.kept
    await door.window.linked(MachineId("f" * 64))  # somebody else's link is not it
    assert not door.kept
    await door.window.linked(door.new.id)
    assert await door.window.result() == door.new.id
    assert door.kept == [door.new.id]
    with pytest.raises(Unreachable):  # a used code is void
        await door.join()


async def test_the_fourth_try_finds_a_closed_window(door: Door) -> None:
    for left in (2, 1):
        with pytest.raises(Refused) as refused:
            await door.join(door.wrong_code)
        assert refused.value.reason.code == "code_wrong"
        assert refused.value.reason.facts == {"tries_left": left}
        assert door.window.tries_left == left
    with pytest.raises(Refused) as refused:
        await door.join(door.wrong_code)
    assert await code_of(refused) == "codes_wrong"
    with pytest.raises(AppError):
        await door.join()
    with pytest.raises(Refused) as refused:
        await door.window.result()
    assert await code_of(refused) == "pairing_tries_used"
    assert not door.admitted


async def test_a_right_code_after_a_wrong_one(door: Door) -> None:
    with pytest.raises(Refused):
        await door.join(door.wrong_code)
    await asyncio.sleep(0.3)
    assert (await door.join()).peer == door.member.id


async def test_after_two_minutes_the_code_is_void(door: Door) -> None:
    door.clock.now += 119
    assert door.window.seconds_left == pytest.approx(1)
    door.clock.now += 1
    with pytest.raises(AppError):
        await door.join()
    with pytest.raises(Refused) as refused:
        await door.window.result()
    assert await code_of(refused) == "pairing_expired"
    assert door.window.seconds_left == 0
    assert not door.admitted


async def test_who_never_links_is_withdrawn(door: Door) -> None:
    await door.join()
    door.clock.now += 60
    with pytest.raises(Refused) as refused:
        await door.window.result()
    assert await code_of(refused) == "pairing_unfinished"
    assert door.withdrawn == [door.new.id]
    assert not door.kept


async def test_cancelled_by_the_user(door: Door) -> None:
    await door.window.close()
    with pytest.raises(Refused) as refused:
        await door.window.result()
    assert await code_of(refused) == "pairing_cancelled"


async def test_who_has_no_proof_keeps_nobody_waiting_and_has_used_no_try(door: Door) -> None:
    """Anybody can greet, with any certificate; only who is told the code has more to say."""
    wires = [await PairingConnection.dial(door.window.address) for _ in range(CALLERS_OF_ONE_NETWORK)]
    try:
        for wire in wires:
            greeting = Newcomer("000000", door.new, "new", "0.1", wire.server_der(), b"n" * 32)
            await wire.send(greeting.hello())
        for wire in wires:
            await wire.receive(PairAnswer)
        assert door.window.tries_left == 3
        assert (await door.join()).peer == door.member.id
    finally:
        for wire in wires:
            wire.writer.transport.abort()


async def test_those_who_greet_again_and_again_keep_pairing_open(door: Door) -> None:
    n_greeted = 0

    async def greet() -> None:
        nonlocal n_greeted
        while True:
            with suppress(OSError, EOFError, AppError):
                wire = await PairingConnection.dial(door.window.address)
                async with wire:
                    der = wire.server_der()
                    greeting = Newcomer("000000", door.new, "new", "0.1", der, b"n" * 32)
                    await wire.send(greeting.hello())
                    await wire.receive(PairAnswer)
                    n_greeted += 1
                    await wire.receive(PairConfirm)

    async with asyncio.TaskGroup() as tasks:
        siege = [tasks.create_task(greet()) for _ in range(CALLERS_OF_ONE_NETWORK)]
        await until(lambda: n_greeted >= CALLERS_OF_ONE_NETWORK)
        assert (await door.join()).peer == door.member.id
        for besieger in siege:
            besieger.cancel()


async def test_while_one_is_let_in_the_others_are_told_so(door: Door) -> None:
    wire = await PairingConnection.dial(door.window.address)
    async with wire:
        first = Newcomer(door.window.code, door.new, "new", "0.1", wire.server_der(), b"n" * 32)
        await wire.send(first.hello())
        await wire.send(first.handle_answer(await wire.receive(PairAnswer)))
        await wire.receive(PairConfirm)  # it owes its signature
        with pytest.raises(Refused) as refused:
            await door.join()
        assert await code_of(refused) == "pairing_busy"
    with pytest.raises(Refused) as refused:
        await door.window.result()
    assert await code_of(refused) == "pairing_unfinished"
    assert not door.admitted


async def test_numbers_that_are_none_cost_a_try_each_and_no_more(door: Door) -> None:
    async def tries_left(n: int) -> None:
        await until(lambda: door.window.tries_left == n)

    for left in (2, 1, 0):
        wire = await PairingConnection.dial(door.window.address)
        async with wire:
            new = Newcomer(door.window.code, door.new, "new", "0.1", wire.server_der(), b"n" * 32)
            await wire.send(msgspec.structs.replace(new.hello(), spake=b"A" + b"\xff" * 32))
            with pytest.raises(Refused):
                await wire.receive(PairAnswer)
        await tries_left(left)
    with pytest.raises(Refused) as refused:
        await door.window.result()
    assert await code_of(refused) == "pairing_tries_used"


async def test_who_breaks_off_after_its_proof_has_used_a_try(door: Door) -> None:
    wire = await PairingConnection.dial(door.window.address)
    async with wire:
        new = Newcomer(door.window.code, door.new, "new", "0.1", wire.server_der(), b"n" * 32)
        await wire.send(new.hello())
        await wire.receive(PairAnswer)
        await wire.send(PairProof(tag=bytes(32)))
    await until(lambda: door.window.tries_left == 2)


async def test_silent_strangers_do_not_block_the_door(door: Door) -> None:
    host, port = door.window.address.host, door.window.address.port
    silent = [socket.create_connection((host, port)) for _ in range(CALLERS)]
    assert (await door.join()).peer == door.member.id
    for sock in silent:
        sock.close()


@pytest.mark.parametrize("kind", ["order", "long", "json", "other"])
async def test_messages_that_have_no_place_end_the_attempt(door: Door, kind: str) -> None:
    wire = await PairingConnection.dial(door.window.address)
    async with wire:
        raw = {"long": b"\xff\xff\xff\xff", "json": b"\x00\x00\x00\x02{}"}.get(kind)
        if raw:
            wire.writer.write(raw)
        elif kind == "order":
            await wire.send(PairProof(tag=bytes(32)))
        else:
            new = Newcomer("111111", door.new, "new", "0.1", wire.server_der(), b"n" * 32)
            await wire.send(new.hello())
            await wire.receive(PairAnswer)
            await wire.send(new.hello())
        with pytest.raises((AppError, EOFError, OSError)):
            await wire.receive(PairHello)
    await until(lambda: isinstance(door.window.state, pairing.Open))
    assert door.window.tries_left == 3
    assert (await door.join()).peer == door.member.id


@pytest.mark.parametrize("code", ["", "12345", "1234567", "12345x", "１２３４５６"])
async def test_a_code_has_six_digits(door: Door, code: str) -> None:
    with pytest.raises(BadInput):
        await join(door.window.address, code, PairingParty(door.new, "new", "0.1"))
    assert door.window.tries_left == 3


async def test_nobody_there_or_something_else(door: Door) -> None:
    speaker = PairingParty(door.new, "new", "0.1")
    with pytest.raises(Unreachable):
        await join(Address("127.0.0.1", 1), "123456", speaker)

    async def web_server(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(web_server, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable):
            await join(Address("127.0.0.1", port), "123456", speaker)
