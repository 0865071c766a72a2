"""`poolhouse folder`: where models are, another folder, and the move as it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cli.commands import model_commands
from tests.cli.conftest import Said
from tests.cli.fake_node import FakeNode, has_all_of

Json = dict[str, Any]
HERE: Json = {
    "folder": "/media/large", "default": False, "reason": None, "elsewhere": [], "move": None,
    "stopped": None, "free_bytes": 3 << 30,
}  # fmt: skip
MOVING: Json = HERE | {"move": {"name": "tiny", "done_bytes": 1, "total_bytes": 2}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_commands, "POLL_SECONDS", 0.0)


def test_the_folder_is_shown_with_what_lies_elsewhere(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]
) -> None:
    away = {"folder": "/x", "models": 2, "bytes": 1, "reason": "/x cannot be reached."}
    near = {"folder": "/small", "models": 1, "bytes": 1 << 30, "reason": None}
    answering({("GET", "/folder"): HERE | {"elsewhere": [near, away]}})
    assert poolhouse("folder").out.splitlines() == [
        "Models are kept in /media/large. 3.0 GiB is free there.",
        "Still in /small: 1 model (1.0 GiB). --move moves them.",
        "/x cannot be reached.",
    ]
    assert has_all_of(poolhouse("folder", "--json").json["elsewhere"], [near, away])


def test_another_one_is_chosen_and_the_move_followed(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode], tmp_path: Path
) -> None:
    later: Iterator[Json] = iter([MOVING, HERE])
    node = answering({("POST", "/folder"): MOVING, ("GET", "/folder"): lambda _: next(later)})
    said = poolhouse("folder", str(tmp_path), "--move")
    assert (said.code, said.err) == (0, "Moving models…\n")
    body = {"path": str(tmp_path), "move": True, "new": False}
    assert node.asked[0] == ("POST", "/folder", body)


def test_a_mistyped_folder_is_not_made(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode], tmp_path: Path
) -> None:
    node = answering({("POST", "/folder"): HERE})
    there = tmp_path / "larje"
    said = poolhouse("folder", str(there))
    assert (said.code, said.err) == (
        1, f"The folder {there} does not exist. Check its name, or add --create to create it.\n",
    )  # fmt: skip
    below = poolhouse("folder", str(there / "models" / "mine"))
    assert below.err.startswith(
        f"The folder {there} does not exist. Check its name, or create it yourself, because --create "
    )
    assert not node.asked
    assert poolhouse("folder", str(there), "--create").code == 0
    assert node.asked[0][2] == {"path": str(there), "move": False, "new": True}
    assert poolhouse("folder", "--create").code == 2


def test_where_files_land_in_a_folder_that_is_not_empty_is_said(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode], tmp_path: Path
) -> None:
    inside = str(tmp_path / "Poolhouse models")
    answering({("POST", "/folder"): HERE | {"folder": inside}})
    said = " ".join(poolhouse("folder", str(tmp_path)).out.split())  # a long path is wrapped
    assert said.startswith("Models are kept in ")
    assert said.endswith("They have their own folder inside the chosen one, which is not empty.")
    answering({("POST", "/folder"): HERE | {"folder": str(tmp_path)}})
    assert "their own folder" not in poolhouse("folder", str(tmp_path)).out


def test_a_disk_where_nothing_can_be_downloaded_is_said(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode], tmp_path: Path
) -> None:
    answering({("POST", "/folder"): HERE | {"room_bytes": 0}})
    assert poolhouse("folder", str(tmp_path)).out.splitlines() == [
        "Models are kept in /media/large. 3.0 GiB is free there.",
        "Poolhouse leaves 5 GiB free there, so nothing can be downloaded now.",
    ]


def test_where_nothing_is_to_be_moved_nothing_is_said_of_it(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode], tmp_path: Path
) -> None:
    none = HERE | {"move": {"name": "", "done_bytes": 0, "total_bytes": 0}}
    answering({("POST", "/folder"): none, ("GET", "/folder"): HERE})
    assert poolhouse("folder", str(tmp_path)).err == ""


def test_back_to_the_own_folder_and_a_move_that_ended_early(
    poolhouse: Callable[..., Said], answering: Callable[..., FakeNode]
) -> None:
    node = answering({("POST", "/folder"): HERE, ("POST", "/folder/move"): HERE | {"stopped": "The disk is full."}})
    assert poolhouse("folder", "--default").code == 0
    assert node.asked[0][2] == {"path": "", "move": False, "new": False}
    said = poolhouse("folder", "--move")
    assert (said.code, said.err) == (1, "The move stopped: The disk is full.\n")
    assert poolhouse("folder", "/x", "--default").code == 2
