"""One download over a bad line: goes on at the true value, ends whole and verified, or says why not."""

from __future__ import annotations

import asyncio
import hashlib
import random
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from app.catalog.files import Disk
from app.catalog.hub.hub_files import FileRequest, HubFiles, new_session
from app.catalog.transfers.file_transfer import LEFT_FREE_BYTES, DownloadTarget, PartialFile, Transfer, TransferHooks
from app.core.errors import AppError, Reason
from tests.catalog.hub_server import COMMIT, FILE, REPOSITORY, TOKEN, HubServer, serving

MIB = 1 << 20
DATA = random.Random(7).randbytes(5 * MIB + 12_345)


class Line:
    """A download of the server's file into a folder."""

    def __init__(self, server: HubServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.token: str | None = None
        self.room = 1 << 50
        self.learnt: list[DownloadTarget] = []
        self.moves: list[int] = []
        self.held_up: list[Reason | None] = []
        self.moved = asyncio.Event()
        self.disk = Disk()
        self.wanted = DownloadTarget(FileRequest(REPOSITORY, FILE, "main"))
        self.part: PartialFile

    async def run(self, tries: int = 3) -> Path:
        async def token() -> str | None:
            return self.token

        async def learnt(download_target: DownloadTarget) -> None:
            self.learnt.append(download_target)
            self.wanted = download_target

        def moved() -> None:
            self.moves.append(self.part.n_bytes)
            self.moved.set()

        self.part = PartialFile(self.folder / "x.part", self.disk)
        hooks = TransferHooks(token, learnt, moved, lambda: self.room, self.held_up.append)
        async with new_session() as session:
            files = HubFiles(self.server.hub, session)
            transfer = Transfer(files, self.wanted, self.part, hooks, waits=(0.0,) * tries)
            return await transfer.run(lambda sha256: self.folder / f"{sha256}.gguf")

    async def fails(self, code: str, tries: int = 3) -> AppError:
        with pytest.raises(AppError) as caught:
            await self.run(tries)
        assert caught.value.reason.code == code
        assert not list(self.folder.glob("*.gguf"))
        return caught.value


@pytest.fixture
async def line(tmp_path: Path) -> AsyncGenerator[Line, None]:
    async with serving(DATA) as server:
        yield Line(server, tmp_path)


async def test_a_file_comes_whole_verified_and_by_its_hash(line: Line) -> None:
    path = await line.run()
    assert path.read_bytes() == DATA
    assert path.stem == hashlib.sha256(DATA).hexdigest()
    assert not (line.folder / "x.part").exists()
    (learnt,) = line.learnt
    assert learnt.total_bytes == len(DATA)
    assert learnt.sha256 == line.server.sha256
    assert learnt.request.revision == COMMIT
    assert line.moves == sorted(line.moves)


async def test_a_broken_line_is_taken_up_where_it_broke(line: Line) -> None:
    line.server.faults.break_after = [1 * MIB + 77, 2 * MIB, 0]
    path = await line.run()
    assert path.read_bytes() == DATA
    assert len(line.server.ranges) == 4
    starts = [int(question.strip("bytes=-") or 0) for question in line.server.ranges]
    assert starts == sorted(starts)
    assert starts[1] >= 1 * MIB


async def test_what_a_dead_process_left_is_hashed_and_continued(line: Line) -> None:
    (line.folder / "x.part").write_bytes(DATA[: 3 * MIB])
    path = await line.run()
    assert path.read_bytes() == DATA
    assert line.server.ranges == [f"bytes={3 * MIB}-"]
    assert line.moves[0] == 3 * MIB


async def test_a_whole_part_asks_nobody(line: Line) -> None:
    (line.folder / "x.part").write_bytes(DATA)
    line.wanted = replace(line.wanted, total_bytes=len(DATA), sha256=line.server.sha256)
    assert (await line.run()).read_bytes() == DATA
    assert not line.server.requests


async def test_a_part_of_something_else_is_begun_again(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    (line.folder / "x.part").write_bytes(bytes(len(DATA) + 1))
    line.wanted = replace(line.wanted, total_bytes=len(DATA))
    threads: list[threading.Thread] = []
    discard = PartialFile.discard

    def noted(part: PartialFile) -> None:
        threads.append(threading.current_thread())
        discard(part)

    monkeypatch.setattr(PartialFile, "discard", noted)
    assert (await line.run()).read_bytes() == DATA
    assert threads
    assert threading.main_thread() not in threads  # the loop goes on meanwhile


async def test_a_server_without_ranges_begins_again(line: Line) -> None:
    (line.folder / "x.part").write_bytes(DATA[:MIB])
    line.server.faults.ignore_ranges = True
    assert (await line.run()).read_bytes() == DATA


async def test_a_flipped_byte_is_never_used_and_the_next_try_is_good(line: Line) -> None:
    (line.folder / "x.part").write_bytes(b"\xff" + DATA[1:MIB])
    await line.fails("download_damaged")
    assert (line.folder / "x.part").stat().st_size == 0
    assert (await line.run()).read_bytes() == DATA


async def test_another_file_than_the_catalogs_is_refused_at_once(line: Line) -> None:
    line.wanted = replace(line.wanted, sha256="0" * 64)
    await line.fails("download_other_file")
    assert line.moves in ([], [0])


async def test_another_size_than_promised_is_refused(line: Line) -> None:
    line.wanted = replace(line.wanted, total_bytes=len(DATA) - 1)
    await line.fails("download_other_size")


@pytest.mark.parametrize("total", [len(DATA) - 4096, len(DATA) + 4096])
async def test_a_lying_length_is_never_believed(line: Line, total: int) -> None:
    line.server.faults.total = total
    await line.fails("hub_odd")


async def test_a_file_that_grows_on_the_way_is_cut_off(line: Line) -> None:
    line.server.faults.sends = DATA + bytes(MIB)
    line.server.faults.no_size = True
    line.wanted = replace(line.wanted, total_bytes=len(DATA))
    await line.fails("download_other_size")


async def test_a_file_of_unknown_size_is_not_begun(line: Line) -> None:
    line.server.faults.no_size = True
    await line.fails("download_no_size")


async def test_a_line_that_breaks_for_ever_ends_with_a_sentence(line: Line) -> None:
    line.server.faults.break_after = [1000] * 9
    error = await line.fails("download_broken", tries=4)
    assert error.reason.facts["tries"] == 5
    assert (line.folder / "x.part").stat().st_size > 0


async def test_a_store_in_trouble_is_asked_again(line: Line) -> None:
    line.server.faults.statuses = [503, 403, 500]
    assert (await line.run()).read_bytes() == DATA


async def test_gated_files_want_a_token_and_the_store_never_sees_it(line: Line) -> None:
    line.server.faults.gated = True
    await line.fails("hub_token_needed")
    line.token = "hf_old0token"
    await line.fails("hub_token_wrong")
    line.token = TOKEN
    assert (await line.run()).read_bytes() == DATA
    with_token = [request.path for request in line.server.requests if "Authorization" in request.headers]
    assert with_token
    assert "/blob" not in with_token


async def test_an_account_that_has_not_agreed_is_told_so(line: Line) -> None:
    line.server.faults.refused_token, line.token = True, TOKEN
    await line.fails("hub_gated")


@pytest.mark.parametrize(
    "to", ["https://evil.example/x", "file:///etc/passwd", "http://10.0.0.1/x", "https://u@127.0.0.1/"]
)
async def test_a_redirect_elsewhere_is_not_followed(line: Line, to: str) -> None:
    line.server.faults.redirect = to
    await line.fails("hub_redirect_odd")


async def test_a_circle_of_redirects_ends(line: Line) -> None:
    line.server.faults.redirect = f"/{REPOSITORY}/resolve/main/{FILE}"
    await line.fails("hub_odd", tries=1)


async def test_what_is_not_there_is_named(line: Line) -> None:
    line.wanted = DownloadTarget(FileRequest(REPOSITORY, "gone.gguf", "main"))
    await line.fails("hub_file_unknown")
    line.wanted = DownloadTarget(FileRequest("no/body", FILE, "main"))
    await line.fails("hub_unknown")


async def test_room_is_looked_for_before_the_first_byte(line: Line) -> None:
    line.room = len(DATA) + LEFT_FREE_BYTES - 1
    error = await line.fails("download_no_room")
    assert error.reason.facts["needed_bytes"] == len(DATA) + LEFT_FREE_BYTES
    assert (line.folder / "x.part").stat().st_size == 0
    line.room += 1
    assert (await line.run()).read_bytes() == DATA


@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
async def test_a_disk_that_fills_up_keeps_the_true_part(line: Line, share: float) -> None:
    class Full(Disk):
        left = int(len(DATA) * share)

        def write(self, file: object, data: memoryview) -> None:
            if len(data) > self.left:
                file.write(data[: self.left])  # type: ignore[attr-defined]
                raise OSError(28, "No space left on device")
            self.left -= len(data)
            super().write(file, data)  # type: ignore[arg-type]

    line.disk = Full()
    await line.fails("disk_full")
    kept = (line.folder / "x.part").read_bytes()
    assert kept == DATA[: len(kept)]
    line.disk = Disk()
    assert (await line.run()).read_bytes() == DATA


async def test_a_pause_keeps_what_is_here(line: Line) -> None:
    line.server.faults.hold = asyncio.Event()
    line.server.faults.bytes_at_once = 2 * MIB
    async with asyncio.TaskGroup() as group:
        task = group.create_task(line.run())
        while not (line.moves and line.moves[-1] >= MIB):
            line.moved.clear()
            await line.moved.wait()
        task.cancel()
    kept = (line.folder / "x.part").read_bytes()
    assert len(kept) >= MIB
    assert kept == DATA[: len(kept)]
    line.server.faults.hold = None
    assert (await line.run()).read_bytes() == DATA
