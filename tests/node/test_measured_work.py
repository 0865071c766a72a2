"""Tests of the working memory that is remembered: by card, model and sizes, over restarts, and what a lack teaches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.core.planner.stage_memory import WORK_FLOOR_BYTES
from app.core.planner.work_shape import ShapeBytes, WorkShape, work_of
from app.node.measured_work import (
    MOST_MEASURED,
    OLD_AFTER_SECONDS,
    SHORT_SECONDS,
    SHORT_STEP_BYTES,
    MeasuredWork,
    place_of_lender,
)
from backends.contract import KvType, Layers, Role, StageConfig

MIB = 1 << 20
CONFIG = StageConfig("llamacpp", "", "", Role.MIDDLE, Layers(2, 6), 64, 1, 256, 64, 1)
SHAPE = WorkShape.of("a" * 64, CONFIG)
DEN = place_of_lender("den", "llamacpp 0.3.36", "A card")


def shape(config: StageConfig) -> WorkShape:
    return WorkShape.of("a" * 64, config)


def test_it_is_remembered_over_a_restart_until_it_is_old(tmp_path: Path) -> None:
    file, now = tmp_path / "card-memory.json", [1000.0]
    changes: list[int] = []
    work = MeasuredWork(file, lambda: now[0], lambda: changes.append(1))
    work.keep(DEN, SHAPE, 7 * MIB)
    work.keep(DEN, SHAPE, 7 * MIB)
    assert len(changes) == 1, "the same again is nothing to save"
    work.save()
    again = MeasuredWork(file, lambda: now[0])
    assert again.at(DEN) == [ShapeBytes(SHAPE, 7 * MIB)]
    assert again.at(place_of_lender("den", "llamacpp 0.3.37", "A card")) == [], "another engine"
    now[0] += OLD_AFTER_SECONDS
    assert MeasuredWork(file, lambda: now[0]).at(DEN) == []
    file.write_text("{")
    assert MeasuredWork(file).at(DEN) == []


def test_a_lack_of_memory_makes_it_more_for_some_days_and_not_without_end(tmp_path: Path) -> None:
    now = [1000.0]
    work = MeasuredWork(tmp_path / "card-memory.json", lambda: now[0])
    known = []
    for _ in range(6):
        work.ran_short(DEN, SHAPE, 100 * MIB)
        known.append(work.at(DEN)[0].n_bytes - 100 * MIB)
    assert known == [n * SHORT_STEP_BYTES for n in (1, 2, 3, 4, 4, 4)]
    work.keep(DEN, SHAPE, 30 * MIB)
    assert work.at(DEN)[0].n_bytes == 30 * MIB + 4 * SHORT_STEP_BYTES, "what came later is not in the measurement"
    work.save()
    now[0] += SHORT_SECONDS
    assert MeasuredWork(tmp_path / "card-memory.json", lambda: now[0]).at(DEN)[0].n_bytes == 30 * MIB


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    work = MeasuredWork(tmp_path / "card-memory.json")
    for n in range(MOST_MEASURED + 5):
        work.keep(DEN, shape(replace(CONFIG, kv_cells=256 + n)), n)
    assert [each.n_bytes for each in work.at(DEN)] == list(range(5, MOST_MEASURED + 5))


@pytest.mark.parametrize(
    "other",
    [
        replace(CONFIG, slots=2),
        replace(CONFIG, kv_cells=512),
        replace(CONFIG, batch_rows=8),
        replace(CONFIG, apart=True),
        replace(CONFIG, kv=KvType.Q8_0),
        replace(CONFIG, role=Role.LAST),
    ],
)
def test_other_sizes_say_nothing(other: StageConfig) -> None:
    assert work_of(SHAPE, [ShapeBytes(shape(other), MIB)]) is None
    assert work_of(SHAPE, [ShapeBytes(WorkShape.of("b" * 64, CONFIG), MIB)]) is None, "another model"


def test_other_layers_of_a_model_say_how_much_it_is_unless_these_were_measured() -> None:
    measured = [ShapeBytes(shape(replace(CONFIG, layers=Layers(0, n))), n * MIB) for n in (1, 3, 2)]
    assert work_of(SHAPE, measured) == WORK_FLOOR_BYTES + 3 * MIB
    assert work_of(SHAPE, [*measured, ShapeBytes(SHAPE, MIB)]) == WORK_FLOOR_BYTES + MIB
