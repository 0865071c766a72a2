"""The book of speeds: what is kept is found again under the same conditions only; nothing odd is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from app.core.model import LayerKind, LayerRun, ModelShape, Tensor
from app.core.planner.speed_estimates import Speed
from app.node.planning import local_speed
from app.node.planning.forecast_history import far_off
from app.node.planning.local_speed import FORMAT, Setup, SpeedCache, measurement_key

SPEED = Speed(0.002, 0.001, 1e-6, 0.05, 1e-5, 0.0002, 0.004, 0.003)
SHAPE = ModelShape(
    "llama", 32, (), (LayerKind((Tensor("attn_q.weight", 1, (32, 32)),)),),
    (LayerRun((0, 0), (), 2.0),), (),
    Tensor("token_embd.weight", 1, (32, 300)),
)  # fmt: skip
SETUP = Setup("llamacpp 0.3 AVX2", "A CPU", 4, 64)
DAY_S = 24 * 3600.0


class Clock:
    now_s = 1e9

    def __call__(self) -> float:
        return self.now_s


def test_what_is_kept_is_found_by_the_next_start(tmp_path: Path) -> None:
    path, key = tmp_path / "speeds.json", measurement_key(SETUP, SHAPE, head=True)
    SpeedCache(path).keep(key, SPEED)
    again = SpeedCache(path)
    assert again.get(key) == SPEED
    again.doubt(key)
    again.doubt(key)
    for book in (again, SpeedCache(path)):
        assert book.get(key) is None
        assert book.last(key) == SPEED  # for who will not measure, better than nothing


def test_anything_else_is_another_measurement() -> None:
    rest = [
        (Setup("llamacpp 0.4 AVX2", "A CPU", 4, 64), SHAPE, True),
        (Setup("llamacpp 0.3 AVX2", "B CPU", 4, 64), SHAPE, True),
        (Setup("llamacpp 0.3 AVX2", "A CPU", 2, 64), SHAPE, True),
        (Setup("llamacpp 0.3 AVX2", "A CPU", 4, 32), SHAPE, True),
        (Setup("llamacpp 0.3 AVX2", "A CPU", 4, 64, exact=True), SHAPE, True),
        (SETUP, SHAPE, False),
        (SETUP, structs.replace(SHAPE, width=64), True),
    ]
    keys = {measurement_key(setup, shape, head=head) for setup, shape, head in rest}
    assert len(keys) == len(rest)
    assert measurement_key(SETUP, SHAPE, head=True) not in keys
    assert measurement_key(SETUP, SHAPE, head=True) == measurement_key(SETUP, SHAPE, head=True)


def test_an_old_speed_is_measured_again(tmp_path: Path) -> None:
    clock = Clock()
    book = SpeedCache(tmp_path / "speeds.json", clock)
    book.keep("a" * 64, SPEED)
    clock.now_s += 13 * DAY_S
    assert book.get("a" * 64) == SPEED
    clock.now_s += 2 * DAY_S
    assert book.get("a" * 64) is None
    clock.now_s -= 100 * DAY_S  # a clock that was set back: it was measured in the future
    assert book.get("a" * 64) is None


def test_what_was_measured_beside_other_programs_holds_for_minutes(tmp_path: Path) -> None:
    clock = Clock()
    SpeedCache(tmp_path / "speeds.json", clock).keep("a" * 64, replace(SPEED, other_load=0.3))
    book = SpeedCache(tmp_path / "speeds.json", clock)
    assert book.get("a" * 64) == replace(SPEED, other_load=0.3)
    assert (book.was_disturbed("a" * 64), book.was_disturbed("b" * 64)) == (True, False)
    clock.now_s += local_speed.OLD_DISTURBED_S + 1
    assert book.get("a" * 64) is None


def test_the_book_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_speed, "MOST_ENTRIES", 3)
    path = tmp_path / "speeds.json"
    book = SpeedCache(path)
    keys = [f"{number:064x}" for number in range(5)]
    for key in keys:
        book.keep(key, SPEED)
    book.keep(keys[2], SPEED)
    again = SpeedCache(path)
    assert [key for key in keys if again.get(key)] == keys[2:]


def written(**change: Any) -> bytes:
    kept = (name for name in Speed.__slots__ if name.endswith("_s") and "window" not in name)
    fields = {name: getattr(SPEED, name) for name in kept}
    entry = {"measured_at": 1e9, **fields, **change}
    return json.dumps({"format": FORMAT, "entries": {"a" * 64: entry}}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b'{"format": 1, "entries": {"\xff": {}}}',
        b"[]",
        b'{"format": 1}',
        b'{"format": 1, "entries": {"x": {}}}',
        b'{"format": 9, "entries": {}}',
        b" " * ((1 << 20) + 1),
        written(layer_s=0),
        written(layer_s=-1.0),
        written(layer_s=1e9),
        written(chunk_s="fast"),
        written(step_s=None),
        written(extra=1),
        written(position_s=float("nan")),
    ],
)
def test_what_cannot_be_read_was_never_measured(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "speeds.json"
    path.write_bytes(content)
    book = SpeedCache(path, Clock())
    assert book.get("a" * 64) is None
    book.keep("b" * 64, SPEED)
    assert SpeedCache(path, Clock()).get("b" * 64) is not None


def test_a_sound_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "speeds.json"
    path.write_bytes(written())
    assert SpeedCache(path, Clock()).get("a" * 64) == SPEED


@given(st.binary(max_size=200))
def test_no_bytes_keep_the_book_from_opening(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed-speeds.json"
    path.write_bytes(content)
    assert SpeedCache(path).get("a" * 64) is None


def test_a_disk_that_takes_nothing_costs_no_answer(tmp_path: Path) -> None:
    book = SpeedCache(tmp_path / "missing" / "speeds.json")
    book.keep("a" * 64, SPEED)
    assert book.get("a" * 64) == SPEED


def test_what_is_far_off() -> None:
    assert not far_off(1.0, 1.9)
    assert not far_off(1.9, 1.0)
    assert far_off(1.0, 2.1)
    assert far_off(2.1, 1.0)
    assert far_off(0.0, 0.1)
