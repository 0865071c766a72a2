"""Starts the node anew, whichever version it is: it ends in order, and the look-out starts the next one."""

from __future__ import annotations

from app.gui.app.app_context import AppContext


def restart(services: AppContext) -> None:
    """Running answers end; what others compute here is handed back first."""
    client, pool = services.client, services.pool
    followed = client.endpoint
    pool.ends = True
    client.endpoint = followed or services.launcher.find()  # another version's is not followed
    client.post("/shutdown", None, lambda _: None, lambda _: pool.try_again())
    client.endpoint = followed
