"""The pre-check: each limit has its sentence, and no damaged file gets further than a sentence."""

from __future__ import annotations

import os
import random
import struct
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.catalog.gguf.gguf_file import MAX_HEADER_BYTES, read_header
from app.catalog.gguf.model_reader import model_of
from app.core.errors import AppError, BadInput
from app.core.reasons import said
from testbed import tiny
from tests.catalog.raw import Raw, array, entry, number, small, string, tensor, text

ONE = [tensor("a", (8,))]
LONG = (1 << 24) + 1


def refused(path: Path, data: bytes) -> str:
    """The code of the error, whose sentence can be said."""
    path.write_bytes(data)
    with pytest.raises(BadInput) as error:
        read_header(path)
    assert said(error.value)
    return error.value.reason.code


BROKEN = {
    "empty": (b"", "gguf_not"),
    "short magic": (b"GG", "gguf_not"),
    "other file": (b"PK\x03\x04" + bytes(100), "gguf_not"),
    "version 1": (Raw(version=1).bytes(), "gguf_version"),
    "version 4": (Raw(version=4).bytes(), "gguf_version"),
    "big-endian": (Raw(version=3 << 24).bytes(), "gguf_big_endian"),
    "only a magic": (b"GGUF\x03\0\0\0", "gguf_truncated"),
    "too many tensors": (Raw(n_tensors=65_537).bytes(), "gguf_limit"),
    "negative tensors": (Raw(n_tensors=(1 << 64) - 1).bytes(), "gguf_limit"),
    "too many entries": (Raw(n_entries=65_537).bytes(), "gguf_limit"),
    "missing entries": (Raw(n_entries=5).bytes()[:24], "gguf_truncated"),
    "long key": (Raw([number("k" * 65_537, 1)]).bytes(), "gguf_limit"),
    "empty key": (Raw([number("", 1)]).bytes(), "gguf_name"),
    "key of no text": (Raw([entry(b"\xff\xfe", 4, bytes(4))]).bytes(), "gguf_name"),
    "key twice": (Raw([number("a", 1), number("a", 2)]).bytes(), "gguf_repeated"),
    "long text": (Raw([entry("a", 8, struct.pack("<Q", LONG))]).bytes(), "gguf_limit"),
    "endless text": (Raw([entry("a", 8, b"\xff" * 8)]).bytes(), "gguf_limit"),
    "text past the end": (Raw([entry("a", 8, struct.pack("<Q", 999))]).bytes(), "gguf_truncated"),
    "long array": (Raw([array("a", 4, LONG, b"")]).bytes(), "gguf_limit"),
    "array past the end": (Raw([array("a", 4, 1000, b"")]).bytes(), "gguf_truncated"),
    "texts past the end": (Raw([array("a", 8, 1000, text("x"))]).bytes(), "gguf_truncated"),
    "nested array": (Raw([array("a", 9, 1, bytes(12))]).bytes(), "gguf_type"),
    "unknown type": (Raw([entry("a", 13, bytes(8))]).bytes(), "gguf_type"),
    "alignment 3": (Raw([number("general.alignment", 3)]).bytes(), "gguf_alignment"),
    "alignment 0": (Raw([number("general.alignment", 0)]).bytes(), "gguf_alignment"),
    "huge alignment": (Raw([number("general.alignment", 1 << 31)]).bytes(), "gguf_alignment"),
    "alignment of text": (Raw([string("general.alignment", "32")]).bytes(), "gguf_alignment"),
    "tensor twice": (Raw(tensors=[*ONE, tensor("a", (8,), offset=32)], data=bytes(64)).bytes(), "gguf_repeated"),
    "long tensor name": (Raw(tensors=[tensor("a" * 64, (8,))]).bytes(), "gguf_limit"),
    "no dimensions": (Raw(tensors=[tensor("a", ())]).bytes(), "gguf_dimensions"),
    "5 dimensions": (Raw(tensors=[tensor("a", (1,) * 5)]).bytes(), "gguf_dimensions"),
    "endless dimensions": (Raw(tensors=[tensor("a", (), dims=2**32 - 1)]).bytes(), "gguf_dimensions"),
    "tensor type 4": (Raw(tensors=[tensor("a", (8,), kind=4)]).bytes(), "gguf_type"),
    "tensor type 999": (Raw(tensors=[tensor("a", (8,), kind=999)]).bytes(), "gguf_type"),
    "broken block": (Raw(tensors=[tensor("a", (8,), kind=12)]).bytes(), "gguf_shape"),
    "empty tensor": (Raw(tensors=[tensor("a", (0,))]).bytes(), "gguf_shape"),
    "tensor past the end": (Raw(tensors=ONE, data=bytes(31)).bytes(), "gguf_truncated"),
    "endless tensor": (Raw(tensors=[tensor("a", (2**63, 2**63))]).bytes(), "gguf_truncated"),
    "offset past the end": (Raw(tensors=[tensor("a", (8,), offset=2**63)], data=bytes(64)).bytes(), "gguf_truncated"),
    "gap": (Raw(tensors=[tensor("a", (8,), offset=32)], data=bytes(64)).bytes(), "gguf_offset"),
    "overlap": (Raw(tensors=[*ONE, tensor("b", (8,), offset=0)], data=bytes(64)).bytes(), "gguf_offset"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_each_limit_has_its_sentence(tmp_path: Path, case: str) -> None:
    data, code = BROKEN[case]
    assert refused(tmp_path / "bad.gguf", data) == code


def test_no_file_and_no_right_to_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        read_header(tmp_path / "none.gguf")
    assert error.value.reason.code == "file_missing"
    with pytest.raises(BadInput) as error:
        read_header(tmp_path)
    assert error.value.reason.code == "file_unreadable"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert refused_at(tmp_path / "pipe.gguf") == "file_unreadable"


@pytest.mark.parametrize("name", ["big-00001-of-00003.gguf", "big-00002-of-00003.GGUF"])
def test_one_part_of_many_misses_the_others(tmp_path: Path, name: str) -> None:
    assert refused(tmp_path / name, small().bytes()) == "file_missing"


def test_a_model_in_one_part_of_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "big-00001-of-00001.gguf"
    path.write_bytes(small().bytes())
    assert len(read_header(path).tensors) == 4


def test_both_versions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "small.gguf"
    for version in (2, 3):
        raw = small()
        raw.version = version
        path.write_bytes(raw.bytes())
        assert read_header(path).version == version


def test_an_oversized_header_is_not_read(tmp_path: Path) -> None:
    """The file claims strings of 16 MiB each, and is sparse: what is read would cost memory."""
    path = tmp_path / "fat.gguf"
    blob = struct.pack("<Q", 16 << 20)
    with path.open("wb") as file:
        file.write(Raw(n_entries=1).bytes()[:24] + array("a", 8, 64, b""))
        for _ in range(17):
            file.write(blob)
            file.seek(16 << 20, 1)
        file.write(b"\0")
    assert path.stat().st_size > MAX_HEADER_BYTES
    assert refused_at(path) == "gguf_limit"


def refused_at(path: Path) -> str:
    with pytest.raises(BadInput) as error:
        read_header(path)
    return error.value.reason.code


def test_a_long_header_of_small_items_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.gguf"
    with path.open("wb") as file:
        file.write(Raw(n_entries=3).bytes()[:24])
        for name in ("a", "b", "c"):
            file.write(array(name, 10, 1 << 24, b""))
            file.seek(8 << 24, 1)
        file.write(b"\0")
    assert refused_at(path) == "gguf_limit"


def test_a_large_vocabulary_is_read_in_a_second(tmp_path: Path) -> None:
    tokens = b"".join(text(f"token{index}") for index in range(128_256))
    merges = b"".join(text(f"tok en{index}") for index in range(280_000))
    more = [array("tokenizer.ggml.merges", 8, 280_000, merges), array("x", 8, 128_256, tokens)]
    path = tmp_path / "wide.gguf"
    path.write_bytes(small(more=more).bytes())
    start = time.process_time()
    header = read_header(path)
    assert time.process_time() - start < 1.0
    assert header.items("x")[128_255] == "token128255"


def test_300_flips_and_cuts_are_refused_or_harmless(tmp_path: Path) -> None:
    """Nothing but an AppError comes out of a damaged header, and that soon."""
    whole = tiny.llama(tmp_path / "tiny.gguf", layers=2).read_bytes()
    n_header = len(read_header(tmp_path / "tiny.gguf").raw)
    chance = random.Random(11)
    path = tmp_path / "bad.gguf"
    for turn in range(300):
        data = bytearray(whole)
        if turn % 3 == 0:
            del data[chance.randrange(len(data)) :]
        else:
            data[chance.randrange(n_header)] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            model_of(read_header(path), "bad", "0" * 64)
            assert len(data) == len(whole), "a file cut short was accepted"
        except AppError as error:
            said(error)


@settings(max_examples=max(200, settings().max_examples), deadline=1000, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=400), version=st.sampled_from([2, 3]))
def test_garbage_is_refused_or_harmless(tmp_path: Path, data: bytes, version: int) -> None:
    path = tmp_path / "garbage.gguf"
    counts = struct.pack("<4sIQQ", b"GGUF", version, data[0] % 4 if data else 0, len(data) % 5)
    path.write_bytes(counts + data)
    try:
        model_of(read_header(path), "garbage", "0" * 64)
    except AppError as error:
        said(error)
