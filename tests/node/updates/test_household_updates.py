"""Two machines: an admin's user asks the other's owner to update, who decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import AppError
from tests.node.pool import TestNode, paired

Json = dict[str, Any]
RELEASE = {
    "version": "99.1", "protocol": 7, "oldest_protocol": 7,
    "layers": [{"name": "app", "hash": "a" * 64, "n_bytes": 1}],
}  # fmt: skip


def know_newer(home: Path) -> None:
    """Let a machine have seen a newer version."""
    (home / "updates.json").write_text(json.dumps({"last_contact": 1.0, "release": RELEASE}))


def asked(node: TestNode) -> tuple[str, str]:
    state = node.control("GET", "/updates")
    return state["asked_by"], state["asked_version"]


def test_an_owner_is_asked_and_decides(tmp_path: Path) -> None:
    with paired(tmp_path, "den", "attic") as (den, attic):
        assert den.control("POST", "/updates/ask")["machines"] == [{"name": "attic", "answer": "settled"}]
        assert asked(attic) == ("", "")  # it has the newest version that den knows
        know_newer(tmp_path / "den")
        answer = den.control("POST", "/updates/ask")
        assert (answer["version"], answer["machines"]) == ("99.1", [{"name": "attic", "answer": "asked"}])
        assert asked(attic) == ("den", "99.1")
        entries = json.dumps(attic.control("GET", "/journal"))
        assert "log_node_update_asked" in entries
        assert attic.control("DELETE", "/updates/asked")["asked_by"] == ""
        assert den.control("POST", "/updates/ask")["machines"] == [{"name": "attic", "answer": "settled"}]
        assert asked(attic) == ("", "")  # once is enough
        with pytest.raises(AppError):  # nothing was installed, and this copy cannot be
            attic.control("POST", "/updates/restart")


def test_only_an_admin_may_ask(tmp_path: Path) -> None:
    with paired(tmp_path, "den", "attic") as (den, attic):
        know_newer(tmp_path / "attic")
        machines = attic.control("POST", "/updates/ask")["machines"]
        assert machines == [{"name": "den", "answer": ""}]
        assert asked(den) == ("", "")
