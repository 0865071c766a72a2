"""Strangers at a member's port: every kind of certificate except a member's, and the outcome for each."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from app.client import NodeClient
from app.core.errors import AppError
from app.core.household.membership import Member
from app.core.ids import MachineId, PipelineId
from app.machine.paths import Home
from app.network.identity import Identity, check_profile
from app.network.identity import _label as label_of
from app.network.peer.peer_client import PeerClient
from app.network.sockets import Address
from app.network.tls import peer_context
from tests.faults.mole import joined
from tests.network.certificates import PASSPHRASE, SERVER_ONLY, Recipe
from tests.network.nodes import Node, opened, until

DIAL = ssl.Purpose.SERVER_AUTH
LONG_AGO, FAR_AWAY = dt.datetime(2021, 1, 1, tzinfo=dt.UTC), dt.datetime(2990, 1, 1, tzinfo=dt.UTC)
HUNG_SECONDS = 10.0

Contexts = dict[str, Callable[[], ssl.SSLContext]]


class Strangers:
    """The victim, and in how many ways it is knocked at its port."""

    def __init__(self, victim: Member, address: Address, contexts: Contexts, lender: Node, closed_s: float) -> None:
        self._victim, self._address, self._contexts = victim, address, contexts
        self._lender = lender  # a member that may not host
        self.closed_s = closed_s  # how long the link of the removed one stayed

    async def knock(self, n: int) -> Counter[str]:
        """Make this many attempts in turn. Return how many of each kind were refused, and the other outcomes."""
        kinds = [*self._contexts, "a member without the role"]
        counts: Counter[str] = Counter()
        for number in range(n):
            kind = kinds[number % len(kinds)]
            context = self._contexts.get(kind)
            made = context() if context is not None else self._of_lender()
            client = PeerClient(self._victim, self._address, made)
            try:
                refused = await self._refused(client, number // len(kinds), control=bool(context))
            finally:
                await client.close()
            counts["refused" if refused else f"let in: {kind}"] += 1
        return counts

    async def _refused(self, client: PeerClient, turn: int, *, control: bool) -> bool:
        """control: whether also the door is closed that is for every member."""
        pipeline = PipelineId(bytes(16))
        try:
            async with asyncio.timeout(HUNG_SECONDS):
                if turn % 3 == 0 and control:
                    link = await client.open_control()
                    return (await link.receive()).type.name != "TEXT"
                if turn % 3 == 1:
                    await client.open_data(pipeline)
                else:
                    await client.offer_stage(pipeline, b"{}")
        except (AppError, TimeoutError):
            return True
        return False

    def _of_lender(self) -> ssl.SSLContext:
        return self._lender.network.dialing_context(self._victim)


@asynccontextmanager
async def outside(folder: Path, host: Path, machine: MachineId) -> AsyncIterator[Strangers]:
    """Yield strangers at the port of the node `who` at `host`: a removed machine, a lender, and forgers."""
    async with opened(folder) as nodes, NodeClient(Home.at(host)) as admin:
        removed = await nodes.open("removed")
        await joined(removed, host)
        me, network = removed.network.id, removed.network
        victim = network.members[machine]
        address, context = network.link(victim.id).address, network.dialing_context(victim)
        began = time.monotonic()
        await admin.delete(f"/machines/{me}")
        await until(lambda: not network.links)
        closed_s = time.monotonic() - began
        lender = await nodes.open("lender")
        await joined(lender, host, "lend")
        contexts = forgeries(folder, victim, lender.network._identity)
        contexts["removed, and then another paired"] = lambda: context
        yield Strangers(victim, address, contexts, lender, closed_s)


def forgeries(folder: Path, victim: Member, member: Identity) -> Contexts:
    """Certificates that nobody of the household was paired with. `member`: whose key signs some."""
    label = label_of(check_profile(member.der))
    recipes = {
        "unknown": Recipe(),
        "the name of a member": Recipe(name=label),
        "expired": Recipe(not_after=LONG_AGO),
        "not valid yet": Recipe(not_before=FAR_AWAY),
        "issued by a member": Recipe(issuer=label, issuer_key=member.key),
        "an authority": Recipe(ca=True, signs_certificates=True),
        "issued by a member, an authority itself": Recipe(
            issuer=label, issuer_key=member.key, ca=True, signs_certificates=True
        ),
        "a server's": Recipe(uses=SERVER_ONLY),
    }
    result: Contexts = {"none": _bare}
    for number, (kind, recipe) in enumerate(recipes.items()):
        pem = folder / f"{number}.pem"
        recipe.save(pem)
        result[kind] = partial(peer_context, DIAL, pem, PASSPHRASE, [victim.der])
    result["TLS 1.2"] = partial(_bare, ssl.TLSVersion.TLSv1_2)
    return result


def _bare(newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.maximum_version = newest
    return made
