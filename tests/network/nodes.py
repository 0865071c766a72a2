"""Nodes in one process on loopback: real sockets, real TLS, no engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aiohttp import web

from app.core.errors import Refused
from app.core.household import pairing
from app.core.household.link import LinkEnd, LinkKind
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import MachineId, PipelineId
from app.machine.keyring_store import FileStore
from app.machine.paths import Home
from app.network import measured_paths
from app.network.identity import Identity, load_or_create
from app.network.messages import Message
from app.network.network import MachineDescription, Network
from app.network.peer.frame_channel import FrameChannel
from app.network.peer.listener import ANSWERS_PATH
from app.network.peer.peer_link import Heartbeat, PeerLink, WorkerProgress
from app.network.peer.probe import Measured
from app.network.sockets import Address, listening_socket

HOST_AND_LENDER = (Role.HOST, Role.LENDER)
QUICK = Heartbeat(0.1, 0.3, 0.5)
SOON_SECONDS = 10.0  # two, on a computer that does nothing else


class Node:
    """Both seams of a network: what it asks, and what it tells. Keeps everything it hears."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[Message] = []
        self.linked: list[MachineId] = []
        self.unlinked: list[PeerLink] = []
        self.members: list[Mapping[MachineId, Member]] = []
        self.windows: list[pairing.State] = []
        self.doubts: list[bool] = []
        self.outside: list[MachineId] = []
        self.at_work = False
        self.gone: set[PipelineId] = set()  # runs that were open here
        self.network: Network

    def description(self) -> MachineDescription:
        return MachineDescription(self.name, "CPU", ("fake 1",), 16 << 30, 8 << 30)

    def work(self) -> WorkerProgress:
        return WorkerProgress(steps_done=7, busy_seconds=0.5)

    def busy(self) -> bool:
        return self.at_work

    def link_end(self, own: str, other: str) -> LinkEnd:
        return LinkEnd(LinkKind.LOOPBACK, "lo", 10**9)

    async def connected(self, link: PeerLink) -> None:
        self.linked.append(link.peer)

    async def message(self, link: PeerLink, message: Message) -> None:
        self.heard.append(message)

    async def disconnected(self, link: PeerLink) -> None:
        self.unlinked.append(link)

    def suspected(self, link: PeerLink, doubted: bool) -> None:
        self.doubts.append(doubted)

    def refusal_changed(self, machine: MachineId) -> None:
        self.outside.append(machine)

    def members_changed(self, members: Mapping[MachineId, Member]) -> None:
        self.members.append(members)

    def pairing_changed(self, state: pairing.State) -> None:
        self.windows.append(state)

    async def stage_offer(self, member: Member, pipeline: PipelineId, body: bytes) -> bytes:
        return b'{"wanted": %d}' % len(body)

    async def pieces(self, member: Member, pipeline: PipelineId, chunks: AsyncIterator[bytes]) -> bytes:
        return b'{"got": %d}' % sum([len(chunk) async for chunk in chunks])

    def require_expected(self, member: Member, pipeline: PipelineId) -> None:
        if pipeline in self.gone:
            raise Refused("lend_not_open")

    async def data(self, member: Member, pipeline: PipelineId, channel: FrameChannel) -> None:
        while True:
            await channel.send(await channel.receive())


def a_chat() -> web.Application:
    """The routes that guests may use, in a small form."""

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"models": []})

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"a beginning")
        await asyncio.Event().wait()
        return answer

    made = web.Application()
    made.router.add_get("/models", models)
    made.router.add_get("/endless", endless)
    return made


class Nodes:
    """Opens nodes below one directory; all are closed together."""

    def __init__(self, directory: Path, stack: AsyncExitStack) -> None:
        self._directory, self._stack = directory, stack
        self.rooms: Callable[[], dict[str, web.Application]] = lambda: {ANSWERS_PATH: a_chat()}

    def home(self, name: str) -> Home:
        """Return the home of a node."""
        return Home.at(self._directory / name)

    async def open(self, name: str, heartbeat: Heartbeat | None = None, port: int = 0) -> Node:
        node = await self.prepare(name, heartbeat, port)
        await self._stack.enter_async_context(node.network)
        return node

    async def prepare(self, name: str, heartbeat: Heartbeat | None = None, port: int = 0) -> Node:
        home, identity = await an_identity(self._directory / name)
        node = Node(name)
        sock = listening_socket("127.0.0.1", port)
        node.network = Network(home, identity, sock, node, node, heartbeat=heartbeat)
        for path, application in self.rooms().items():
            node.network.mount(path, application)
        return node

    async def paired(self, *names: str, heartbeat: Heartbeat | None = None) -> list[Node]:
        """The first is admin; the others join it, and all are linked with all."""
        nodes = [await self.open(name, heartbeat) for name in names]
        for node in nodes[1:]:
            await pair(nodes[0], node)
        return nodes


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[Nodes]:
    async with AsyncExitStack() as stack:
        yield Nodes(directory, stack)


async def an_identity(directory: Path) -> tuple[Home, Identity]:
    home = Home.at(directory).create()
    return home, await load_or_create(home, FileStore(home.identity / "passphrase"))


async def pair(admin: Node, newcomer: Node, roles: tuple[Role, ...] = HOST_AND_LENDER) -> None:
    window = await admin.network.open_pairing(roles)
    await newcomer.network.join(window.address, window.code)
    assert await window.result() == newcomer.network.id
    await until(lambda: admin.network.id in newcomer.network.links)


async def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for something that happens soon; a failure says what did not."""
    try:
        async with asyncio.timeout(seconds):
            while not true():  # noqa: ASYNC110  anything at all may be waited for
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {seconds} s: {true}") from None


def full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def at(node: Node) -> Address:
    return Address("127.0.0.1", node.network.port)


async def measured(den: Node, attic: Node, port: int | None = None) -> Measured:
    """Return den's measurement of the path to attic, or to a relay's port on this computer."""
    where = at(attic) if port is None else Address("127.0.0.1", port)
    return (await measured_paths.measure(den.network, attic.network.id, where)).measured
