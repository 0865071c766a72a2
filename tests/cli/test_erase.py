"""`poolhouse erase`: asks, deletes, says how much, and does nothing beside a running node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.machine.paths import Home


@pytest.fixture
def kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("POOLHOUSE_KEYSTORE", "file")
    made = Home.at(home).create()
    (made.identity / "identity.pem").write_bytes(b"m" * 2048)
    return made


def test_it_deletes_what_there_is(poolhouse: Any, kept: Home) -> None:
    said = poolhouse("erase", "--yes", "--json")
    assert said.json == {"erased": str(kept.root), "bytes": 2048, "left": []}
    assert not kept.root.exists()


def test_it_says_how_much(poolhouse: Any, kept: Home) -> None:
    said = poolhouse("erase", "--yes")
    assert "".join(said.out.split()).startswith("2.0KiBdeletedin")


def test_where_nobody_agrees_nothing_goes(poolhouse: Any, kept: Home) -> None:
    assert poolhouse("erase").code == 1
    assert (kept.identity / "identity.pem").exists()


def test_beside_a_running_node_nothing_goes(poolhouse: Any, kept: Home, answering: Any) -> None:
    answering({})
    said = poolhouse("erase", "--yes")
    assert said.code == 1
    assert "Quit Poolhouse first" in said.err
    assert (kept.identity / "identity.pem").exists()


def test_another_folder_is_refused(poolhouse: Any, home: Path) -> None:
    (home / "models").mkdir(parents=True)
    for consent in (("--yes",), ()):  # without it too: nobody is asked about what is not ours
        said = poolhouse("erase", *consent)
        assert "not a Poolhouse data folder" in said.err
    assert (home / "models").is_dir()
