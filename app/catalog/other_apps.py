"""Finds the GGUF files of other apps on this computer. They are used in place and never moved or changed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.catalog.gguf.gguf_file import is_model, part_paths, read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.shelf import name_for, whole_stem
from app.core.errors import AppError, BadInput, Reason
from app.core.model import Model
from app.decoding import decode

MAX_DEPTH = 8
MAX_ENTRIES = 20_000  # limit of folder entries examined for each app
MAX_FILES = 500
MAX_MANIFEST_BYTES = 1 << 20
GGUF_LAYER = "application/vnd.ollama.image.model"
_BLOB = re.compile(r"sha256[:-]([0-9a-f]{64})")
_PLAIN = ("model", "ggml-model")  # meaningless file names; the folder's name is used instead


@dataclass(frozen=True, slots=True)
class AppFolder:
    """A folder in which another app stores its models."""

    app: str
    folder: Path


@dataclass(frozen=True, slots=True)
class ForeignModel:
    """A model file of another app. If it cannot be used, `reason` says why and `model` is None."""

    path: Path
    app: str
    name: str
    size_bytes: int
    model: Model | None
    reason: Reason | None


def app_folders(
    home: Path | None = None, environ: Mapping[str, str] = os.environ, system: str = sys.platform
) -> list[AppFolder]:
    """Return the folders in which other apps store their models on this system, preferred ones first."""
    home = home or Path.home()
    data = _data_folders(home, environ, system)
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    hf = Path(environ.get("HF_HOME") or cache / "huggingface")
    ollama = Path(environ.get("OLLAMA_MODELS") or home / ".ollama" / "models")
    candidates = [
        AppFolder("LM Studio", home / ".lmstudio" / "models"),
        AppFolder("LM Studio", home / ".cache" / "lm-studio" / "models"),
        AppFolder("Ollama", ollama),
        *(AppFolder("Jan", folder / "Jan" / "data") for folder in data),
        AppFolder("Hugging Face", Path(environ.get("HF_HUB_CACHE") or hf / "hub")),
    ]
    if system.startswith("linux"):  # Ollama installed as a system service
        candidates.insert(3, AppFolder("Ollama", Path("/usr/share/ollama/.ollama/models")))
    if chosen := _chosen_by_lm_studio(home):
        candidates.insert(0, AppFolder("LM Studio", chosen))
    return list(dict.fromkeys(candidates))


def app_of(path: Path, known: list[AppFolder]) -> str | None:
    """Return the app whose models folder contains a file, or None."""
    return next((place.app for place in known if path.is_relative_to(place.folder)), None)


class OtherApps:
    """A scanner for the model files of other apps, which caches the headers that it has read."""

    def __init__(self, known: list[AppFolder] | None = None) -> None:
        self.places = app_folders() if known is None else known
        self._seen: dict[tuple[str, int, int], Model | Reason] = {}

    def files(self) -> list[ForeignModel]:
        """Return all GGUF files of other apps, without duplicates. Blocks the thread, and never raises."""
        files: dict[Path, ForeignModel] = {}
        for place in self.places:
            named = _ollama(place.folder) if place.app == "Ollama" else _plain(place.folder)
            for path, name in named:
                if part_paths(path)[0] != path:
                    continue  # listed under its first part
                with suppress(OSError):
                    files.setdefault(path.resolve(), self._other(place.app, path, name))
                if len(files) >= MAX_FILES:
                    break
        return sorted(files.values(), key=lambda file: (file.app, file.name.casefold()))

    def _other(self, app: str, path: Path, name: str) -> ForeignModel:
        about = path.stat()
        key = (str(path), about.st_size, about.st_mtime_ns)
        if key not in self._seen:
            self._seen[key] = _read(path)
        known = self._seen[key]
        model = known if isinstance(known, Model) else None
        reason = known if isinstance(known, Reason) else None
        size = model.file_bytes if model else about.st_size  # of all parts together
        return ForeignModel(path, app, name_for(whole_stem(name)), size, model, reason)


def _read(path: Path) -> Model | Reason:
    try:
        return model_of(read_header(path), "unnamed", "")
    except AppError as error:
        return error.reason


def _plain(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the GGUF files below a folder. Symbolic links are followed to files but not to folders."""
    looked = 0
    for here, folders, files in os.walk(folder):
        depth = len(Path(here).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < MAX_DEPTH else []
        looked += len(folders) + len(files)
        if looked > MAX_ENTRIES:
            return
        for file in sorted(files):
            if is_model(file):
                path = Path(here) / file
                yield path, path.parent.name if path.stem.casefold() in _PLAIN else path.stem


def _ollama(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the model weights listed in Ollama's manifests, with names such as `qwen3-8b`."""
    manifests = folder / "manifests"
    looked = 0
    for here, folders, files in os.walk(manifests):
        folders.sort()
        looked += len(folders) + len(files)
        if looked > MAX_ENTRIES:
            return
        for tag in sorted(files):
            blob = _blob_of(Path(here) / tag)
            if blob and (path := folder / "blobs" / f"sha256-{blob}").is_file():
                yield path, Path(here).name if tag == "latest" else f"{Path(here).name}-{tag}"


class _Layer(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of an Ollama manifest, such as the model's weights."""

    media_type: str = ""
    digest: str = ""


class _Manifest(msgspec.Struct, frozen=True):
    layers: tuple[_Layer, ...]


class _LmStudio(msgspec.Struct, frozen=True, rename="camel"):
    """The only setting of LM Studio that is used here."""

    downloads_folder: str


def _blob_of(manifest: Path) -> str | None:
    try:
        with manifest.open("rb") as file:
            manifest_data = decode(file.read(MAX_MANIFEST_BYTES), _Manifest)
        layers = [layer for layer in manifest_data.layers if layer.media_type == GGUF_LAYER]
        digest = _BLOB.fullmatch(layers[0].digest)
    except (OSError, ValueError, IndexError):
        return None
    return digest[1] if digest else None


def _data_folders(home: Path, environ: Mapping[str, str], system: str) -> list[Path]:
    """Return the folders in which apps store their data on this system, newer conventions first."""
    if system == "win32":
        return [Path(environ.get("APPDATA") or home / "AppData" / "Roaming")]
    if system == "darwin":
        return [home / "Library" / "Application Support"]
    data = environ.get("XDG_DATA_HOME") or home / ".local" / "share"
    return [Path(data), Path(environ.get("XDG_CONFIG_HOME") or home / ".config")]


def _chosen_by_lm_studio(home: Path) -> Path | None:
    """Return the models folder that the user chose in LM Studio's settings, or None."""
    try:
        with (home / ".lmstudio" / "settings.json").open("rb") as file:
            settings = decode(file.read(MAX_MANIFEST_BYTES), _LmStudio)
        folder = Path(settings.downloads_folder)
    except (OSError, ValueError):
        return None
    return folder if folder.is_absolute() else None


def gone_error(path: Path, app: str) -> BadInput:
    """Return the error for a file that the other app has deleted."""
    return BadInput("found_not_here", path=str(path), app=app)
