"""The hostile host, guest and strangers, in a process of their own: `python -m tests.hostile.attacker FOLDER HOST`.

It joins the household of the node that lives at HOST. Then each line that comes in is an order, as JSON, and each line
that goes out says that it has begun, and how it ended. An order has a limit in seconds, after which the attack is over.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from app.core.errors import AppError
from app.core.ids import MachineId
from app.network.network import MachineDescription
from tests.faults.mole import Mole, joined
from tests.hostile import guest, host, strangers
from tests.network.nodes import Node, an_identity, opened

Json = dict[str, Any]
# So many of each take turns: who floods is cut off for a minute.
ROLES = {"host": ("use_and_lend", 4), "guest": ("guest", 2)}
TURN_SECONDS = 60.0
EXPECTED = (AppError, AssertionError, OSError, TimeoutError)  # the victim ended the link, as it should


class LendsNothing(Node):
    """Nobody may choose it for layers."""

    def description(self) -> MachineDescription:
        return MachineDescription(self.name, "CPU", (), 16 << 30, 0)


async def linked(moles: list[Mole], victim: MachineId) -> Mole | None:
    """One that is let in, whose turn was longest ago."""
    with suppress(TimeoutError):
        async with asyncio.timeout(TURN_SECONDS):
            while True:
                for mole in moles:
                    if victim in mole.node.network.links:
                        moles.remove(mole)
                        moles.append(mole)
                        return mole
                    mole.node.network.link_manager.hint(victim)  # it dials at once
                await asyncio.sleep(0.5)
    return None


async def carried_out(order: Json, mole: Mole | None, folder: Path) -> str:
    """Carry the attack out. Return None, or an error that no attack should have."""
    chance, name = random.Random(f"{order['name']} {order['seed']}"), order["name"]
    try:
        async with asyncio.timeout(order["seconds"]):
            match order["role"]:
                case "host":
                    assert mole is not None
                    await host.ATTACKS[name](host.Host(mole, MachineId(order["victim"]), chance))
                case "guest":
                    assert mole is not None
                    await guest.ATTACKS[name](guest.Guest(mole, MachineId(order["victim"]), chance))
                case _ if name == strangers.PAIRING:
                    await strangers.greet(order["port"], (await an_identity(folder / "nobody"))[1])
                case _:
                    await strangers.besiege(name, order["port"], chance)
    except EXPECTED:
        return ""
    except Exception as error:  # noqa: BLE001  told to whoever ordered it
        return repr(error)[:500]
    return ""


async def main() -> None:
    folder, home = map(Path, sys.argv[1:])
    async with AsyncExitStack() as stack:
        nodes = await stack.enter_async_context(opened(folder))
        moles: dict[str, list[Mole]] = {role: [] for role in ROLES}
        for role, (right, n) in ROLES.items():
            for number in range(n):
                name = f"bad-{role}-{number}"
                node = await nodes.prepare(name)
                node.__class__ = LendsNothing
                await stack.enter_async_context(node.network)
                await joined(node, home, right)
                moles[role].append(Mole(node, folder / name))
        said({"ready": True})
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            role = order["role"]
            mole = await linked(moles[role], MachineId(order["victim"])) if role in moles else None
            is_let_in = mole is not None or role not in moles
            said({"begun": is_let_in})
            if is_let_in:
                said({"ended": await carried_out(order, mole, folder)})


def said(words: Json) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.environ["POOLHOUSE_KEYSTORE"] = "file"
    if hasattr(os, "nice"):
        os.nice(5)  # it is another computer's work
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
