"""An older version leaves alone the data that a newer one has written."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import __version__
from app.core.errors import AppError, BadInput, Refused
from app.core.reasons import said
from app.machine import data_format
from app.machine.data_format import FILE, claim
from app.machine.paths import Home
from app.machine.settings import NodeOptions
from app.node import start


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.at(tmp_path / "home").create()


def files_of(home: Home) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}


def test_the_first_version_of_a_format_is_noted_and_later_ones_change_nothing(home: Home) -> None:
    claim(home, "1.0", 1)
    before = files_of(home)
    claim(home, "1.1", 1)
    assert files_of(home) == before
    claim(home, "2.0", 2)
    with pytest.raises(Refused) as error:
        claim(home, "1.1", 1)
    assert said(error.value.reason) == (
        f"The data in {home.root} was written by Poolhouse 2.0 or newer, and version 1.1 can't read it, so nothing was "
        "changed. Start or install the newer version."
    )


def test_a_node_that_finds_newer_data_refuses_in_good_order_and_touches_nothing(home: Home) -> None:
    claim(home, "9.0", data_format.FORMAT + 1)
    home.settings_file.write_text('{"name": 7, "of": "the future"}', "utf-8")
    (home.root / "journal.json").write_text("[[]]", "utf-8")
    before = files_of(home)
    with pytest.raises(AppError) as error:
        start.run(NodeOptions(home=home.root))
    assert error.value.reason.code == "data_newer"
    assert error.value.reason.facts["own"] == __version__
    home.lock_file.unlink(missing_ok=True)
    assert files_of(home) == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "two"}', b"\xff" * (2 << 20)])
def test_a_damaged_note_forbids_nothing(home: Home, content: bytes) -> None:
    (home.root / FILE).write_bytes(content)
    claim(home, "1.0", 1)
    with pytest.raises(Refused):
        claim(home, "0.9", 0)


def test_a_home_in_which_nothing_can_be_written_is_told(home: Home) -> None:
    (home.root / FILE).mkdir()
    with pytest.raises(BadInput, match="home_unusable"):
        claim(home, "1.0", 1)
