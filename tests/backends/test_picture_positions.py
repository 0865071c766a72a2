"""The positions of pictures that have two dimensions: as llama.cpp's mtmd counts them, and as hostile hosts may not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.catalog.families.layer_metadata import n_layers
from app.catalog.gguf.gguf_file import read_header
from backends.contract import Layers, PictureGrid, Role, Segment, StageConfig, StageError, Tokens
from backends.llamacpp.picture_positions import planes_of, time_of
from backends.llamacpp.stage import LlamaStage
from backends.worker.stage_runner import MOST_GRIDS, check_grids

GRIDS = (PictureGrid(2, 3, 2), PictureGrid(9, 2, 4))  # 6 rows with 3 positions, and 8 rows with 4
FAMILIES = Path(__file__).parent.parent / "families"


def test_rows_of_a_picture_have_a_line_and_a_column() -> None:
    time, line, column = planes_of(Segment(0, 19, 0), GRIDS).tolist()
    assert time == [0, 1, 2, 2, 2, 2, 2, 2, 5, 6, 6, 6, 6, 6, 6, 6, 6, 10, 11]
    assert line == [0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 11]
    assert column == [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 7, 6, 7, 6, 7, 6, 7, 10, 11]


@pytest.mark.parametrize("first", range(19))
def test_a_step_may_begin_anywhere(first: int) -> None:
    whole = planes_of(Segment(0, 19, 0), GRIDS)
    assert np.array_equal(planes_of(Segment(0, 19 - first, first), GRIDS), whole[:, first:])


def test_a_cache_is_cut_around_a_picture_and_not_within() -> None:
    whole = planes_of(Segment(0, 19, 0), GRIDS)[0]
    for index in range(19):
        if any(grid.first < index < grid.end for grid in GRIDS):
            with pytest.raises(StageError):
                time_of(index, GRIDS)
        else:
            assert time_of(index, GRIDS) == whole[index]


@pytest.mark.parametrize(
    "grids",
    [
        (PictureGrid(0, 2, 2),),  # no token announces it
        (PictureGrid(-1, 2, 2),),
        (PictureGrid(1, 0, 4),),
        (PictureGrid(1, -2, -2),),
        (PictureGrid(1, 1 << 40, 1 << 40),),
        (PictureGrid(1, 2, 257),),
        (PictureGrid(1, 10, 10),),  # beyond the context
        (PictureGrid(1, 2, 2), PictureGrid(4, 2, 2)),
        tuple(reversed(GRIDS)),
        tuple(PictureGrid(1 + n, 1, 1) for n in range(MOST_GRIDS + 1)),
    ],
)
def test_a_stage_refuses_pictures_that_cannot_be(grids: tuple[PictureGrid, ...]) -> None:
    check_grids(GRIDS, 100)
    with pytest.raises(StageError):
        check_grids(grids, 100)


@pytest.mark.parametrize("family", ["qwen2-5-vl", "qwen3-5"])
def test_the_shape_of_a_picture_changes_what_follows(family: str) -> None:
    scores = [last_scores(family, grids) for grids in ((), (PictureGrid(1, 6, 1),), (PictureGrid(1, 3, 2),))]
    for left, right in ((0, 1), (1, 2), (0, 2)):
        assert np.abs(scores[left] - scores[right]).max() > 1e-3
    assert np.array_equal(scores[2], last_scores(family, (PictureGrid(1, 3, 2),)))


def whole(family: str) -> LlamaStage:
    path = FAMILIES / f"{family}.gguf"
    layers = Layers(0, n_layers(read_header(path)))
    return LlamaStage(StageConfig("llamacpp", str(path), "", Role.WHOLE, layers, 32, 1, 256, 64, 1))


def last_scores(family: str, grids: tuple[PictureGrid, ...]) -> np.ndarray:
    """The scores after a token, a picture of six rows, and two tokens."""
    rows = np.random.default_rng(1).standard_normal((6, 32)).astype(np.float32)

    class Rows:
        def rows(self, ids: object) -> memoryview:
            return memoryview(rows.tobytes())

    stage = whole(family)
    try:
        stage.lay_out(0, grids)
        stage.forward(Tokens((Segment(0, 1, 0),), (5,)), [])
        stage.forward(Tokens((Segment(0, 6, 1),), tuple(range(-2, -8, -1)), Rows()), [])
        out = stage.forward(Tokens((Segment(0, 2, 7),), (6, 7)), [0])
        return np.frombuffer(bytes(out.rows), np.float32)
    finally:
        stage.close()


def test_a_model_with_positions_of_one_dimension_takes_no_such_picture() -> None:
    stage = whole("qwen2")
    try:
        stage.lay_out(0, ())
        with pytest.raises(StageError):
            stage.lay_out(0, GRIDS)
    finally:
        stage.close()
