"""A hostile admin: it signs whatever it likes. Every node must still start and agree, and the first one remove it.

A household of its own for each run, in this process: real keys, links, ports and files, and no engine.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.core.errors import AppError
from app.core.household.operations import (
    MAX_DER_BYTES,
    MAX_TURN,
    Add,
    Body,
    HouseholdId,
    OperationId,
    Remove,
    Rename,
    Role,
    SetRoles,
    encode,
)
from app.core.ids import MachineId
from app.network.identity import make_certificate
from app.network.membership.household_log import sign_operation
from app.network.messages import Log, log_batches
from tests.faults.outcome import Outcome
from tests.network.certificates import Recipe, elliptic
from tests.network.nodes import Node, opened, pair, until

ALL = (Role.ADMIN, Role.HOST, Role.LENDER)
HEARD_SECONDS, BACK_BAR_S = 20.0, 10.0
UTC = dt.UTC


class Admin:
    """The means of an attack by an admin."""

    def __init__(self, bad: Node, nodes: Sequence[Node], chance: random.Random) -> None:
        self.bad, self.others, self.chance = bad, nodes, chance
        assert bad.network.log is not None
        self.household = bad.network.log.household

    def line(self, body: Body) -> str:
        return encode(sign_operation(self.bad.network._identity, body)).decode("ascii")

    def add(self, der: bytes, roles: tuple[Role, ...] = (Role.LENDER,), name: str = "x") -> str:
        return self.line(Add(self.household, MachineId(hashlib.sha256(der).hexdigest()), der, name, roles))

    def key(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.chance.randbytes(32))

    def invented(self) -> MachineId:
        return MachineId(self.chance.randbytes(32).hex())

    @property
    def innocent(self) -> MachineId:
        return self.others[1].network.id


Lines = Callable[[Admin], Sequence[str]]


def _of_recipe(**odd: object) -> Lines:
    return lambda admin: [admin.add(Recipe(key=admin.key(), **odd).der()) for _ in range(8)]  # type: ignore[arg-type]


def _again(admin: Admin) -> list[str]:
    log = admin.bad.network.log
    assert log is not None
    return [encode(operation).decode("ascii") for operation in log.operations] * 200


def _damaged(admin: Admin) -> list[str]:
    """True lines in which one letter is another."""
    result = []
    for line in _again(admin)[:300]:
        at = admin.chance.randrange(len(line))
        result.append(line[:at] + admin.chance.choice('0af"{}[],x') + line[at + 1 :])
    return result


def _forged(admin: Admin) -> list[str]:
    """Signed by nobody, in the name of the first machine."""
    founder = admin.others[0].network.id
    made = []
    for n in range(500):
        true = sign_operation(admin.bad.network._identity, Rename(admin.household, admin.innocent, n + 1, "x"))
        made.append(encode(type(true)(true.body, founder, admin.chance.randbytes(64))).decode("ascii"))
    return made


def _elsewhere(admin: Admin) -> list[str]:
    other = HouseholdId(admin.chance.randbytes(32).hex())
    key = admin.key()
    der = make_certificate(key)
    machine = MachineId(hashlib.sha256(der).hexdigest())
    return [admin.line(Add(other, machine, der, "x", ALL)), admin.line(Remove(other, admin.innocent, ()))]


def _otherwise(admin: Admin) -> list[str]:
    """The same line in another spelling."""
    line = json.loads(admin.line(Rename(admin.household, admin.innocent, 5, "y")))
    return [json.dumps(line), json.dumps(line, indent=1), json.dumps(line | {"more": 1}), " " + json.dumps(line)] * 20


ATTACKS: dict[str, Lines] = {
    "certificates that are garbage": lambda admin: [
        admin.add(admin.chance.randbytes(n)) for n in (1, 40, 300, MAX_DER_BYTES)
    ],
    "certificates cut short": lambda admin: [
        admin.add(make_certificate(admin.key())[: admin.chance.randrange(1, 300)]) for _ in range(8)
    ],
    "certificates with a byte turned": lambda admin: [_flipped(admin) for _ in range(40)],
    "certificates of another kind of key": lambda admin: [admin.add(elliptic()) for _ in range(4)],
    "certificates that sign others": _of_recipe(ca=True, signs_certificates=True),
    "certificates of other dates": _of_recipe(not_after=dt.datetime(2021, 1, 1, tzinfo=UTC)),
    "certificates of another name": _of_recipe(name="0" * 16),
    "certificates without an extension": _of_recipe(without="eku"),
    "removals of ids that it invents": lambda admin: [
        admin.line(Remove(admin.household, admin.invented(), ())) for _ in range(1100)
    ],
    "names, again and again": lambda admin: [
        admin.line(Rename(admin.household, admin.innocent, n + 1, f"name {n}")) for n in range(600)
    ],
    "the last name there can be": lambda admin: [
        admin.line(Rename(admin.household, admin.innocent, MAX_TURN - n, "\u202e\u0007x" * 16)) for n in range(3)
    ],
    "roles, again and again": lambda admin: [
        admin.line(SetRoles(admin.household, admin.innocent, n + 1, (Role.LENDER,))) for n in range(600)
    ],
    "machines that there are not": lambda admin: [admin.add(make_certificate(admin.key()), ALL) for _ in range(150)],
    "names of machines that there are not": lambda admin: [
        admin.line(Rename(admin.household, admin.invented(), 1, "x")) for _ in range(600)
    ],
    "lines in the name of the first machine": _forged,
    "lines of another household": _elsewhere,
    "lines in another spelling": _otherwise,
    "lines with a letter changed": _damaged,
    "the whole log two hundred times": _again,
    "a removal that keeps what there is not": lambda admin: [
        admin.line(
            Remove(
                admin.household,
                admin.invented(),
                tuple(sorted(OperationId(admin.chance.randbytes(32).hex()) for _ in range(50))),
            )
        )
        for _ in range(100)
    ],
    "its own removal, and then more": lambda admin: [
        admin.line(Remove(admin.household, admin.bad.network.id, ())),
        *(admin.add(make_certificate(admin.key())) for _ in range(20)),
    ],
    "lines that are no lines": lambda admin: ["", "{", "[" * 4000, "x" * 4096, "null", '{"op":"add"}', "\u0000"] * 30,
    "a machine that is there, as another": lambda admin: [
        admin.line(Add(admin.household, admin.innocent, admin.others[1].network._identity.der, "other", (Role.GUEST,)))
    ],
}


def _flipped(admin: Admin) -> str:
    der = bytearray(make_certificate(admin.key()))
    der[admin.chance.randrange(len(der))] ^= 1 << admin.chance.randrange(8)
    return admin.add(bytes(der))


async def run(folder: Path, name: str, seed: int) -> Outcome:
    """One attack on a household of four: the first machine, a member, a member that is away, and the bad admin."""
    chance = random.Random(f"{name} {seed}")
    why = ""
    async with opened(folder) as nodes:
        den, attic, bad = [await nodes.open(name) for name in ("den", "attic", "bad")]
        away = await nodes.prepare("away")
        async with away.network:
            for node, roles in ((attic, ALL[1:]), (bad, ALL), (away, ALL[1:])):
                await pair(den, node, roles)
            await until(lambda: all(len(node.network.links) == 3 for node in (den, attic, bad)))
        port = away.network.port
        ports = {"den": den.network.port, "attic": attic.network.port, "away": port}
        admin = Admin(bad, (den, attic), chance)
        lines = ATTACKS[name](admin)
        await _said(bad, lines)
        began = time.monotonic()
        back = await nodes.prepare("away", port=port)  # comes back into it
        async with back.network:
            try:
                await until(lambda: den.network.id in back.network.links, HEARD_SECONDS)
            except AssertionError:
                why = "a member did not come back"
        back_s = time.monotonic() - began
        why = why or await _removed(den, attic, bad.network.id)
    restarted = await _start_again(folder, ports, bad.network.id)
    facts = {"back_s": back_s, "not_started": float(restarted is not None), "named": 0.0, "lost": 0.0}
    why = why or restarted or ""
    return Outcome("admin", name, "", not why, why, in_time=back_s <= BACK_BAR_S, facts=facts, seed=seed)


async def _said(bad: Node, lines: Sequence[str]) -> None:
    """Send this to everybody, whatever they answer, and once more when linked again."""
    batches = (
        list(log_batches(list(lines))) if all(line.isascii() for line in lines) else [Log(operations=list(lines)[:100])]
    )
    for link in list(bad.network.links.values()):
        with suppress(AppError):
            for batch in batches:
                await link.send(batch)


async def _removed(den: Node, attic: Node, bad: MachineId) -> str:
    """Return whether the first machine can still remove it, and both members then agree on the members."""
    if bad in den.network.members:
        try:
            await den.network.remove(bad)
        except AppError as error:
            return f"it cannot be removed: {error.reason.code}"
    try:
        await until(lambda: bad not in attic.network.members, HEARD_SECONDS)
        await until(lambda: set(den.network.members) == set(attic.network.members), HEARD_SECONDS)
    except AssertionError:
        return "the members do not agree on who there is"
    return ""


async def _start_again(folder: Path, ports: Mapping[str, int], bad: MachineId) -> str | None:
    """Everybody once more, from what is on the disk; why not, if not."""
    async with opened(folder) as nodes:
        again = []
        for name, port in ports.items():
            try:
                again.append(await nodes.open(name, port=port))
            except Exception as error:  # noqa: BLE001  whatever it is, that is the finding
                return f"{name} does not start again: {error!r}"[:300]
        try:
            await until(lambda: all(len(node.network.links) == 2 for node in again), HEARD_SECONDS)
        except AssertionError:
            return "not all are linked after a new start"
        try:
            await until(lambda: len({frozenset(node.network.members) for node in again}) == 1, HEARD_SECONDS)
        except AssertionError:
            return "the members do not agree on who there is after a new start"
        return "it is a member again" if any(bad in node.network.members for node in again) else None
