"""Hidden states survive the wire as well as their number type promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.contract import Number, StageError
from backends.numbers import Rows, from_wire, ids_from_wire, ids_to_wire, to_wire

WIRE = [Number.F32, Number.F16, Number.Q8]


def rows(n: int, width: int, seed: int = 0, scale: float = 1.0) -> Rows:
    chance = np.random.default_rng(seed)
    return (scale * chance.standard_normal((n, width))).astype(np.float32)


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 99), st.sampled_from([1e-6, 1, 1e3]))
def test_each_type_keeps_its_precision(n: int, width: int, seed: int, scale: float) -> None:
    sent = rows(n, width, seed, scale)
    assert np.array_equal(from_wire(to_wire(sent, Number.F32), width, Number.F32), sent)
    halves = from_wire(to_wire(sent, Number.F16), width, Number.F16)
    assert np.array_equal(halves, sent.astype(np.float16).astype(np.float32))
    eighths = from_wire(to_wire(sent, Number.Q8), width, Number.Q8)
    assert (np.abs(eighths - sent) <= np.abs(sent).max(axis=1, keepdims=True) / 253).all()


@pytest.mark.parametrize("number", WIRE)
def test_a_payload_has_the_agreed_length(number: Number) -> None:
    assert len(to_wire(rows(3, 10), number)) == 3 * number.row_bytes(10)
    assert np.array_equal(from_wire(to_wire(0 * rows(2, 4), number), 4, number), np.zeros((2, 4)))


def test_f32_is_sent_and_received_without_a_copy() -> None:
    sent = rows(2, 8)
    assert np.shares_memory(sent, from_wire(to_wire(sent, Number.F32), 8, Number.F32))


@pytest.mark.parametrize("number", WIRE)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused_at_both_ends(number: Number, bad: float) -> None:
    sent = rows(2, 8)
    sent[1, 3] = bad
    with pytest.raises(StageError):
        to_wire(sent, number)
    good = bytearray(to_wire(rows(2, 8), number))
    at, kind = {Number.F32: (44, "<f4"), Number.F16: (22, "<f2"), Number.Q8: (12, "<f4")}[number]
    raw = np.array([bad], dtype=kind).tobytes()
    good[at : at + len(raw)] = raw
    with pytest.raises(StageError):
        from_wire(good, 8, number)


def test_what_f16_cannot_hold_is_refused() -> None:
    with pytest.raises(StageError, match="f16"):
        to_wire(np.array([[70000.0]], dtype=np.float32), Number.F16)


def test_a_scale_that_overflows_is_refused() -> None:
    payload = np.array([3e38], dtype="<f4").tobytes() + bytes([127] * 4)
    with pytest.raises(StageError):
        from_wire(payload, 4, Number.Q8)


@pytest.mark.parametrize("number", WIRE)
def test_half_a_row_is_refused(number: Number) -> None:
    with pytest.raises(StageError):
        from_wire(bytes(number.row_bytes(4) + 1), 4, number)


def test_ids_are_no_hidden_states() -> None:
    assert ids_from_wire(ids_to_wire([1, -2, 70000])).tolist() == [1, -2, 70000]
    with pytest.raises(StageError):
        to_wire(rows(1, 1), Number.IDS)
    with pytest.raises(StageError):
        from_wire(bytes(4), 1, Number.IDS)
