"""The model families for which an added engine was measured to be faster or slower than llama.cpp, in a small file."""

from __future__ import annotations

import logging
from importlib import metadata
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.model import MAX_FAMILY
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically

log = logging.getLogger(__name__)

FORMAT = 1
MOST_FAMILIES = 256

Family = Annotated[str, Meta(max_length=MAX_FAMILY)]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int = 0
    engines: Annotated[str, Meta(max_length=400)] = ""  # the two that were compared
    faster: Annotated[dict[Family, bool], Meta(max_length=MOST_FAMILIES)] = {}


class EngineChoices:
    """The families that the added engine computes faster. The choices hold only for the engines that were compared.

    path: the file, or None to keep nothing after the end of the node.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._label = ""
        self.faster: dict[str, bool] = {}

    def read(self, label: str) -> None:
        """Read the choices for an engine. label: its name, version and device."""
        self._label, self.faster = label, {}
        if self._path is not None:
            stored = read_json_or_default(self._path, _File, "measured engines")
            if stored.format == FORMAT and stored.engines == self._engines():
                self.faster = dict(stored.faster)

    def keep(self, family: str, *, faster: bool) -> None:
        """Keep the choice for a family."""
        self.faster.pop(family, None)
        self.faster[family] = faster
        for oldest in list(self.faster)[:-MOST_FAMILIES]:
            del self.faster[oldest]
        self._write()

    def forget(self, family: str | None = None) -> None:
        """Forget the choice for a family, or for all, so that the engines are compared again."""
        if family is None:
            self.faster.clear()
        else:
            self.faster.pop(family, None)
        self._write()

    def _engines(self) -> str:
        return f"{self._label}, llama.cpp {metadata.version('llama-cpp-python')}"[:400]

    def _write(self) -> None:
        if self._path is None:
            return
        try:
            write_atomically(self._path, msgspec.json.encode(_File(FORMAT, self._engines(), self.faster)))
        except OSError as error:
            log.warning("the choice of engines could not be saved in %s: %s", self._path, error)
