"""The manifest of an engine pack, and the rules that a pack must meet. This module does no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from app.core.errors import AppError, BadInput, Damaged, Reason, Refused
from app.decoding import decode

MANIFEST = "pack.json"
FORMAT = 1
MAX_MANIFEST_BYTES = 1 << 20
MAX_FILES = 200
MAX_FILE_BYTES = 4 << 30  # the largest library of CUDA has 0.7 GiB
MAX_PACK_BYTES = 8 << 30
BUILD_CHARACTERS = 16  # of the manifest's hash in the name of an installed pack

# The back ends of packs, with what people call them
BACKENDS = {"vulkan": "Vulkan", "cuda13": "CUDA 13", "cuda12": "CUDA 12", "hip": "ROCm", "metal": "Metal"}

PROCESSOR = "cpu"  # the base engine has the code for every processor, and workers load only that

_PATH = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9_.+-]*(/[A-Za-z0-9_+][A-Za-z0-9_.+-]*){0,3}")
_MAX_PATH_CHARACTERS = 120
# Windows opens devices under these names, in any folder and with any suffix.
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_LIBRARY = re.compile(r"(?:lib)?ggml-([a-z0-9_.-]+)\.(?:so|dll|dylib)")

Word = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")]
Text = Annotated[str, Meta(max_length=300)]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]


class PackFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a pack. `path` is relative to the pack's folder and has forward slashes."""

    path: Annotated[str, Meta(max_length=_MAX_PATH_CHARACTERS)]
    size_bytes: Annotated[int, Meta(ge=0, le=MAX_FILE_BYTES)]
    sha256: Hash


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of `pack.json`."""

    format: Annotated[int, Meta(ge=1)] = FORMAT
    backend: Word
    engine_version: Word  # of llama-cpp-python, such as 0.3.36
    ggml_version: Word
    system: Word  # such as linux-x86_64
    built: Annotated[str, Meta(max_length=10, pattern=r"^\d{4}-\d\d-\d\d$")]
    compiler: Text = ""
    flags: Annotated[list[Text], Meta(max_length=100)] = []  # for CMake
    lacks: Annotated[list[Text], Meta(max_length=50)] = []  # features that the build tools could not compile
    libraries: Annotated[list[Text], Meta(min_length=1, max_length=50)]  # loaded by path; paths of `files`
    files: Annotated[list[PackFile], Meta(min_length=1, max_length=MAX_FILES)]

    @property
    def name(self) -> str:
        """Return the name of the pack, such as `vulkan-0.3.36-linux-x86_64`."""
        return f"{self.backend}-{self.engine_version}-{self.system}"

    @property
    def size_bytes(self) -> int:
        """Return the size of all files."""
        return sum(file.size_bytes for file in self.files)

    def by_path(self) -> dict[str, PackFile]:
        """Return the files by path."""
        return {file.path: file for file in self.files}

    def backend_names(self) -> dict[str, str]:
        """Return the path of each library by the name of its back end.

        A pack for processors has one library for each variant, such as `cpu-haswell`. Any other pack has only one
        library.
        """
        if len(self.libraries) == 1:
            return {self.backend: self.libraries[0]}
        return {match[1]: path for path in self.libraries if (match := _LIBRARY.fullmatch(path.rpartition("/")[2]))}


def parse(data: bytes, where: str) -> Manifest:
    """Parse a manifest and check that it is consistent. Raises BadInput or Refused.

    where: the name of the pack for the error message.
    """
    if len(data) > MAX_MANIFEST_BYTES:
        raise BadInput("pack_no_manifest", pack=where)
    try:
        version = decode(data, _FormatOnly).format
    except (msgspec.DecodeError, UnicodeError):
        raise BadInput("pack_no_manifest", pack=where) from None
    if version > FORMAT:
        raise Refused("pack_newer_format", pack=where)
    try:
        manifest = decode(data, Manifest)
    except (msgspec.DecodeError, UnicodeError):
        raise BadInput("pack_no_manifest", pack=where) from None
    if error := inconsistency(manifest):
        raise error
    return manifest


class _FormatOnly(msgspec.Struct):
    format: int


def inconsistency(manifest: Manifest) -> AppError | None:
    """Return the error for a manifest that contradicts itself or has unsafe paths, or None."""
    paths = [file.path for file in manifest.files]
    for path in paths:
        if not is_safe(path):
            return Refused("pack_unsafe", pack=manifest.name, file=shown_path(path))
    folded = {path.casefold() for path in paths}
    folders = {parent for path in folded for parent in _folders(path)}
    if len(folded) < len(paths) or folders & {*folded, MANIFEST}:  # the same path twice, or a file that is a folder too
        return BadInput("pack_no_manifest", pack=manifest.name)
    if manifest.size_bytes > MAX_PACK_BYTES:
        return Refused("pack_too_large", pack=manifest.name, size_bytes=manifest.size_bytes, most_bytes=MAX_PACK_BYTES)
    if missing := [path for path in manifest.libraries if path not in paths]:
        return Damaged("pack_incomplete", pack=manifest.name, file=shown_path(missing[0]))
    if len(manifest.libraries) > 1 and len(manifest.backend_names()) < len(manifest.libraries):
        return BadInput("pack_no_manifest", pack=manifest.name)
    return None


def _folders(path: str) -> list[str]:
    """Return all folders above a file, such as `a` and `a/b` for `a/b/c`."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def is_safe(path: str) -> bool:
    """Return whether a path stays in the pack's folder on every system and is not the manifest itself."""
    parts = path.split("/")
    return (
        len(path) <= _MAX_PATH_CHARACTERS
        and _PATH.fullmatch(path) is not None
        and path.casefold() != MANIFEST
        and not any(_DEVICES.fullmatch(part) or part.endswith(".") for part in parts)
    )


