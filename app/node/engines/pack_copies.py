"""Copies of engine packs from other machines of the household, made at the request of a user of this computer.

A pack is native code, so copying is the only way for another machine's code to run here. Nothing is therefore ever sent
unasked: the user confirms one pack by the hash of its manifest, and only bytes with the hashes in that manifest are
accepted. See docs/safety.md.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from app.api import engine_packs as api
from app.api.requests import CopyEnginePack
from app.catalog.files import NO_SPACE, disk_error, part_bytes
from app.catalog.hub.hub_files import Body, FileFacts, FileRequest
from app.catalog.transfers.file_transfer import (
    LEFT_FREE_BYTES,
    DownloadTarget,
    PartialFile,
    Transfer,
    TransferHooks,
    run_to_completion,
)
from app.core.errors import AppError, Busy, Damaged, DoesNotFit, Reason, Refused, Unreachable, bug
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import machine_id
from app.core.reasons import sentence
from app.decoding import decode
from app.machine.engine_packs.manifest import MANIFEST, MAX_MANIFEST_BYTES, Manifest, PackFile, label, parse, unfit
from app.machine.engine_packs.pack_reader import SPARE_BYTES, require_room
from app.machine.engine_packs.store import Origin, PackStore, this_engine, this_system
from app.machine.paths import PRIVATE_DIR, write_atomically
from app.network.network import Network
from app.network.peer.peer_client import HostClient, reported_error
from app.network.peer.peer_link import PeerLink
from app.node.downloads.file_streams import received_file, short_body
from app.node.engines.engine_packs import EnginePackService
from app.node.engines.pack_offers import PACKS_PATH, Offered, OfferedPacks

log = logging.getLogger(__name__)

COPYING = ".copy-"  # a pack that is being copied from another machine; kept if the copy is interrupted
OFFER_SECONDS = 8.0  # a machine that takes longer to answer counts as offering nothing
MANIFEST_SECONDS = 60.0
KEPT_SECONDS = 7 * 24 * 3600.0  # how long an interrupted copy is kept for another try
OTHER_BYTES = ("download_damaged", "download_other_file", "download_other_size")  # told as a wrong hash


class PackCopies:
    """The packs that other machines offer, and the copy in progress. Only one copy is made at a time."""

    def __init__(
        self,
        network: Network,
        store: PackStore,
        packs: EnginePackService,
        folder: Path,
        changed: Callable[[], None],
        note: Callable[[Reason], None],
    ) -> None:
        """Prepare copying into `folder`, the folder of the pack store."""
        self._network, self._store, self._packs, self._folder = network, store, packs, folder
        self._changed, self._note = changed, note
        self._group = asyncio.TaskGroup()  # entered by `run`
        self._task: asyncio.Task[None] | None = None
        self._order = asyncio.Lock()  # held while a copy is begun or ended
        self._is_wanted = True  # False while the running copy is being canceled
        self._is_tested = False  # whether it is too late to cancel it
        self.now: api.EngineCopy | None = None

    async def run(self) -> None:
        """Delete old unfinished copies, then wait. Canceling this stops the copy in progress, and keeps the
        received bytes for the next try.
        """
        async with self._group:
            await asyncio.to_thread(self._delete_old)
            await asyncio.get_running_loop().create_future()

    async def offers(self) -> api.EngineOffers:
        """Return what the connected machines offer for this system, sorted by machine. Never raises."""
        async with asyncio.TaskGroup() as group:
            queries = [
                (link, group.create_task(_offered(client), name="ask for engine packs"))
                for link, client in self._machines()
            ]
        here = {pack.sha256 for pack in await asyncio.to_thread(self._store.packs) if pack.is_whole}
        own = this_system()
        offers = [
            self._described(link, offer, here)
            for link, query in queries
            for offer in query.result()
            if offer.system == own
        ]
        return api.EngineOffers(offers)

    async def start(self, order: CopyEnginePack) -> None:
        """Start copying the pack that the user has confirmed, or continue an interrupted copy. Raises Busy or
        Unreachable.
        """
        async with self._order:
            if self._task is not None and not self._task.done():
                raise Busy("pack_copy_running")
            link, client = self.client(order.machine)
            origin = Origin(order.machine, link.name, time.time())
            self._is_wanted, self._is_tested = True, False
            self.now = api.EngineCopy(link.name, pack=order.pack, sha256=order.sha256, state="copying")
            self._task = self._group.create_task(self._run(client, origin, order), name="copy an engine pack")
            self._changed()

    async def cancel(self) -> None:
        """Cancel the copy in progress and delete the received bytes. A pack that has already passed its test is
        used anyway.

        Return when the copy has ended; `now` contains its result.
        """
        async with self._order:
            if self._task is None or self._task.done():
                return
            if not self._is_tested:
                self._is_wanted = False
                self._task.cancel()
            await asyncio.wait({self._task})
            if self.now is not None and not self.now.is_over:  # it was canceled, and not too late
                await asyncio.to_thread(shutil.rmtree, self._place(self.now.sha256), ignore_errors=True)
                self._tell(state="canceled", held_up=None, held_up_facts=None)

    async def _run(self, client: HostClient, origin: Origin, order: CopyEnginePack) -> None:
        folder = self._place(order.sha256)
        try:
            manifest = await self._copied(client, origin, order)
            self._tell(state="testing", held_up=None, held_up_facts=None)
            try:
                pack = await self._packs.add_copied(folder, origin, self._note_test, lambda: self._is_wanted)
            except Damaged as error:  # only the damaged file is fetched again by another try
                _delete_file(folder, manifest, error)
                raise
            self._note(Reason("log_node_pack_copied", {"pack": pack.name, "machine": origin.name}))
            failure = pack.problem_facts
            self._tell(state="failed" if failure else "done", problem=sentence(failure), problem_facts=failure)
        except AppError as error:
            self._fail(error.reason)
        except OSError as error:
            self._fail(_of_disk(self._folder, order.pack, error).reason)
        except Exception as error:  # top of a task: a copy must not end the node
            log.exception("copying an engine pack")
            self._fail(bug(error).reason)

    def _note_test(self) -> None:
        self._is_tested = True

    async def _copied(self, client: HostClient, origin: Origin, order: CopyEnginePack) -> Manifest:
        """Copy all files of a pack into its folder, and return its manifest. Files from an earlier try are reused.

        Raises AppError.
        """
        sha256 = order.sha256
        data = await _manifest(client, sha256)
        manifest = parse(data, origin.name)
        if reason := unfit(manifest, this_system(), this_engine()):
            raise Refused(reason.code, **reason.facts)
        if (manifest.name, manifest.built, manifest.size_bytes) != (order.pack, order.built, order.size_bytes):
            raise Refused("pack_other_than_offered", name=origin.name, pack=order.pack)
        folder = self._place(sha256)
        await asyncio.to_thread(self._prepare, folder, manifest)
        self._tell(pack=manifest.name, label=label(manifest.backend), total_bytes=manifest.size_bytes)
        done = 0
        for number, file in enumerate(manifest.files):
            if part_bytes(folder / file.path) != file.size_bytes or not file.size_bytes:
                source = _PackFiles(self, origin, f"/{sha256}/{number}")
                await self._fetch(source, folder, file, done, manifest)
            done += file.size_bytes
            self._tell(done_bytes=done, held_up=None, held_up_facts=None)
        await run_to_completion(lambda: write_atomically(folder / MANIFEST, data))
        return manifest

    async def _fetch(self, source: _PackFiles, folder: Path, file: PackFile, done: int, manifest: Manifest) -> None:
        final = folder / file.path
        part = PartialFile(folder / f"{file.sha256}.part")

        def on_outage(why: Reason | None) -> None:
            self._tell(held_up=sentence(why), held_up_facts=why)

        hooks = TransferHooks(
            token=_no_token,
            on_facts=_no_facts,
            on_progress=lambda: self._tell(done_bytes=done + part.n_bytes),
            # Models leave 5 GiB free, packs much less: `require_room` has compared.
            room_bytes=lambda: shutil.disk_usage(folder).free + LEFT_FREE_BYTES - SPARE_BYTES,
            on_outage=on_outage,
            throttle=self._network.pace.wait_after_receiving,
        )
        target = DownloadTarget(FileRequest(manifest.name, file.path, file.sha256), file.size_bytes, file.sha256)
        final.parent.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        try:
            await Transfer(source, target, part, hooks).run(lambda _: final)
        except Damaged as error:
            if error.reason.code not in OTHER_BYTES:
                raise
            part.path.unlink(missing_ok=True)
            raise Damaged("pack_wrong_hash", pack=manifest.name, file=file.path) from error
        except DoesNotFit as error:  # its numbers are those of a model
            await asyncio.to_thread(require_room, folder, manifest, _folder_bytes(folder))
            raise DoesNotFit("pack_disk_full", pack=manifest.name) from error

    def _prepare(self, folder: Path, manifest: Manifest) -> None:
        """Prepare the folder for a copy. Other unfinished copies are deleted only if their disk space is needed.

        Raises DoesNotFit.
        """
        self._folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        try:
            require_room(folder, manifest, here_bytes=_folder_bytes(folder))
        except DoesNotFit:
            for other in self._folder.glob(f"{COPYING}*"):
                if other != folder:
                    shutil.rmtree(other, ignore_errors=True)
            require_room(folder, manifest, here_bytes=_folder_bytes(folder))

    def _delete_old(self) -> None:
        """Delete unfinished copies that have not received any data for KEPT_SECONDS."""
        for begun in self._folder.glob(f"{COPYING}*"):
            with suppress(OSError):
                newest = max(path.stat().st_mtime for path in (begun, *begun.rglob("*")))
                if newest < time.time() - KEPT_SECONDS:
                    shutil.rmtree(begun, ignore_errors=True)

    def _place(self, sha256: str) -> Path:
        return self._folder / f"{COPYING}{sha256[:16]}"

    def _machines(self) -> list[tuple[PeerLink, HostClient]]:
        links = sorted(self._network.links.values(), key=lambda link: (link.name, link.peer))
        pairs = [(link, self._network.members.get(link.peer)) for link in links]
        return [(link, client_of(member, link)) for link, member in pairs if member and may_give(member)]

    def client(self, machine: str) -> tuple[PeerLink, HostClient]:
        """Return the link to a machine and a client for it. Raises Unreachable if it is offline or may not offer
        packs.
        """
        ident = machine_id(machine)
        link, member = self._network.links.get(ident), self._network.members.get(ident)
        if link is None or member is None or not may_give(member):
            raise Unreachable("pack_copy_away", name=member.name if member else machine[:8])
        return link, client_of(member, link)

    def _described(self, link: PeerLink, offer: Offered, here: set[str]) -> api.EngineOffer:
        problem = unfit(offer, this_system(), this_engine())
        return api.EngineOffer(
            str(link.peer),
            link.name,
            offer.name,
            offer.backend,
            label(offer.backend),
            offer.built,
            offer.size_bytes,
            offer.sha256,
            _folder_bytes(self._place(offer.sha256)),
            installed=offer.sha256 in here,
            copied_from=offer.origin,
            problem=sentence(problem),
            problem_facts=problem,
        )

    def _tell(self, **changes: Any) -> None:
        assert self.now is not None  # set by `start`
        self.now = msgspec.structs.replace(self.now, **changes)
        self._changed()

    def _fail(self, why: Reason) -> None:
        self._tell(state="failed", problem=sentence(why), problem_facts=why, held_up=None, held_up_facts=None)


@dataclass(frozen=True, slots=True)
class _Place:
    host: str

    @property
    def outage_codes(self) -> tuple[str, str]:
        return "copy_held_up", "pack_unreached"


class _PackFiles:
    """One file of a pack on another machine, read by app/catalog/transfers/file_transfer.py."""

    def __init__(self, copies: PackCopies, origin: Origin, path: str) -> None:
        self.place = _Place(origin.name)
        self._copies, self._origin, self._path = copies, origin, path

    @asynccontextmanager
    async def opened(self, file: FileRequest, start: int, token: str | None) -> AsyncGenerator[Body, None]:
        """Open the file at position `start`. If the link was replaced in the meantime, the new one is used."""
        _, client = self._copies.client(self._origin.machine)
        async with received_file(client, self._path, start) as body:
            yield body

    async def facts_of(self, file: FileRequest, token: str | None) -> FileFacts:
        """Return empty facts, because the manifest has them."""
        return FileFacts()


def may_give(member: Member) -> bool:
    """Return whether packs may be copied from a machine. It must be a host, which an admin trusts to use other
    machines.

    Guests and machines that only lend never provide code.
    """
    return Role.HOST in member.roles


def client_of(member: Member, link: PeerLink) -> HostClient:
    return HostClient(member, link.address, link.host_session, link.finished, PACKS_PATH)


async def _offered(machine: HostClient) -> list[Offered]:
    try:
        async with asyncio.timeout(OFFER_SECONDS), machine.request("GET", "/offered") as answer:
            if answer.status != 200:
                return []  # an older version
            return decode(await short_body(answer), OfferedPacks).packs
    except (AppError, aiohttp.ClientError, OSError, ValueError) as error:
        log.info("%s did not report its engine packs: %r", machine.host.name, error)
        return []


async def _manifest(machine: HostClient, sha256: str) -> bytes:
    """Return the manifest with this hash. Raises the error reported by the machine, Unreachable or Damaged."""
    name = machine.host.name
    try:
        async with asyncio.timeout(MANIFEST_SECONDS), machine.request("GET", f"/{sha256}/manifest") as answer:
            if answer.status != 200:
                raise reported_error(await short_body(answer), name)
            data = await short_body(answer, MAX_MANIFEST_BYTES)
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise Unreachable("pack_copy_away", name=name) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise Damaged("pack_wrong_hash", pack=name, file=MANIFEST)
    return data


def _delete_file(folder: Path, manifest: Manifest, error: Damaged) -> None:
    """Delete the copied file that the error names."""
    for file in manifest.files:
        if file.path == error.reason.facts.get("file"):
            (folder / file.path).unlink(missing_ok=True)


def _of_disk(folder: Path, pack: str, error: OSError) -> AppError:
    if error.errno in NO_SPACE:
        return DoesNotFit("pack_disk_full", pack=pack)
    return disk_error(folder, error, 0)


def _folder_bytes(folder: Path) -> int:
    return sum(part_bytes(path) for path in folder.rglob("*") if path.is_file())


async def _no_token() -> str | None:
    return None


async def _no_facts(target: DownloadTarget) -> None:
    """Ignore the facts of the source, because the size and the hash come from the manifest."""
