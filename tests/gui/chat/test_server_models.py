"""The models of other servers in the chat's lists: by their server's name, and for no guest."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QApplication

from app.gui.chat.chat_settings import ModelNames, shown_name
from tests.gui.typed_api import pool_of

SERVERS = [{"name": "lab", "models": ["smol", "big"]}]


def test_they_are_listed_with_their_server_and_called_another_server(qapp: QApplication) -> None:
    client: Any = None
    pool = pool_of({"servers": SERVERS})
    names = ModelNames(client, pool, lambda: None)
    assert names.names == ["smol@lab", "big@lab"]
    assert names.shown_name("smol@lab") == "smol on lab, another server"
    assert shown_name(pool.now, "smol@den") == "smol on den"  # a computer of the household
    guest = ModelNames(client, pool_of({"servers": SERVERS, "hosts": ["den"]}), lambda: None)
    assert guest.names == []
