"""The rows of pictures on their way to the first run: in pieces, again after a loss, and how long they are kept."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.inference.pipeline import scheduler
from app.inference.pipeline.sequence import PlacedRows, Request
from app.inference.worker.vision import VisionWorker
from backends import worker_orders
from backends.contract import FIRST_PICTURE_ID, Layers, NumberFormat, Role, Segment, StageError
from backends.frames import Frame, FrameKind
from backends.hidden_state_codec import encode_ids
from backends.worker import service
from backends.worker.shown_pictures import ShownPictures
from backends.worker.stage_runner import StageRunner
from tests.inference.pool import WIDTH, answer, cuts, fake, pool, request, shape
from tests.vision.tiny_models import pixels, png, projector, text_model

N_ROWS = 20


def rows(seed: int, n_rows: int = N_ROWS) -> bytes:
    return np.random.default_rng(seed).integers(0, 200, (n_rows, WIDTH)).astype(np.float32).tobytes()


def picture(at: int, number: int, seed: int, *, sees_all: bool) -> PlacedRows:
    return PlacedRows(at, FIRST_PICTURE_ID - number, N_ROWS, rows(seed), sees_all=sees_all)


def question(*pictures: PlacedRows, max_tokens: int = 8) -> Request:
    ids = [4] * 3
    for placed in pictures:
        ids += [placed.first - row for row in range(placed.n_rows)] + [5]
    return replace(request(ids, max_tokens), pictures=pictures)


def two(*, sees_all: bool, second: int = 2, max_tokens: int = 8) -> Request:
    earlier = picture(3, 0, 1, sees_all=sees_all)
    return question(earlier, picture(earlier.end + 1, N_ROWS, second, sees_all=sees_all), max_tokens=max_tokens)


async def test_a_large_picture_is_shown_in_pieces_and_means_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool(2, 4, 2) as built:
        known, _ = await answer(built.pipeline, two(sees_all=True))
        other, _ = await answer(built.pipeline, two(sees_all=True, second=3))
        assert known != other
        monkeypatch.setattr(scheduler, "SHOWN_BYTES", 7 * 4 * WIDTH)  # 7, 7 and 6 rows
        assert (await answer(built.pipeline, two(sees_all=True)))[0] == known


@pytest.mark.parametrize("sees_all", [False, True])
async def test_pictures_are_shown_again_when_a_lender_is_lost(sees_all: bool) -> None:
    """A loss comes in the answer, when the first run keeps none of their rows anymore."""
    async with pool(2, 4, 2, paths=["fake:seconds_per_layer=0.002"], rebuilds=True) as built:
        known, _ = await answer(built.pipeline, two(sees_all=sees_all, max_tokens=30))
        got, recoveries = list[int](), 0
        async for item in built.pipeline.generate(two(sees_all=sees_all, max_tokens=30)):
            if hasattr(item, "id"):
                got.append(item.id)
                if len(got) == 5:
                    os.kill(built.lent_worker().pid, 9)
            elif hasattr(item, "figures"):
                recoveries = len(item.figures.recoveries)
        assert got == known
        assert recoveries == 1


async def test_the_same_picture_may_stand_twice_in_a_question() -> None:
    async with pool(2, 4, 2) as built:
        earlier = picture(3, 0, 1, sees_all=True)
        twice = question(earlier, replace(earlier, pos=earlier.end + 1))
        assert len((await answer(built.pipeline, twice))[0]) == 8


def test_rows_are_kept_until_they_are_computed() -> None:
    shown = ShownPictures(WIDTH)
    ids = [FIRST_PICTURE_ID - row for row in range(N_ROWS)]
    for begins in (True, False):  # the same picture stands twice in the prompt of this slot
        shown.keep(0, FIRST_PICTURE_ID, rows(1), begins=begins)
    shown.keep(1, FIRST_PICTURE_ID, rows(1), begins=True)
    shown.computed(0, ids[:-1])
    shown.computed(0, ids[-1:])
    shown.computed(1, ids)
    assert bytes(shown.rows(ids)) == rows(1)  # the second time
    shown.computed(0, [5, *ids])
    with pytest.raises(StageError):
        shown.rows(ids[:1])


def runner() -> StageRunner:
    form = shape()
    role, layers = cuts(4, 4)[0]
    assert (role, layers) == (Role.FIRST, Layers(0, 4))
    order = worker_orders.OpenStage(
        request=0, pipeline=PIPELINE.hex(), epoch=0, number=int(NumberFormat.F32), context=form.context,
        memory_limit_bytes=0, config=fake(role, layers, form),
    )  # fmt: skip
    return StageRunner(order)


PIPELINE = bytes(range(16))


def shown(run: StageRunner, slot: int) -> None:
    order = worker_orders.ShowPicture(
        request=0, pipeline=PIPELINE.hex(), slot=slot, first=FIRST_PICTURE_ID, rows=rows(1), begins=True
    )
    run.show(order)


def kept(run: StageRunner) -> int:
    return sum(len(values) for parts in run._pictures._slots.values() for _, values in parts)


def step(seq: int, slot: int, pos: int, ids: list[int]) -> Frame:
    segments = (Segment(slot, len(ids), pos),)
    return Frame(FrameKind.STEP, PIPELINE, 0, seq, NumberFormat.IDS, segments, encode_ids(ids))


def test_a_stage_keeps_no_rows_that_nobody_will_compute() -> None:
    run = runner()
    ids = [FIRST_PICTURE_ID - row for row in range(N_ROWS)]
    shown(run, 2)
    shown(run, 1)
    assert kept(run) == 2 * N_ROWS
    run.step(step(1, 2, 0, [4, *ids[:5]]))
    run.step(step(2, 2, 6, ids[5:]))
    assert kept(run) == N_ROWS
    run.forget(Frame(FrameKind.FORGET, PIPELINE, 0, 3, segments=(Segment(1, 0, 0),)))
    assert kept(run) == 0
    shown(run, 2)
    run.forget(Frame(FrameKind.FORGET, PIPELINE, 0, 4, segments=(Segment(2, 0, 5),)))
    assert kept(run) == 0


async def test_a_large_picture_comes_out_of_its_process_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = text_model("gemma3", "gemma3", tmp_path / "tiny.gguf")
    eyes = projector("gemma3", 32, tmp_path / "mmproj.gguf")
    seeing = await VisionWorker.open(str(model), str(eyes), 1)
    try:
        known = await seeing.see(png(pixels(1)))
        splitting = service.Eyes()
        splitting.open(
            worker_orders.OpenProjector(
                request=0, path=str(model), projector=str(eyes), most_rows=0, threads=1, memory_limit_bytes=0
            )
        )
        monkeypatch.setattr(service, "PICTURE_PIECE_BYTES", 5 * 4 * 32)
        taken = pixels(1)
        order = worker_orders.SeePicture(request=0, width=taken.width, height=taken.height, rgb=taken.data)
        parts = list(splitting.see(order))
        splitting.close()
        assert [len(part.rows) // (4 * 32) for part in parts if part.rows] == [5, 5, 5, 1]
        seeing._first_rows.clear()
        seeing._n_rows = 0
        assert seeing._numbered("again", parts) == known.parts
    finally:
        await seeing.close()
