"""Numbers that a file may list for each layer: a list is looked at only where it can be one of those."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from app.catalog.families.layer_metadata import MAX_LAYERS, number
from app.catalog.gguf import model_reader, tensor_types
from app.catalog.gguf.gguf_file import Header, Scalar, read_header
from app.core.errors import BadInput
from tests.catalog.raw import U32, array, small
from tests.catalog.raw import number as one

NAME = "attention.sliding_window"
EPSILON, USED = "xverse.attention.layer_norm_rms_epsilon", "xverse.expert_used_count"
F64, U64 = 12, 10


def header(folder: Path, *more: bytes, architecture: str = "llama") -> Header:
    path = folder / "small.gguf"
    path.write_bytes(small(more=list(more), architecture=architecture).bytes())
    return read_header(path)


def listed(key: str, letter: str, kind: int, *values: float) -> bytes:
    return array(key, kind, len(values), struct.pack(f"<{len(values)}{letter}", *values))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([], 7),
        ([one(f"llama.{NAME}", 3)], 3),
        ([listed(f"llama.{NAME}", "I", U32, 3, 3)], 3),
        ([listed(f"llama.{NAME}", "I", U32, 3, 4)], 7),
        ([listed(f"llama.{NAME}", "I", U32)], 7),
        ([listed(f"llama.{NAME}", "I", U32, *[3] * MAX_LAYERS)], 3),
        ([listed(f"llama.{NAME}", "I", U32, *[3] * (MAX_LAYERS + 1))], 7),
        ([listed(f"llama.{NAME}", "Q", U64, 1 << 40, 1 << 40)], 7),
        ([listed(f"llama.{NAME}", "?", tensor_types.BOOL, True, True)], 7),
        ([listed(f"llama.{NAME}", "f", tensor_types.F32_VALUE, 3.0, 3.0)], 7),
    ],
    ids=["none", "one", "alike", "several", "empty", "as many as layers may be", "too many", "too large", "yes",
         "broken"],
)  # fmt: skip
def test_a_number_is_what_is_said_of_every_layer(tmp_path: Path, more: list[bytes], expected: int) -> None:
    assert number(header(tmp_path, *more), NAME, 7) == expected
    assert type(number(header(tmp_path, *more), NAME, 7)) is int


@pytest.mark.parametrize(
    ("key", "letter", "kind", "value"),
    [(EPSILON, "f", tensor_types.F32_VALUE, 1e-5), (EPSILON, "d", F64, 1e-5), (USED, "I", U32, 2)],
)
def test_a_list_longer_than_any_model_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, letter: str, kind: int, value: float
) -> None:
    """Includes an unknown family, whose lists no other check has counted before."""
    experts = one("xverse.expert_count", 8)
    fits = listed(key, letter, kind, *[value] * MAX_LAYERS)
    model_reader.check_finite(header(tmp_path, experts, fits, architecture="xverse"), "xverse")
    long = listed(key, letter, kind, *[value] * (MAX_LAYERS + 1))
    result = header(tmp_path, experts, long, architecture="xverse")
    read: list[str] = []
    plain = Header.items

    def items(self: Header, of: str) -> tuple[Scalar, ...]:
        read.append(of)
        return plain(self, of)

    monkeypatch.setattr(Header, "items", items)
    with pytest.raises(BadInput, match="gguf_odd"):
        model_reader.check_finite(result, "xverse")
    assert key not in read
