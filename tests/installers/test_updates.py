"""Updates of a real AppImage on a clean system: installed, restarted with the household kept, and rolled back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.machine.engine_packs.store import this_system
from app.machine.versions.tree_hash import tree_bytes, tree_hash
from app.node.updates.updater import ADDRESS, ROOT
from installers.linux import appimage
from installers.payload import payload, python_layer, trees
from installers.payload.payload import Layer, Payload
from installers.payload.places import LAYERS, PACKAGE_LAYERS
from installers.release.__main__ import packed
from installers.release.keys import new_keys, new_root, today
from installers.release.repository import Repository
from tests.installers.clean_system import USER_ID, CleanSystem, can_be_used, clean_system
from tests.installers.test_debian_package import IN_FILES, package, within
from tests.node.updates.files_server import FilesServer, serving

pytestmark = [pytest.mark.installers, pytest.mark.root, pytest.mark.timeout(900)]
OLD, NEW, BROKEN = "0.1.90", "0.1.91", "0.1.92"
HOME = "home/anna"
IMAGE = f"/{HOME}/Poolhouse.AppImage"
MOST_UPDATE_BYTES = 60_000_000  # without a new engine


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, FilesServer, Repository, Payload]]:
    """An AppImage of an old version, and a server with a repository that it trusts and that has a new version."""
    if reason := can_be_used():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("publisher")
    keys = new_keys(folder / "keys", 3)
    root = new_root(keys, 2, today())
    updates = folder / "updates"
    updates.mkdir()
    (updates / ROOT).write_bytes(root.to_bytes())
    repository = Repository(folder / "repository", keys)
    repository.create(root)
    with serving(folder / "repository") as server:
        (updates / ADDRESS).write_text(server.address)
        image = appimage.pack(payload.build(OLD, updates=updates))
        newer = payload.build(NEW, updates=updates)
        publish(repository, newer)
        try:
            yield image, server, repository, newer
        finally:
            image.unlink()
            for version in (OLD, NEW):
                shutil.rmtree(LAYERS / f"app-{version}", ignore_errors=True)


@pytest.fixture
def system(published: tuple[Path, FilesServer, Repository, Payload]) -> Iterator[CleanSystem]:
    with clean_system("bookworm", package()) as made:
        place = made.root / IMAGE.lstrip("/")
        shutil.copyfile(published[0], place)
        place.chmod(0o755)
        os.chown(place, USER_ID, USER_ID)
        yield made


def broken(good: Payload, folder: Path) -> Payload:
    """Return a payload whose node ends as it starts."""
    layers = []
    for layer in good.layers:
        if layer.name != "app":
            layers.append(layer)
            continue
        place = folder / "app"
        shutil.copytree(layer.folder, place)
        start = place / "app/node/start.py"
        start.write_text("raise SystemExit(7)\n")
        for path in place.glob("app/node/__pycache__/start.*"):
            path.unlink()
        trees.normalize(place, good.time)
        layers.append(Layer("app", place, tree_hash(place), tree_bytes(place)))
    return replace(good, version=BROKEN, layers=tuple(layers))


def with_one_layer_of_packages(built: Payload, folder: Path) -> Payload:
    """Return a payload in the layers of the first versions, whose Python knows only one layer of packages."""
    packages, python = folder / "libraries", folder / "python"
    for layer in built.layers:
        if layer.name in PACKAGE_LAYERS:
            trees.copy_tree(layer.folder, packages)
        elif layer.name == "python":
            trees.copy_tree(layer.folder, python)
    paths = Path(f"{python / python_layer.PROGRAM}._pth")
    lines = [line for line in paths.read_text("utf-8").splitlines() if Path(line).name not in {"qt", "numpy"}]
    paths.unlink()  # a link to that of the layer
    paths.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    trees.normalize(folder, built.time)
    kept = [layer for layer in built.layers if layer.name not in {"python", *PACKAGE_LAYERS}]
    made = [Layer(place.name, place, tree_hash(place), tree_bytes(place)) for place in (python, packages)]
    return replace(built, layers=(*made, *kept))


def publish(repository: Repository, built: Payload) -> None:
    release, archives = packed(built, 100)
    repository.publish(this_system(), release, archives)


@contextmanager
def running(system: CleanSystem) -> Iterator[subprocess.Popen[str]]:
    """A node that runs until the end of the block."""
    process = subprocess.Popen(
        system.command(IMAGE, "node", variables=IN_FILES), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def asked(system: CleanSystem, *words: str) -> Any:
    """Return what a command answers in JSON, or None."""
    done = system.run(IMAGE, *words, "--json", check=False, variables=IN_FILES)
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if lines else None


def household(system: CleanSystem) -> dict[str, bytes]:
    """Return what makes this computer a member of its household, and the running node's answer about itself."""
    home = system.root / HOME / ".local/share/poolhouse"
    files = {path.name: path.read_bytes() for path in sorted((home / "identity").iterdir()) if path.is_file()}
    assert "identity.pem" in files
    (own,) = asked(system, "machines")["machines"]
    return files | {"id": own["id"].encode()}


