"""Hidden states survive the wire as well as their number type promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.verification import rows_of
from backends.contract import NumberFormat, StageError, n_blocks, n_outliers
from backends.hidden_state_codec import Rows, decode_hidden, decode_ids, encode_hidden, encode_ids

WIRE = [NumberFormat.F32, NumberFormat.F16, NumberFormat.Q8]
LARGEST = float(np.finfo(np.float32).max)


def rows(n: int, width: int, seed: int = 0, scale: float = 1.0) -> Rows:
    chance = np.random.default_rng(seed)
    return (scale * chance.standard_normal((n, width))).astype(np.float32)


def there_and_back(sent: Rows, number: NumberFormat) -> Rows:
    return decode_hidden(encode_hidden(sent, number), sent.shape[1], number)


@given(st.integers(1, 9), st.integers(1, 200), st.integers(0, 99), st.sampled_from([1e-6, 1, 1e3]))
def test_each_type_keeps_its_precision(n: int, width: int, seed: int, scale: float) -> None:
    sent = rows(n, width, seed, scale)
    assert np.array_equal(there_and_back(sent, NumberFormat.F32), sent)
    halves = sent.astype(np.float16).astype(np.float32)
    assert np.array_equal(there_and_back(sent, NumberFormat.F16), halves)
    eighths = there_and_back(sent, NumberFormat.Q8)
    assert (np.abs(eighths - sent) <= np.abs(sent).max(axis=1, keepdims=True) / 250).all()


@given(st.integers(0, 99), st.floats(65519, LARGEST, width=32))
def test_f16_holds_a_massive_activation_and_leaves_the_other_rows_as_they_are(seed: int, massive: float) -> None:
    sent = rows(3, 64, seed)
    sent[1, 5] = massive
    there = there_and_back(sent, NumberFormat.F16)
    assert np.array_equal(there[::2], sent[::2].astype(np.float16).astype(np.float32))
    assert abs(there[1, 5] - massive) <= 2**-11 * massive


@pytest.mark.parametrize("number", WIRE)
@pytest.mark.parametrize(
    "value", [65504.0, 65519.996, 65520.0, 65535.0, 65536.0, 131040.0, 100975.0, LARGEST, -LARGEST]
)
def test_no_finite_value_fails(number: NumberFormat, value: float) -> None:
    sent = rows(2, 40)
    sent[0, 3] = value
    there = there_and_back(sent, number)
    assert abs(there[0, 3] - sent[0, 3]) <= 2**-11 * abs(sent[0, 3])
    sent[0] = value  # as many as there are
    there = there_and_back(sent, number)
    assert np.allclose(there[0], sent[0], rtol=0.01)


def test_8_bits_carry_the_massive_activations_exactly_and_the_rest_to_a_hundredth() -> None:
    """One row of what trained models have: two values of 22,000 among typical ones of 2."""
    sent = rows(4, 576, seed=7, scale=2.0)
    sent[:, [11, 300]] = [22478.0, -9021.5]
    there = there_and_back(sent, NumberFormat.Q8)
    assert np.array_equal(there[:, [11, 300]], sent[:, [11, 300]])
    rest = np.delete(sent, [11, 300], axis=1)
    error = np.delete(there, [11, 300], axis=1) - rest
    assert np.sqrt((error**2).mean() / (rest**2).mean()) < 0.01


@pytest.mark.parametrize("width", [576, 640, 896, 2048, 4096, 8192])
def test_the_bytes_of_a_value_are_within_the_promise(width: int) -> None:
    assert NumberFormat.F16.row_bytes(width) / width <= 2.02
    assert NumberFormat.Q8.row_bytes(width) / width <= 1.15


@pytest.mark.parametrize("number", WIRE)
@pytest.mark.parametrize("width", [1, 10, 31, 32, 33, 150])
def test_a_payload_has_the_agreed_length(number: NumberFormat, width: int) -> None:
    assert len(encode_hidden(rows(3, width), number)) == 3 * number.row_bytes(width)
    assert np.array_equal(there_and_back(0 * rows(2, width), number), np.zeros((2, width)))


@pytest.mark.parametrize("number", WIRE)
@pytest.mark.parametrize("massive", [0.0, 1e5])
def test_the_check_of_lenders_reads_rows_as_the_stages_do(number: NumberFormat, massive: float) -> None:
    sent = rows(3, 100)
    sent[1, 9] += massive
    wire = bytes(encode_hidden(sent, number))
    assert np.allclose(rows_of(wire, 100, number), decode_hidden(wire, 100, number), rtol=1e-6)


def test_f32_is_sent_and_received_without_a_copy() -> None:
    sent = rows(2, 8)
    assert np.shares_memory(sent, decode_hidden(encode_hidden(sent, NumberFormat.F32), 8, NumberFormat.F32))


@pytest.mark.parametrize("number", WIRE)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused_at_both_ends(number: NumberFormat, bad: float) -> None:
    sent = rows(2, 8)
    sent[1, 3] = bad
    with pytest.raises(StageError):
        encode_hidden(sent, number)
    good = bytearray(encode_hidden(rows(2, 8), number))
    row = number.row_bytes(8)  # of the second: the fourth value, in 8 bits the outlier
    at, kind = {NumberFormat.F32: (12, "<f4"), NumberFormat.F16: (8, "<f2"), NumberFormat.Q8: (2, "<f4")}[number]
    raw = np.array([bad], dtype=kind).tobytes()
    good[row + at : row + at + len(raw)] = raw
    with pytest.raises(StageError):
        decode_hidden(good, 8, number)


def test_an_exponent_that_overflows_is_refused() -> None:
    payload = np.array([30000], dtype="<i2").tobytes() + np.ones(4, dtype="<f2").tobytes()
    with pytest.raises(StageError, match="finite"):
        decode_hidden(payload, 4, NumberFormat.F16)
    assert not np.isfinite(rows_of(payload, 4, NumberFormat.F16)).any()


@pytest.mark.parametrize("half", [0x7F80, 0x7FC0, 0x7F7F])
def test_a_scale_that_is_not_finite_or_overflows_is_refused(half: int) -> None:
    payload = bytearray(encode_hidden(rows(1, 40), NumberFormat.Q8))
    at = 6 * n_outliers(40)
    payload[at : at + 2 * n_blocks(40)] = half.to_bytes(2, "little") * n_blocks(40)
    with pytest.raises(StageError, match="finite"):
        decode_hidden(payload, 40, NumberFormat.Q8)


def test_a_place_beyond_the_row_is_refused() -> None:
    payload = bytearray(encode_hidden(rows(2, 40), NumberFormat.Q8))
    payload[0:2] = (40).to_bytes(2, "little")
    with pytest.raises(StageError, match="place"):
        decode_hidden(payload, 40, NumberFormat.Q8)
    assert not np.isfinite(rows_of(bytes(payload), 40, NumberFormat.Q8)[0]).any()


@pytest.mark.parametrize("number", WIRE)
def test_half_a_row_is_refused(number: NumberFormat) -> None:
    with pytest.raises(StageError):
        decode_hidden(bytes(number.row_bytes(4) + 1), 4, number)


def test_ids_are_no_hidden_states() -> None:
    assert decode_ids(encode_ids([1, -2, 70000])).tolist() == [1, -2, 70000]
    with pytest.raises(StageError):
        encode_hidden(rows(1, 1), NumberFormat.IDS)
    with pytest.raises(StageError):
        decode_hidden(bytes(4), 1, NumberFormat.IDS)
