"""A thousand names that walk out of a folder, on this system or on Windows: none is taken."""

from __future__ import annotations

import random
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import urljoin, urlsplit

from app.catalog import shelf
from app.catalog.hub.hub_address import MAIN, Hub, check_file_names
from app.core.errors import BadInput

PIECES = (
    "..", ".", "/", "\\", "C:", "\\\\server\\share", "CON", "nul", "aux.txt", "com1", "~", " ", "%2e%2e",
    "%2f", "\x00", "\n", "a", "b.gguf", ":stream", "．．", "‥", "\u202e", "*", "|", "\x7f", "LPT9.gguf",
)  # fmt: skip
WALKING = {"..", "/", "\\", "a", "b.gguf"}  # often enough that they meet: `a/../b.gguf`
WEIGHTS = [9 if piece in WALKING else 1 for piece in PIECES]
DEVICES = {"con", "prn", "aux", "nul", "com1", "lpt9"}


def names(n: int) -> list[str]:
    """Each of them has something in it that no file here is called."""
    chance, result = random.Random(8), dict[str, None]()
    while len(result) < n:
        name = "".join(chance.choices(PIECES, WEIGHTS, k=chance.randint(1, 6)))
        parts = name.replace("\\", "/").split("/")
        if ".." in parts or name[:1] in "/\\" or not set(name) <= set("ab.guf"):
            result[name] = None
    return list(result)


def stays_inside(name: str) -> bool:
    """Return whether a name stays inside its folder on both kinds of systems."""
    for path in (PurePosixPath(name), PureWindowsPath(name)):
        if path.is_absolute() or path.drive or path.root or ".." in path.parts or not path.parts:
            return False
    return not any(char in name for char in '\x00\n\\:*|"<>?\u202e')


def is_taken(repository: str, file: str, revision: str | None = None) -> bool:
    try:
        check_file_names(repository, file, revision)
    except BadInput:
        return False
    return True


def test_a_thousand_names_are_refused_or_stay_inside() -> None:
    """Tests names on the hub. Downloads here are named by their hash, so a device's name does no harm."""
    files = [file for name in names(1000) for file in (name, f"{name}.gguf", f"folder/{name}.gguf")]
    repositories = [
        repository for name in names(1000) for repository in (name, f"owner/{name}", f"{name}/model", f"owner/{name}/x")
    ]
    taken = [file for file in files if is_taken("owner/model", file)]
    requests = [repository for repository in repositories if is_taken(repository, "model.gguf")]
    revisions = [name for name in names(1000) if is_taken("owner/model", "model.gguf", name)]
    for matches in (taken, requests, revisions):
        assert 5 < len(matches) < 500  # some are plain enough, and the rule is no wall
        assert all(map(stays_inside, matches)), [name for name in matches if not stays_inside(name)]
    assert all(name.count("/") == 1 for name in requests)
    hub = Hub()
    asked_for = [hub.file("owner/model", MAIN, file) for file in taken]
    asked_for += [hub.file(repository, MAIN, "model.gguf") for repository in requests]
    asked_for += [hub.file("owner/model", revision, "model.gguf") for revision in revisions]
    for there in asked_for:
        assert there == urljoin(there, urlsplit(there).path)  # nothing in it walks
        assert there.count("/resolve/") == 1


def test_whatever_a_file_is_called_the_shelf_gives_it_a_name_that_is_safe() -> None:
    for name in names(1000):
        text = shelf.name_for(name)
        assert shelf.NAME.fullmatch(text), name
        assert stays_inside(text), name
        assert text.partition(".")[0].lower() not in DEVICES, name
