"""What is handed to whoever helps: versions, settings, checks and logs, without names, addresses and chats.

Made from the files of the home, so it works when the node is down.
"""

from __future__ import annotations

import getpass
import json
import platform
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSettings, qVersion

from app import __version__
from app.core.log_line import readable
from app.core.redaction import Known, redacted
from app.decoding import decode

Json = dict[str, Any]
LOG_BYTES = 512 << 10  # of each log, its end
MOST_LOGS = 6
LOOKS = ("look/scheme", "look/text_scale", "look/language", "look/reduce_motion")
KEPT = (*LOOKS, "window/page", "first_run/done", "first_run/role")  # nothing a person wrote


@dataclass(frozen=True, slots=True)
class Told:
    """What the window knows of the node at this moment; empty while it is away."""

    home: Path
    standing: str = ""
    snapshot: Json = field(default_factory=dict)
    checks: tuple[Json, ...] = ()


def gathered(told: Told) -> dict[str, str]:
    """Every file of the bundle by its name, ready to be read. Blocks; raises OSError."""
    texts = {"about.txt": _about(told)}
    if told.snapshot:
        texts["state.json"] = _json(told.snapshot)
    if told.checks:
        texts["checks.json"] = _json(list(told.checks))
    texts |= _settings(told.home)
    texts |= {f"logs/{path.name}": _end_of(path) for path in _logs(told.home)}
    return redacted(texts, _known(told))


def write(path: Path, files: Mapping[str, str]) -> None:
    """One zip. Raises OSError; then nothing half written stays, and an older file as it was."""
    part = path.with_name(f"{path.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, text in files.items():
                packed.writestr(name, text)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _about(told: Told) -> str:
    lines = {
        "Poolhouse": __version__,
        "System": platform.platform(),
        "Processor": platform.machine(),
        "Python": sys.version.split()[0],
        "Qt": qVersion(),
        "State": told.standing,
    }
    return "".join(f"{name}: {value}\n" for name, value in lines.items())


def _settings(home: Path) -> dict[str, str]:
    """The node's choices, and of the window's only those that no person wrote."""
    found: dict[str, str] = {}
    if (file := home / "settings.json").is_file():
        found["settings.json"] = file.read_text("utf-8", "replace")
    kept = QSettings(str(home / "window" / "window.ini"), QSettings.Format.IniFormat)
    chosen = [f"{name}={kept.value(name)}\n" for name in KEPT if kept.contains(name)]
    if chosen:
        found["window.ini"] = "".join(chosen)
    return found


def _logs(home: Path) -> list[Path]:
    """The newest first."""
    found = [path for path in (home / "logs").glob("*.log*") if path.is_file()]
    return sorted(found, key=lambda path: -path.stat().st_mtime)[:MOST_LOGS]


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_BYTES))
        text = file.read().decode("utf-8", "replace")
    return "\n".join(map(readable, text.split("\n")))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _known(told: Told) -> Known:
    """All names that may stand in these texts."""
    machines = {*_names([told.snapshot.get(part) for part in ("node", "machines", "strangers")])}
    for file in (told.home / "settings.json", told.home / "household" / "household.json"):
        machines |= set(_names_of_file(file))
    people = {_user(), platform.node(), platform.node().partition(".")[0]}
    folders = (*_chosen_folders(told.home), str(told.home), str(Path.home()))
    return Known(tuple(machines), tuple(people - {""}), folders)


def _chosen_folders(home: Path) -> Iterator[str]:
    """Where models are kept outside of the home: such a path may name people, and disks."""
    try:
        models = decode((home / "settings.json").read_bytes(), dict[str, Any])["models"]
        found = [models.get("path"), *models.get("former", [])]
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return
    yield from (one for one in found if isinstance(one, str) and one)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""  # a system that knows no name for this user


def _names_of_file(file: Path) -> Iterator[str]:
    try:
        read = decode(file.read_bytes(), dict[str, Any])
    except (OSError, ValueError):
        return
    yield from _names(read)
    operations = read.get("operations")
    for line in operations if isinstance(operations, list) else ():
        try:
            yield from _names(decode(line, dict[str, Any]))
        except (TypeError, ValueError):
            continue


def _names(value: object, key: str = "") -> Iterator[str]:
    """Everything that stands under `name` in it."""
    if isinstance(value, dict):
        for inner, one in value.items():
            yield from _names(one, inner)
    elif isinstance(value, list):
        for one in value:
            yield from _names(one, key)
    elif isinstance(value, str) and key == "name" and value:
        yield value
