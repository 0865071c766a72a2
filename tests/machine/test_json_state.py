"""Tests of the node's saved state: it is restored, and a damaged or oversized one counts as empty."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.machine.json_state import read_json, read_json_or_default


class Kept(msgspec.Struct, frozen=True):
    """Something with a beginning."""

    number: int = 7
    name: str = ""


def test_what_is_whole_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "kept.json"
    assert read_json_or_default(file, Kept, "a number") == Kept(7)  # not there yet: nothing to tell
    assert not caplog.records
    file.write_bytes(msgspec.json.encode(Kept(3)))
    assert read_json_or_default(file, Kept, "a number") == Kept(3)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"number": "3"}', b'{"name": "\xff"}', b"[" * 100_000, b'{"number": 3}' + b" " * 20],
    ids=range(7),
)  # fmt: skip
def test_what_is_damaged_is_an_empty_one_and_is_logged(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "kept.json"
    most, heard = 30 if content.endswith(b" ") else 1 << 20, list[Path]()
    for kind, empty in ((Kept, Kept(7)), (dict[str, Kept], {})):
        file.write_bytes(content)
        assert read_json_or_default(file, kind, "a number", most, heard.append) == empty
        assert not file.exists(), "the next one that is written takes no place of it"
        assert heard.pop().read_bytes() == content
    assert caplog.records[0].message.startswith(f"a number in {file}")


def test_a_folder_in_its_place_is_passed_over_too(tmp_path: Path) -> None:
    (tmp_path / "kept.json").mkdir()
    assert read_json_or_default(tmp_path / "kept.json", Kept, "a number") == Kept(7)
    assert (tmp_path / "kept.damaged").is_dir()


def test_no_more_is_read_than_can_be_kept(tmp_path: Path) -> None:
    """The limit is exact to the byte: a state of the maximum size is still restored."""
    file = tmp_path / "kept.json"
    file.write_bytes(b'{"number": 3}')
    assert read_json(file, Kept, 13) == Kept(3)
    with pytest.raises(ValueError, match="longer than 12 bytes"):
        read_json(file, Kept, 12)
