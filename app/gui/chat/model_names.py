"""The models that a chat may be asked of, and how much they read: this machine's own; a guest's are those of its
hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QObject

from app.gui.api.node_client import Call, NodeClient
from app.gui.api.node_state import NodeState

Json = dict[str, Any]


class ModelNames(QObject):
    """`told` is called when they are known, and known anew; no more once `parent` is gone."""

    def __init__(
        self, client: NodeClient, pool: NodeState, told: Callable[[], object], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._client, self._pool, self._told = client, pool, told
        self._call: Call | None = None
        self._answer: Json | None = None
        self._asked_of: Sequence[str] | None = None  # the hosts that were here then

    @property
    def names(self) -> list[str]:
        """Empty until the node has said them."""
        loaded = str((self._pool.loaded or {}).get("model") or "")
        return names_of(self._answer or {}, self._pool.hosts, loaded)

    def reads(self, name: str) -> int | None:
        """How many tokens of context this machine's own model was trained for; None: that is not known."""
        own = (self._answer or {}).get("models") or ()
        lengths = {str(one["name"]): one.get("context_length") for one in own}
        return lengths.get(name)

    def look(self) -> None:
        """Ask the node, unless it is asked already."""
        if self._call is None or not self._call.running:
            self._asked_of = self._pool.hosts
            self._call = self._client.get("/models", self._got)

    def pool_changed(self) -> None:
        """Ask again when other hosts answer now."""
        if self._answer is not None and self._pool.hosts != self._asked_of:
            self.look()

    def close(self) -> None:
        if self._call is not None and self._call.running:
            self._call.cancel()

    def _got(self, answer: Json) -> None:
        self._answer = answer
        self._told()


def names_of(answer: Json, hosts: Sequence[str] | None, loaded: str) -> list[str]:
    """What the node lists, as far as it would be answered. hosts: those of a guest that answers nothing itself."""
    offered = [str(one["name"]) for one in answer.get("offered") or () if one.get("writes", True)]
    if hosts is not None:
        return offered
    if offered:  # a guest that has loaded a model of its own: that one, and no other of its shelf
        return list(dict.fromkeys([loaded, *offered]))
    return [str(one["name"]) for one in answer.get("models") or () if one.get("writes", True)]
