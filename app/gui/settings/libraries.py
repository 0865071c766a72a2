"""What Poolhouse is built on, from the metadata of what is installed: name, version, licence, its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

OURS = "poolhouse"
BESIDE = ("PySide6-Essentials", "llama-cpp-python")  # named even where our own metadata is older
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TEXTS = re.compile(r"(?:^|/)(?:licen[cs]e|copying|notice|lgpl|gpl)[^/]*$", re.IGNORECASE)
SHIPPED = Path(__file__).resolve().parents[3] / "resources" / "licences"
FIELDS = ("License-Expression", "License")
UNKNOWN = "see its licence text"


@dataclass(frozen=True, slots=True)
class Library:
    """One installed distribution."""

    name: str
    version: str
    licence: str


def libraries() -> list[Library]:
    """All that this app needs, and what those need in turn; by name. Reads many small files."""
    found = {key: metadata.distribution(name) for key, name in _needed()}
    made = [
        Library(one.metadata["Name"], one.version, licence_of(one))
        for key, one in found.items()
        if key != OURS
    ]
    return sorted(made, key=lambda one: one.name.casefold())


def licence_text(name: str) -> str:
    """The texts that come with it, one after another; of what is under the LGPL 3, those we ship."""
    files = metadata.files(name) or []
    wanted = [file for file in files if _TEXTS.search(str(file)) and file.suffix != ".py"]
    text = "\n\n".join(_read(Path(str(file.locate()))) for file in wanted).strip()
    if not text and "LGPL-3.0" in licence_of(metadata.distribution(name)):
        text = "\n\n".join(_read(SHIPPED / file) for file in ("LGPL-3.0.txt", "GPL-3.0.txt"))
    return text


def licence_of(found: metadata.Distribution) -> str:
    """In a few words: the expression, a short field, or the classifiers."""
    meta = found.metadata
    said = next((meta[field] for field in FIELDS if field in meta), "")
    if said and "\n" not in said and len(said) < 60:
        return str(said)
    classes = [
        line.rpartition(" :: ")[2]
        for line in meta.get_all("Classifier") or []
        if line.startswith("License ::")
    ]
    return ", ".join(classes) or UNKNOWN


def _needed() -> Iterator[tuple[str, str]]:
    """Keys and names, each once, as far as they are installed."""
    waiting, seen = [OURS, *BESIDE], set[str]()
    while waiting:
        name = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen:
            continue
        seen.add(key)
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        yield key, name
        waiting += [_named(line) for line in required if "extra ==" not in line]


def _named(requirement: str) -> str:
    found = _NAME.match(requirement)
    return found[0] if found else ""


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