def shown_path(path: str) -> str:
    """Return a path for display: shortened, and without characters that could mislead the reader."""
    shown = "".join(character if character.isprintable() else "?" for character in path)
    return shown if len(shown) <= _MAX_PATH_CHARACTERS else shown[: _MAX_PATH_CHARACTERS - 1] + "…"


class Labeled(Protocol):
    """The fields that decide whether a pack fits a computer: part of a manifest, or of another machine's offer."""

    @property
    def name(self) -> str: ...

    @property
    def backend(self) -> str: ...

    @property
    def engine_version(self) -> str: ...

    @property
    def system(self) -> str: ...


def unfit(manifest: Labeled, system: str, engine_version: str) -> Reason | None:
    """Return why a pack cannot be used by this Poolhouse on this computer, or None."""
    if manifest.backend == PROCESSOR:
        return Reason("pack_for_processors", {"pack": manifest.name})
    if manifest.backend not in BACKENDS:
        known = ", ".join(BACKENDS)
        return Reason("pack_unknown_backend", {"pack": manifest.name, "backend": manifest.backend, "known": known})
    if manifest.system != system:
        return Reason("pack_other_system", {"pack": manifest.name, "theirs": manifest.system, "own": system})
    own = public_version(engine_version)
    if manifest.engine_version != own:
        return Reason("pack_other_engine", {"pack": manifest.name, "theirs": manifest.engine_version, "own": own})
    return None


def public_version(version: str) -> str:
    """Return a version without its local part, which describes how the engine was built."""
    return version.partition("+")[0]


def installed_name(manifest: Manifest, sha256: str) -> str:
    """Return the name under which a pack is installed. It ends in the hash of its manifest, `sha256`.

    Two builds for the same engine are therefore two packs, and the older one remains for a rollback.
    """
    return f"{manifest.name}-{sha256[:BUILD_CHARACTERS]}"


def label(backend: str) -> str:
    """Return the display name of a back end."""
    return BACKENDS.get(backend, backend)


def matching(names: Iterable[str], typed: str) -> list[str]:
    """Return the installed pack named `typed`, or all packs whose names begin with it if there is no such pack."""
    known = sorted(names)
    return [typed] if typed in known else [name for name in known if name.startswith(typed)]
