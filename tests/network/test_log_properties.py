"""Whatever admins sign, honest or not: every node starts, all agree, and the first machine can still remove.

Real keys and certificates, and real files; only the network between the nodes is left out.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import Refused
from app.core.household import membership
from app.core.household.membership import Log
from app.core.household.operations import (
    FIRST_ROLES,
    MAX_TURN,
    NO_HOUSEHOLD,
    Add,
    Body,
    Operation,
    OperationId,
    Remove,
    Rename,
    Role,
    SetRoles,
    encode,
    household_of,
)
from app.core.ids import MachineId
from app.network.identity import Identity, make_certificate
from app.network.membership.household_log import LogKeeper, LogStore, sign_operation
from app.network.tls import fingerprint, peer_context
from tests.network.certificates import PASSPHRASE, Recipe, elliptic, write_identity

MACHINES = 6  # the first three keep logs; the first of all founds
NODES = 3


def an_identity(seed: int) -> Identity:
    key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"%d" % seed).digest())
    der = make_certificate(key)
    return Identity(fingerprint(der), der, Path("nowhere"), PASSPHRASE, key)


WHO = [an_identity(n) for n in range(MACHINES)]
BAD_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
# right hash, wrong certificate: garbage, another curve, an authority, one that is cut off, one with more behind it
UNFIT = [
    b"garbage",
    elliptic(),
    Recipe(key=BAD_KEY, ca=True).der(),
    WHO[1].der[:-1],
    WHO[1].der + WHO[2].der,
    Recipe(key=BAD_KEY, without="san").der(),
]
FIRST = sign_operation(WHO[0], Add(NO_HOUSEHOLD, WHO[0].id, WHO[0].der, "den", FIRST_ROLES))
HOUSEHOLD = household_of(FIRST)
FULL = {Add: 3, Remove: 3, SetRoles: 2, Rename: 2}  # little room, so that it is soon used up
SHARED = {Add: 4, Remove: 4, SetRoles: 3, Rename: 3}


@dataclass(frozen=True)
class Step:
    kind: str
    signer: int
    machine: int
    roles: tuple[Role, ...]
    number: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(("add", "add", "admin", "remove", "roles", "rename", "unfit", "invented", "forged")),
        st.integers(0, MACHINES - 1),
        st.integers(0, MACHINES - 1),
        st.sets(st.sampled_from(list(Role)), min_size=1).map(lambda roles: tuple(sorted(roles))),
        st.integers(0, 1 << 16),
    ),
    max_size=24,
)


def lines_of(steps: Sequence[Step]) -> list[Operation]:
    """Return the lines that the machines sign, including some signed by a machine that may not."""
    lines = [FIRST]
    for step in steps:
        signer = WHO[step.signer]
        line = sign_operation(signer, body_of(step, [line.id for line in lines]))
        if step.kind == "forged":
            line = Operation(line.body, WHO[step.number % MACHINES].id, line.signature)
        lines.append(line)
    return lines


def body_of(step: Step, before: Sequence[OperationId]) -> Body:
    there = WHO[step.machine]
    turn = MAX_TURN if step.number % 5 == 0 else 1 + step.number % 7
    match step.kind:
        case "admin":
            return Add(HOUSEHOLD, there.id, there.der, "x", (Role.ADMIN,))
        case "remove" | "forged":
            kept = [line for n, line in enumerate(before) if step.number >> n & 1]
            return Remove(HOUSEHOLD, there.id, tuple(sorted(set(kept))))
        case "roles":
            plain = tuple(role for role in step.roles if role is not Role.ADMIN)
            return SetRoles(HOUSEHOLD, there.id, turn, plain)
        case "rename":
            return Rename(HOUSEHOLD, there.id, turn, f"name {step.number % 3}")
        case "unfit":
            der = UNFIT[step.number % len(UNFIT)]
            machine = MachineId(hashlib.sha256(der).hexdigest())
            return Add(HOUSEHOLD, machine, der, "x", step.roles)
        case "invented":
            machine = MachineId(hashlib.sha256(b"nobody %d" % step.number).hexdigest())
            return Remove(HOUSEHOLD, machine, ())
        case _:
            return Add(HOUSEHOLD, there.id, there.der, f"added {step.number % 3}", step.roles)


class NodeLog:
    """The log of one node, with its file."""

    def __init__(self, number: int, directory: Path) -> None:
        self.directory, self.me = directory / str(number), WHO[number]
        self.directory.mkdir()
        self.keeper = self._keeper()
        self.keeper.log = Log(HOUSEHOLD, (FIRST,))
        self.keeper._evaluate()
        self.pem = self.directory / "identity.pem"
        write_identity(self.pem, self.me.key, self.me.der)

    def _keeper(self) -> LogKeeper:
        def write(path: Path, content: bytes) -> None:
            path.write_bytes(content)

        return LogKeeper(self.me, LogStore(self.directory, write), lambda: None)

    async def hears(self, lines: Sequence[str]) -> None:
        await self.keeper.merge(lines)

    async def starts(self) -> None:
        """Restart with the same log, and a port for exactly its members."""
        assert self.keeper.log is not None
        again = self._keeper()
        await again._store.save(self.keeper.log)
        await again.load()
        assert again.log == self.keeper.log
        assert again.members == self.keeper.members
        pins = [member.der for member in again.members.values()]
        context = peer_context(ssl.Purpose.CLIENT_AUTH, self.pem, PASSPHRASE, pins)
        assert context.cert_store_stats()["x509"] == len(pins)


async def exchange(nodes: Sequence[NodeLog]) -> None:
    """Exchange lines as each link does when it comes up, until nobody learns anything new."""
    for _ in range(20):
        before = [set(node.keeper.lines()) for node in nodes]
        for node_log in nodes:
            for other in nodes:
                if node_log is not other:
                    await other.hears(node_log.keeper.lines())
        if before == [set(node.keeper.lines()) for node in nodes]:
            return
    raise AssertionError("the nodes never agree")


async def live(steps: Sequence[Step], seed: int, directory: Path) -> None:
    chance = random.Random(seed)
    lines = [encode(line).decode("ascii") for line in lines_of(steps)]
    nodes = [NodeLog(number, directory) for number in range(NODES)]
    for node in nodes:
        mine = chance.sample(lines, chance.randint(0, len(lines)))
        while mine:
            count = chance.randint(1, len(mine))
            await node.hears(mine[:count])
            mine = mine[count:]
    await exchange(nodes)
    await agree(nodes)
    first = nodes[0].keeper
    if first.dismissed:
        return
    for machine in [machine for machine in first.members if machine != WHO[0].id]:
        if machine in first.members:  # who was added by one that was removed is gone with it
            await first.remove(machine, ())
            assert machine not in first.members
            assert machine not in membership.members(first.log or Log(HOUSEHOLD))
    await exchange(nodes)
    await agree(nodes)
    assert set(first.members) == {WHO[0].id}


async def agree(nodes: Sequence[NodeLog]) -> None:
    log_keeper = nodes[0].keeper
    for node in nodes:
        assert set(node.keeper.lines()) == set(log_keeper.lines())
        assert node.keeper.members == log_keeper.members
        await node.starts()


def run(steps: Sequence[Step], seed: int) -> None:
    with TemporaryDirectory() as directory:
        asyncio.run(live(steps, seed, Path(directory)))


@contextmanager
def little_room() -> Iterator[None]:
    with (
        patch.object(membership, "FOUNDER_ROOM", FULL | {Add: 6, Remove: 5}),
        patch.object(membership, "SIGNER_ROOM", FULL),
        patch.object(membership, "OTHERS_ROOM", SHARED),
    ):
        yield


QUICK = settings(max_examples=max(12, settings().max_examples // 4))


@QUICK
@given(STEPS, st.integers(0, 1 << 16))
def test_any_lines_leave_every_node_startable_of_one_mind_and_governable(steps: Sequence[Step], seed: int) -> None:
    run(steps, seed)


@QUICK
@given(STEPS.map(lambda steps: [step for step in steps if step.signer != 0]), st.integers(0, 1 << 16))
def test_the_same_where_others_use_up_all_the_room(steps: Sequence[Step], seed: int) -> None:
    admins = [Step("admin", 0, machine, (), 0) for machine in (1, 2, 3)]
    with little_room():
        run([*admins, *steps], seed)


async def test_a_thousand_removals_of_nobody_do_not_block_one_of_somebody(tmp_path: Path) -> None:
    den = NodeLog(0, tmp_path)
    admin = sign_operation(WHO[0], Add(HOUSEHOLD, WHO[1].id, WHO[1].der, "attic", FIRST_ROLES))
    body = Add(HOUSEHOLD, WHO[2].id, WHO[2].der, "loft", (Role.LENDER,))
    await den.hears([encode(line).decode() for line in (admin, sign_operation(WHO[1], body))])
    invented = [sign_operation(WHO[1], body_of(Step("invented", 1, 0, (), number), ())) for number in range(1024)]
    await den.hears([encode(line).decode() for line in invented])
    assert len(den.keeper.lines()) == 3
    await den.keeper.remove(WHO[2].id, ())
    assert WHO[2].id not in den.keeper.members


async def test_what_has_no_room_is_refused_and_not_told_as_done(tmp_path: Path) -> None:
    den, attic = NodeLog(0, tmp_path), NodeLog(1, tmp_path)
    lines = [
        sign_operation(WHO[0], Add(HOUSEHOLD, identity.id, identity.der, "x", roles))
        for identity, roles in ((WHO[1], FIRST_ROLES), *((identity, (Role.LENDER,)) for identity in WHO[2:]))
    ]
    for node in (den, attic):
        await node.hears([encode(line).decode() for line in lines])
    with little_room():
        for identity in WHO[2:5]:
            await attic.keeper.remove(identity.id, ())
        with pytest.raises(Refused) as raised:
            await attic.keeper.remove(WHO[5].id, ())
        assert raised.value.reason.code == "household_full_here"
        assert raised.value.reason.facts == {"name": "den"}
        assert WHO[5].id in attic.keeper.members
        await exchange([den, attic])
        await den.keeper.remove(WHO[5].id, ())
    assert WHO[5].id not in den.keeper.members


async def test_a_change_that_another_admin_outranks_is_refused(tmp_path: Path) -> None:
    den = NodeLog(0, tmp_path)
    admin = sign_operation(WHO[0], Add(HOUSEHOLD, WHO[1].id, WHO[1].der, "attic", FIRST_ROLES))
    # of two lines with the highest turn the one with the greater hash counts
    names = [sign_operation(WHO[1], Rename(HOUSEHOLD, WHO[0].id, MAX_TURN, f"evil {number}")) for number in range(64)]
    await den.hears([encode(line).decode() for line in (admin, max(names, key=lambda operation: operation.id))])
    with pytest.raises(Refused) as raised:
        await den.keeper.rename(WHO[0].id, "study")
    assert raised.value.reason.code == "household_outranked"
    await den.keeper.remove(WHO[1].id, ())
    await den.keeper.rename(WHO[0].id, "study")
    assert den.keeper.members[WHO[0].id].name == "study"
    await den.keeper.rename(WHO[0].id, "cellar")
    assert den.keeper.members[WHO[0].id].name == "cellar"


async def test_a_log_of_an_older_version_is_healed(tmp_path: Path) -> None:
    """The older version accepted certificates that nobody may pin, and removals of nobody."""
    den = NodeLog(0, tmp_path)
    admin = sign_operation(WHO[0], Add(HOUSEHOLD, WHO[1].id, WHO[1].der, "attic", FIRST_ROLES))
    bad = [
        sign_operation(WHO[1], body_of(Step("unfit", 1, 0, (Role.LENDER,), number), ())) for number in range(len(UNFIT))
    ]
    bad.append(sign_operation(WHO[1], body_of(Step("invented", 1, 0, (), 1), ())))
    await den.keeper._store.save(Log(HOUSEHOLD, (FIRST, admin, *bad)))
    await den.keeper.load()
    assert den.keeper.log == Log(HOUSEHOLD, (FIRST, admin))
    await den.starts()
