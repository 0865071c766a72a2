"""The verdicts on model families on each graphics card, saved in a small JSON file."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.errors import Reason
from app.core.model import MAX_FAMILY
from app.machine.hardware.cards import Card
from app.machine.json_state import read_json_or_default
from app.machine.paths import write_atomically

log = logging.getLogger(__name__)

FORMAT = 1
MOST_VERDICTS = 256
MOST_REFUSED = 32  # of each card; a status message lists them
# A refusal this old is tried again after a restart: the next version of the engine may have the operation, and an error
# may have had another cause.
OLD_AFTER_SECONDS = 7 * 24 * 3600.0

Fingerprint = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
PlainFact = Annotated[str, Meta(max_length=300)] | int | float


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict on a family. `code` is empty if the card computes it, otherwise the reason code of the refusal."""

    fingerprint: Fingerprint
    family: Annotated[str, Meta(max_length=MAX_FAMILY)]
    at: float  # seconds since 1970
    code: Annotated[str, Meta(max_length=64)] = ""
    with_head: bool = False  # whether the output matrix was compared too
    facts: dict[str, PlainFact] = {}

    @property
    def why(self) -> Reason:
        return Reason(self.code, dict(self.facts))


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int = 0
    verdicts: Annotated[list[Verdict], Meta(max_length=MOST_VERDICTS)] = []


def fingerprint_of(card: Card) -> str:
    """Return 64 hex digits that change with the card, its driver's description of it, its library and the engine."""
    library: tuple[int, ...] = ()
    with suppress(OSError):
        about = card.library.stat()
        library = (about.st_size, about.st_mtime_ns)
    engine = ""
    with suppress(metadata.PackageNotFoundError):
        engine = metadata.version("llama-cpp-python")
    facts = (card.key, card.label, card.api, card.total_bytes, str(card.library), library, engine)
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()


class CardVerdicts:
    """The verdicts on families, by card. A verdict applies only to the card, driver, library and engine that were
    tested.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._path, self._now = path, now
        self._verdicts = self._read()

    def of(self, card: Card) -> dict[str, Verdict]:
        """Return the verdicts on a card as it is now, by family."""
        mark = fingerprint_of(card)
        return {family: verdict for (of, family), verdict in self._verdicts.items() if of == mark}

    def keep(self, card: Card, family: str, why: Reason | None, *, with_head: bool = False) -> None:
        """Save a verdict: `why` is the reason why the card does not compute a family, or None if it does. The
        oldest verdicts are dropped to make room.

        with_head: whether the output matrix was compared as well.
        """
        mark = fingerprint_of(card)
        self._verdicts.pop((mark, family), None)
        facts = {name: fact for name, fact in (why.facts if why else {}).items() if not isinstance(fact, Reason)}
        verdict = Verdict(mark, family, self._now(), why.code if why else "", with_head, facts)
        self._verdicts[mark, family] = verdict
        refused = [key for key, verdict in self._verdicts.items() if key[0] == mark and verdict.code]
        for oldest in [*refused[:-MOST_REFUSED], *list(self._verdicts)[:-MOST_VERDICTS]]:
            self._verdicts.pop(oldest, None)

    def forget(self, card: Card, code: str) -> bool:
        """Drop the refusals of a card with this code. Return whether there were any."""
        mark = fingerprint_of(card)
        dropped = [key for key, verdict in self._verdicts.items() if key[0] == mark and verdict.code == code]
        for key in dropped:
            del self._verdicts[key]
        return bool(dropped)

    def save(self) -> None:
        """Save the verdicts. Blocks. A write error is ignored, because the comparison can be repeated."""
        try:
            write_atomically(self._path, msgspec.json.encode(_File(FORMAT, list(self._verdicts.values()))))
        except OSError as error:
            log.warning("the verdicts on graphics cards could not be saved in %s: %s", self._path, error)

    def _read(self) -> dict[tuple[str, str], Verdict]:
        stored = read_json_or_default(self._path, _File, "verdicts on graphics cards")
        if stored.format != FORMAT:
            return {}
        fresh = (verdict for verdict in stored.verdicts if not verdict.code or self._is_fresh(verdict))
        return {(verdict.fingerprint, verdict.family): verdict for verdict in fresh}

    def _is_fresh(self, verdict: Verdict) -> bool:
        return -OLD_AFTER_SECONDS < self._now() - verdict.at < OLD_AFTER_SECONDS
