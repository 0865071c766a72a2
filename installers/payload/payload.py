"""Building all layers, each only if its inputs have changed, and putting them together with a manifest."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.machine import data_format
from app.machine.versions import tree_hash
from installers.payload import (
    app_layer,
    components,
    engine_layer,
    libraries_layer,
    models_layer,
    python_layer,
    qt_parts,
    trees,
)
from installers.payload.components import Component
from installers.payload.fetched import LIST
from installers.payload.places import LAYER_NAMES, LAYERS, MANIFEST, PACKAGE_LAYERS, PROJECT, commit_time, git
from scripts.real_models import SMOLLM2

SBOM, LICENSES = "sbom.cdx.json", "third-party-licenses.txt"
SHOWN = "poolhouse"  # what tracebacks call the installed folder
WINDOWS = "windows"  # the system whose files have no modes


@dataclass(frozen=True, slots=True)
class Layer:
    """A built layer."""

    name: str
    folder: Path
    hash: str
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Payload:
    """All layers of one version, for one system."""

    version: str
    commit: str
    time: int  # the date of all its files
    layers: tuple[Layer, ...]
    sbom: str  # the components, in CycloneDX's JSON
    licenses: str  # the same for people

    def write(self, folder: Path, kind: str, command: str) -> None:
        """Write the installed folder. kind: the packer, such as `deb`. command: the program that a user would start."""
        shutil.rmtree(folder, ignore_errors=True)
        for layer in self.layers:
            trees.copy_tree(layer.folder, folder / layer.name)
        manifest = {
            "version": self.version,
            "commit": self.commit,
            "kind": kind,
            "command": command,
            "layers": {layer.name: layer.hash for layer in self.layers},
            "data_format": data_format.FORMAT,
        }
        (folder / SBOM).write_text(self.sbom, "utf-8")
        (folder / LICENSES).write_text(self.licenses, "utf-8")
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


def build(version: str, rebuild: bool = False, updates: Path | None = None) -> Payload:
    """Build all layers. Raises Trouble.

    rebuild: also those that are there, except the compiled engine. updates: a folder with the keys and the address of
    updates; without it, the build cannot be updated.
    """
    python = layer("python", key(LIST, python_layer, " ".join(python_layer.IMPORTS)), _python, rebuild)
    interpreter = python.folder / python_layer.PROGRAM

    def compiled(make: Callable[[Path], None]) -> Callable[[Path], None]:
        def build_it(folder: Path) -> None:
            make(folder)
            trees.compile_all(interpreter, folder, SHOWN)

        return build_it

    lock = libraries_layer.LOCK.read_text("utf-8")
    packages = []
    for name in PACKAGE_LAYERS:
        inputs = key(libraries_layer.lock_of(name, lock), libraries_layer, *([qt_parts] if name == "qt" else []))
        packages.append(layer(name, inputs, compiled(partial(libraries_layer.build, layer=name)), rebuild))
    engine_key = f"{engine_layer.key()}-{key(engine_layer)}"
    engine = layer("engine", engine_key, compiled(engine_layer.build), rebuild)
    app = layer("app", version, compiled(lambda folder: app_layer.build(folder, version, updates)), True)
    return assemble(version, (python, *packages, engine, app, models(rebuild)), components.components)


def models(rebuild: bool) -> Layer:
    """Return the layer of models, which is the same on all systems."""
    models_key = f"{tree_hash.file_hash(models_layer.GUIDE)[:8]}-{SMOLLM2.sha256[:8]}-{key(models_layer)}"
    return layer("models", models_key, models_layer.build, rebuild)


def assemble(
    version: str, made_layers: tuple[Layer, ...], listed: Callable[[dict[str, Path]], list[Component]]
) -> Payload:
    """Return the payload of these layers. listed: returns the components of the folders of the layers."""
    by_name = {made.name: made for made in made_layers}
    layers = tuple(by_name[name] for name in LAYER_NAMES)
    made = listed({layer.name: layer.folder for layer in layers})
    identity = "".join(layer.hash for layer in layers)
    sbom = components.sbom(made, version, commit_time(), identity)
    commit = git("rev-parse", "HEAD").strip()
    return Payload(version, commit, commit_time(), layers, sbom, components.license_list(made))


def layer(name: str, inputs: str, make: Callable[[Path], None], rebuild: bool, system: str = "") -> Layer:
    """Return a layer, built if its inputs, given as a hash, are new. system: other than Linux, or "" for any."""
    stem = f"{system}-{name}" if system else name
    folder = LAYERS / f"{stem}-{inputs}"
    if rebuild or not folder.exists():
        print(f"Building the layer {name}.", flush=True)
        part = LAYERS / f"{stem}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        make(part)
        trees.normalize(part, commit_time(), has_programs=system != WINDOWS)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    return Layer(name, folder, tree_hash.tree_hash(folder), tree_hash.tree_bytes(folder))


def _python(folder: Path) -> None:
    scratch = LAYERS / "python.scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    python_layer.build(folder, scratch)
    shutil.rmtree(scratch)
    trees.compile_all(folder / python_layer.PROGRAM, folder, f"{SHOWN}/python")


def key(*inputs: object) -> str:
    """Return a short hash of texts, files, or of the source code of modules."""
    total = hashlib.sha256(Path(trees.__file__).read_bytes())
    for item in inputs:
        if isinstance(item, str):
            total.update(item.encode())
            continue
        path = item if isinstance(item, Path) else Path(str(getattr(item, "__file__", "")))
        total.update(path.read_bytes())
    return total.hexdigest()[:12]


def check_clean() -> str:
    """Return "" if the checkout has no changes, otherwise the note that the result belongs to no commit."""
    changed = git("status", "--porcelain", "--untracked-files=no").strip()
    return f"{PROJECT.name} has changes that are not committed, so this build belongs to no commit." if changed else ""
