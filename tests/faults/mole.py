"""A member with bad intentions: it was let in, and speaks the protocol as far as it serves its ends."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.catalog.shelf import Shelf
from app.catalog.stages.manifest import to_json, wants_from_json
from app.catalog.stages.stage_store import StageStore
from app.client import NodeClient
from app.core.errors import AppError, Unreachable
from app.core.ids import MachineId, PipelineId
from app.machine.installation import guide_file
from app.machine.paths import Home
from app.network import messages
from app.network.peer.frame_channel import FrameChannel
from app.network.peer.peer_client import PeerClient
from app.network.sockets import Address
from backends.contract import Layers, NumberFormat, Role
from backends.frames import PipelineParameters
from tests.faults import noise
from tests.network.nodes import Node, opened, until

LAYERS = Layers(2, 4)
CONTEXT, SLOTS = 128, 2
DROPPED_SECONDS, TURN_SECONDS = 20.0, 60.0  # an attacker is the last to get the processor
ANSWERS = (messages.StageReady, messages.StageFailed)


class Mole:
    """A hostile member that is linked with everybody."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self._folder = node, folder

    async def lay(self, victim: MachineId) -> PipelineParameters:
        """Make the victim hold some layers for us, as any host may. Return the agreement."""
        guide, folder = guide_file(), self._folder
        shelf = Shelf(folder / "models", guide, StageStore(folder / "stages", 1 << 30))
        entry = shelf.get("guide")
        cut = shelf.cut(entry, LAYERS, Role.MIDDLE)
        pipeline = PipelineId(os.urandom(16))
        link = self.node.network.link(victim)
        answer = await link.offer_stage(pipeline, to_json(cut.manifest), cut.manifest.total_bytes)
        assert not wants_from_json(answer, cut.manifest), "it has the Guide as well"
        await link.send(
            messages.OpenStage(
                request=0, pipeline=pipeline.hex(), epoch=1, model="guide", manifest=cut.manifest.id,
                first=LAYERS.first, last=LAYERS.last, n_layers=entry.model.n_layers,
                width=entry.model.width, number="f32", slots=SLOTS, kv_cells=SLOTS * CONTEXT,
                context=CONTEXT, batch_rows=16, engine="llamacpp",
            )
        )  # fmt: skip
        heard = self.node.heard
        await until(lambda: any(isinstance(item, ANSWERS) for item in heard), 30.0)
        ready = next(item for item in heard if isinstance(item, ANSWERS))
        assert isinstance(ready, messages.StageReady), ready
        return PipelineParameters(bytes(pipeline), entry.model.width, NumberFormat.F32, SLOTS, CONTEXT)

    async def send_bad_frame(self, victim: MachineId, agreed: PipelineParameters, chance: random.Random) -> str:
        """Send a bad frame on its own connection. Return the outcome, which should be "dropped"."""
        channel = await self._channel(victim, PipelineId(agreed.pipeline))
        try:
            await channel.send(noise.frame(chance, agreed))
            async with asyncio.timeout(DROPPED_SECONDS):
                await channel.receive()
        except TimeoutError:
            return "kept"
        except AppError:
            return "dropped"
        finally:
            await channel.close()
        return "answered"

    async def _channel(self, victim: MachineId, pipeline: PipelineId) -> FrameChannel:
        """A member has so many connections at once and no more: then it waits for its turn."""
        async with asyncio.timeout(TURN_SECONDS):
            while True:
                try:
                    return await self.node.network.link(victim).open_data(pipeline)
                except Unreachable:
                    await asyncio.sleep(0.2)

    async def send_bad_word(self, victim: MachineId, chance: random.Random) -> str:
        """The first message of a control link, which is none."""
        network = self.node.network
        member = network.members[victim]
        address = network.link(victim).address
        client = PeerClient(member, address, network.dialing_context(member))
        try:
            link = await client.open_control()
            await link.send_str(noise.message(chance))
            async with asyncio.timeout(DROPPED_SECONDS):
                while (said := await link.receive()).type.name == "TEXT":
                    if '"refuse"' not in said.data:
                        return "answered"
        except TimeoutError:
            return "kept"
        except (AppError, OSError):
            return "dropped"
        finally:
            await client.close()
        return "dropped"


@asynccontextmanager
async def let_in(folder: Path, host: Path, name: str = "mole") -> AsyncIterator[Mole]:
    """Yield a mole that has joined the household of the node at `host`."""
    async with opened(folder) as nodes:
        node = await nodes.open(name)
        await joined(node, host)
        yield Mole(node, folder / name)


async def joined(node: Node, host: Path, role: str = "use_and_lend") -> None:
    async with NodeClient(Home.at(host)) as admin:
        window = await admin.post("/pairing", {"role": role})
        await node.network.join(Address.parse(window["address"]), window["code"])
        while node.network.id not in (await admin.get("/status"))["machines"]:  # noqa: ASYNC110  it is another process
            await asyncio.sleep(0.05)  # the other side of that link may be up a little later
