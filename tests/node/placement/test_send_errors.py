"""Layers that do not arrive: the machine whose disk it is is named, and a file that changed is not sent for ever."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from app.catalog.files import Disk
from app.catalog.shelf import Entry
from app.catalog.stages.cut import Cut
from app.catalog.stages.manifest import from_json, wants_to_json
from app.catalog.stages.stage_receiver import StageReceiver
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, BadInput, Damaged, DoesNotFit
from app.core.ids import PipelineId
from app.core.reasons import said
from app.node.placement.lenders import send_or_explain
from backends.contract import Layers, Role
from tests.catalog.conftest import LIMIT_BYTES, Home, new_home

PIPELINE = PipelineId(bytes(16))


class FullDisk(Disk):
    def free_bytes(self, folder: Path) -> int:
        return 0


@dataclass
class Link:
    """A lender's store, as its node has it; `flips`: one byte on the way."""

    stages: StageStore
    flips: bool = False
    receiver: StageReceiver | None = None

    async def offer_stage(self, pipeline: PipelineId, body: bytes, total_bytes: int) -> bytes:
        self.receiver = self.stages.accept(from_json(body))
        return wants_to_json(self.receiver.wants)

    async def upload_pieces(self, pipeline: PipelineId, chunks: AsyncGenerator[bytes, None], total_bytes: int) -> bytes:
        assert self.receiver is not None
        with self.receiver as receiver:
            async for chunk in chunks:
                receiver.write(bytes([chunk[0] ^ 1]) + chunk[1:] if self.flips else chunk)
            receiver.finish()
        return b"{}"


@pytest.fixture
def host(tmp_path: Path) -> Home:
    return new_home(tmp_path / "host")


def middle(host: Home) -> tuple[Entry, Cut]:
    entry = host.add("m", layers=8)
    return entry, host.shelf.cut(entry, Layers(2, 6), Role.MIDDLE)


async def refused(link: Any, entry: Entry, cut: Cut) -> AppError:
    with pytest.raises(AppError) as error:
        await send_or_explain(link, PIPELINE, "attic", entry, cut, lambda *_: None)
    return error.value


def rot(path: Path, offset: int) -> int:
    """A bit falls over, as on an old disk: neither size nor time change. When the system saw it."""
    data, times = bytearray(path.read_bytes()), path.stat()
    data[offset] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return path.stat().st_ctime_ns


async def test_a_file_that_changed_behind_its_time_is_not_to_be_tried_again(host: Home, tmp_path: Path) -> None:
    result, cut = middle(host)
    offset = host.shelf.header(result).tensors["blk.3.ffn_up.weight"].offset
    entry = replace(result, ctime_ns=rot(Path(result.path), offset))  # a disk that rots tells no time
    assert host.shelf.verify(entry) == entry  # nobody can see it
    error = await refused(Link(StageStore(tmp_path / "attic", LIMIT_BYTES)), entry, cut)
    assert isinstance(error, Damaged)
    assert said(error) == (
        f"{entry.path} has changed since it was imported as m. Remove the model and import it again."
    )


async def test_what_was_damaged_on_the_way_is_to_be_tried_again(host: Home, tmp_path: Path) -> None:
    link = Link(StageStore(tmp_path / "attic", LIMIT_BYTES), flips=True)
    assert (await refused(link, *middle(host))).reason.code == "piece_wrong"


class Says:
    """A lender that refuses what it is offered."""

    def __init__(self, error: AppError) -> None:
        self.error = error

    async def offer_stage(self, pipeline: PipelineId, body: bytes, total_bytes: int) -> bytes:
        raise self.error

    async def upload_pieces(self, pipeline: PipelineId, chunks: AsyncGenerator[bytes, None], total_bytes: int) -> bytes:
        raise AssertionError("nothing is wanted")


@pytest.mark.parametrize(
    "error",
    [
        DoesNotFit("stages_full", needed_bytes=2, allowed_bytes=1),
        DoesNotFit("stage_too_large", needed_bytes=2, allowed_bytes=1),
        DoesNotFit("disk_full", folder="layers", needed_bytes=2, free_bytes=1),
        BadInput("disk_failed", folder="layers", why="input/output error"),
    ],
)
async def test_what_a_lender_says_of_itself_names_it(host: Home, error: AppError) -> None:
    app_error = await refused(Says(error), *middle(host))
    assert type(app_error) is type(error)
    assert said(app_error) == f"attic: {said(error)}"


@pytest.mark.parametrize("piece", [None, "1", -1, 9999])
async def test_a_piece_that_there_is_not_blames_no_file(host: Home, piece: object) -> None:
    error = Damaged("piece_wrong") if piece is None else Damaged("piece_wrong", piece=piece)  # type: ignore[arg-type]
    assert await refused(Says(error), *middle(host)) is error


async def test_a_full_disk_says_whose_it_is(host: Home, tmp_path: Path) -> None:
    link = Link(StageStore(tmp_path / "attic", LIMIT_BYTES, FullDisk()))
    error = await refused(link, *middle(host))
    assert isinstance(error, DoesNotFit)
    assert said(error).startswith("attic: The disk that holds ")
    assert said(error).endswith(" Free some space and try again.")
