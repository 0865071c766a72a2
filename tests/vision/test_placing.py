"""Pictures in a prompt: who may name one, where it goes, and what a stage does with ids that are none of its own."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from app.core.errors import BadInput
from app.core.speculation.overlap import SpeculationGain
from app.core.speculation.trip_costs import TripCosts
from app.inference.pipeline.pictures import MARKER, Pictures, marker_of
from app.inference.pipeline.replica_set import Replica, ReplicaSet
from app.inference.pipeline.sequence import PlacedRows, SequenceState, check_request
from app.inference.pipeline.speculative_tokens import Guesses
from app.inference.stages import stage_connection
from backends.contract import FIRST_PICTURE_ID, NumberFormat, Segment, StageError
from backends.frames import BadFrame, Frame, FrameKind, PipelineParameters, check_step, decode_frame, encode_frame
from backends.llamacpp.picture_encoder import PictureEncoder
from backends.worker.shown_pictures import ShownPictures
from tests.inference.pool import WIDTH, answer, pool, request

ROWS = np.arange(3 * WIDTH, dtype=np.float32).tobytes()
PICTURE = PlacedRows(2, FIRST_PICTURE_ID - 5, 3, ROWS, sees_all=True)
IDS = (4, 5, *(PICTURE.first - row for row in range(3)), 6)
WITH_PICTURE = replace(request(IDS), pictures=(PICTURE,))


class Owner:
    """The pipeline that a sequence belongs to."""

    place = 0

    def wake(self) -> None: ...
    def leave(self, sequence: SequenceState) -> None: ...


def test_no_text_stands_for_a_picture() -> None:
    data = b"a picture"
    marker = marker_of(data)
    assert Pictures().add(data) == marker
    assert marker != MARKER + hashlib.sha256(data).hexdigest()
    code = "from app.inference.pipeline.pictures import marker_of; print(marker_of(b'a picture'))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert other.startswith(MARKER)
    assert other != marker


async def test_no_other_computer_gets_a_picture() -> None:
    async with pool(2, 6, away=True) as built:
        replicas = ReplicaSet()
        replicas.put(0, Replica("attic", built.pipeline, frozenset({"attic"}), here=False))
        with pytest.raises(BadInput) as refused:
            async for _ in replicas.generate(WITH_PICTURE):
                pass
        assert refused.value.reason.code == "picture_replicas"
        with pytest.raises(BadInput) as refused:  # and if it is asked directly, its first run is on a lender
            await answer(built.pipeline, WITH_PICTURE)
        assert refused.value.reason.code == "picture_replicas"


@pytest.mark.parametrize(
    "ids",
    [(4, -2, 5), (*IDS[:2], *reversed(IDS[2:5]), 6), (IDS[2], *IDS), (*IDS[:5], PICTURE.first - 3), (-1, *IDS[1:])],
)
def test_a_negative_id_is_a_row_of_a_picture_at_its_place_or_refused(ids: tuple[int, ...]) -> None:
    check_request(WITH_PICTURE, 100, 300)
    with pytest.raises(BadInput) as refused:
        check_request(replace(WITH_PICTURE, ids=ids), 100, 300)
    assert refused.value.reason.code == "token_unknown"


def test_a_picture_is_computed_and_kept_whole() -> None:
    sequence = SequenceState(WITH_PICTURE, 100, Owner())
    assert (sequence.until, sequence.block, sequence.is_apart) == (2, 0, False)
    sequence.entered = 2
    assert (sequence.block, sequence.is_apart) == (3, True)
    sequence.entered = 5
    assert (sequence.until, sequence.block) == (6, 0)
    assert [sequence.reusable(keep) for keep in range(7)] == [0, 1, 2, 2, 2, 5, 6]
    assert all(token >= 0 for token in sequence.begin_arguments()[3])


def test_no_guess_is_a_row_of_a_picture() -> None:
    guesses, sequence = Guesses(), SequenceState(replace(request([7, -9, 7, -9, 7, -9, 7])), 100, Owner())
    gain = SpeculationGain()
    for _ in range(4):
        gain = guesses.judge(sequence.tokens, 1, 0.1, False, gain, lambda _: TripCosts())
    assert guesses.proposals(sequence.tokens, 4) == []
    assert guesses.next(sequence.tokens, gain, lambda _: TripCosts(), 4, checks=True) is None


def test_a_stage_computes_only_rows_that_were_shown_to_it() -> None:
    shown = ShownPictures(WIDTH)
    shown.keep(1, PICTURE.first, ROWS, begins=True)
    got = np.frombuffer(shown.rows([PICTURE.first - 2, PICTURE.first]), np.float32).reshape(2, WIDTH)
    assert got[:, 0].tolist() == [2 * WIDTH, 0]
    for unknown in (PICTURE.first + 1, PICTURE.first - 3):
        with pytest.raises(StageError):
            shown.rows([PICTURE.first, unknown])
    for rows in (b"", ROWS[:-4], np.full(WIDTH, np.nan, np.float32).tobytes()):
        with pytest.raises(StageError):
            shown.keep(1, PICTURE.first, rows, begins=False)
    with pytest.raises(StageError):
        shown.keep(1, 0, ROWS, begins=False)
    shown.keep(1, FIRST_PICTURE_ID - 50, ROWS, begins=True)
    with pytest.raises(StageError):  # the slot has another sequence now
        shown.rows([PICTURE.first])


def test_only_a_step_of_one_sequence_may_see_all() -> None:
    agreed = PipelineParameters(bytes(16), 1, NumberFormat.F32, 4, 64)
    step = Frame(FrameKind.STEP, segments=(Segment(0, 2, 0),), payload=bytes(8), sees_all=True)
    assert decode_frame(encode_frame(step)) == step
    check_step(step, agreed)
    two = replace(step, segments=(Segment(0, 1, 0), Segment(1, 1, 0)))
    with pytest.raises(BadFrame):
        check_step(two, agreed)
    for kind in FrameKind:
        if kind is not FrameKind.STEP:
            with pytest.raises(BadFrame):
                decode_frame(encode_frame(replace(step, kind=kind)))


async def test_rows_wait_for_a_step_that_takes_longer_than_other_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a step may be another picture, which is large, and its worker must not be taken for one that hangs."""
    order_s = 0.2
    monkeypatch.setattr(stage_connection, "ORDER_S", order_s)
    async with pool(2, 6, paths=["fake:seconds_per_layer=0.2"]) as built, asyncio.TaskGroup() as group:
        answering = group.create_task(answer(built.pipeline, request(max_tokens=2)), name="answer")
        while built.host.busy_since is None:  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.01)
        began = time.monotonic()
        await built.pipeline._stages[0].show(1, PICTURE.first, ROWS, begins=True)
        assert time.monotonic() - began > order_s
        assert len((await answering)[0]) == 2


@pytest.mark.parametrize(("width", "height"), [(-2, -3), (0, 0), (2, 4), (-1, 18)])
def test_only_pixels_of_the_stated_size_are_looked_at(width: int, height: int) -> None:
    """Otherwise, the engine reads beyond them."""
    encoder = object.__new__(PictureEncoder)  # it looks at the size before anything else
    with pytest.raises(StageError, match="are no picture"):
        encoder.see(width, height, bytes(18))