def node_runs(system: CleanSystem, version: str) -> bool:
    """Return whether a node of this version runs."""
    file = system.root / HOME / ".local/share/poolhouse/runtime.json"
    try:
        runtime = json.loads(file.read_text())
        os.kill(runtime["pid"], 0)
    except (OSError, ValueError):
        return False
    return bool(runtime["version"] == version)


def test_an_update_and_a_broken_one(
    published: tuple[Path, FilesServer, Repository, Payload], system: CleanSystem, tmp_path: Path
) -> None:
    _, server, repository, newer = published
    server.sent_bytes = 0
    marks = system.root / HOME / ".local/share/poolhouse/versions/marks"
    with running(system):
        within(60, lambda: node_runs(system, OLD))
        before = household(system)
        begun = time.monotonic()
        result = asked(system, "update", "--yes")
        print(f"update: {server.sent_bytes} bytes in {time.monotonic() - begun:.1f} s")
        assert result["installed"], result
        assert server.sent_bytes < MOST_UPDATE_BYTES
        assert node_runs(system, OLD)  # it goes on until somebody restarts it
        begun = time.monotonic()
        system.run(IMAGE, "update", "--restart", "--home", f"/{HOME}/.local/share/poolhouse", variables=IN_FILES)
        within(60, lambda: node_runs(system, NEW))
        print(f"restart: {time.monotonic() - begun:.1f} s")
        assert household(system) == before
        within(60, (marks / f"{NEW}.node").exists)
    assert system.run(IMAGE, "--version").stdout.strip() == f"Poolhouse {NEW}"

    publish(repository, broken(newer, tmp_path))
    assert asked(system, "update", "--yes")["installed"]
    with running(system):
        within(120, lambda: node_runs(system, NEW))
        assert (marks / f"{BROKEN}.failed").exists()
        assert household(system) == before

    system.run(IMAGE, "update", "--rollback", variables=IN_FILES)
    with running(system):
        within(60, lambda: node_runs(system, OLD))
        assert household(system) == before
    system.run(IMAGE, "erase", "--yes", variables=IN_FILES)
    left = {path for path in system.files() if path.startswith(HOME) and "poolhouse" in path.lower()}
    assert left == {IMAGE.lstrip("/")}


def test_a_copy_with_the_layers_of_the_first_versions_gets_those_of_today(
    published: tuple[Path, FilesServer, Repository, Payload], system: CleanSystem, tmp_path: Path
) -> None:
    image, server, repository, _ = published
    repository.withdraw(this_system(), BROKEN)
    kept = image.with_suffix(".kept")
    image.rename(kept)
    try:
        updates = LAYERS / f"app-{OLD}" / "resources" / "updates"
        old = with_one_layer_of_packages(payload.build(OLD, updates=updates_of(updates, tmp_path)), tmp_path / "old")
        place = system.root / IMAGE.lstrip("/")
        shutil.copyfile(appimage.pack(old), place)
    finally:
        kept.rename(image)
    server.sent_bytes = 0
    with running(system):
        within(120, lambda: node_runs(system, OLD))
        before = household(system)
        assert asked(system, "update", "--yes")["installed"]
        print(f"update to the layers of today: {server.sent_bytes} bytes")
        system.run(IMAGE, "update", "--restart", "--home", f"/{HOME}/.local/share/poolhouse", variables=IN_FILES)
        within(120, lambda: node_runs(system, NEW))
        assert household(system) == before
    versions = system.root / HOME / ".local/share/poolhouse/versions"
    assert (versions / NEW / "qt/PySide6").is_dir()
    assert not (versions / NEW / "libraries/PySide6").exists()


def updates_of(built: Path, folder: Path) -> Path:
    """Return a copy of the keys and the address in a built layer, which is about to be built again."""
    return shutil.copytree(built, folder / "updates")
