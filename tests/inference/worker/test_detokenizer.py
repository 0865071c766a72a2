"""No character is split, and no stop string leaks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.inference.worker.tokenizer import Detokenizer, StopFinder

PIECES = [bytes([byte]) for byte in range(256)] + ["é".encode(), "€".encode(), "🏊".encode()[:3]]


@given(st.lists(st.binary(max_size=5), max_size=12))
def test_any_bytes_in_any_pieces_give_the_text_of_the_whole(pieces: list[bytes]) -> None:
    detokenizer = Detokenizer(pieces)
    text = "".join(detokenizer.push(token) for token in range(len(pieces))) + detokenizer.flush()
    assert text == b"".join(pieces).decode("utf-8", "replace")


@given(st.text(), st.integers(1, 4))
def test_a_character_is_told_when_it_is_whole(text: str, size: int) -> None:
    data = text.encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    detokenizer = Detokenizer(pieces)
    output = ""
    for token in range(len(pieces)):
        output += detokenizer.push(token)
        assert text.startswith(output)
        assert len(data[: size * (token + 1)]) - len(output.encode()) < 4
    assert output == text
    assert detokenizer.flush() == ""


def test_half_a_character_at_the_end_is_replaced() -> None:
    detokenizer = Detokenizer(PIECES)
    assert detokenizer.push(258) == ""
    assert detokenizer.flush() == "\N{REPLACEMENT CHARACTER}"


def test_tokens_beyond_the_vocabulary_have_no_text() -> None:
    assert Detokenizer(PIECES).push(9999) == Detokenizer(PIECES).push(-1) == ""


@given(st.text("ab.", max_size=30), st.text("ab.", min_size=1, max_size=4), st.data())
def test_a_stop_string_is_found_across_any_borders(text: str, stop: str, data: st.DataObject) -> None:
    finder, output, rest = StopFinder([stop]), "", text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        output += finder.push(rest[:size])
        rest = rest[size:]
        assert stop not in output
    output += finder.flush()
    assert output == text.split(stop, maxsplit=1)[0]
    assert finder.found == (stop in text)


def test_the_first_of_several_stops_counts_and_nothing_comes_after_it() -> None:
    finder = StopFinder(["END", "\n"])
    assert finder.push("a E") == "a "
    assert finder.push("N") == ""
    assert finder.push("X\nEND") == "ENX"
    assert finder.found
    assert finder.push("more") == finder.flush() == ""


def test_without_stops_everything_passes_at_once() -> None:
    assert StopFinder([]).push("abc") == "abc"
    assert StopFinder([""]).push("abc") == "abc"
