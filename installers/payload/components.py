"""The components of a payload: an SBOM in CycloneDX's format, and the list of licenses for people.

The SBOM is written by cyclonedx-python-lib, which is in the environment of `make audit`, in a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import msgspec

from app.gui.settings.about import license_of
from installers.payload.fetched import debian_files
from installers.payload.places import PACKAGE_LAYERS, PROJECT
from scripts.engine_source import LOCK as ENGINE_LOCK
from scripts.real_models import SMOLLM2
from scripts.setup_errors import Trouble

AUDIT_PYTHON = PROJECT / ".venv-audit" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
WRITER = Path(__file__).with_name("sbom_writer.py")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_QT = re.compile(rb"Qt (\d+\.\d+\.\d+) \(")


class Component(msgspec.Struct, frozen=True):
    """A part of the payload that somebody else made."""

    name: str
    version: str
    license: str
    purl: str  # https://github.com/package-url
    texts: str  # the folder of its license texts in the installed folder
    kind: str = "library"
    sha256: str = ""  # of the file that it was made from


MODEL = Component(
    "SmolLM2-135M-Instruct", "Q4_1", "Apache-2.0", "pkg:huggingface/HuggingFaceTB/SmolLM2-135M-Instruct", "models",
    "machine-learning-model", SMOLLM2.sha256,
)  # fmt: skip


def components(layers: dict[str, Path]) -> list[Component]:
    """Return the components of the layers, by name of layer, sorted by name."""
    libraries = layers["libraries"]
    rust = next((libraries / "cryptography/hazmat/bindings").glob("_rust*.so"))
    inside = inside_packages(libraries, layers["qt"] / "PySide6/Qt/lib/libQt6Core.so.6", rust)
    return in_order([*python_packages(layers), *engine(layers["engine"]), *_debian(), *inside, MODEL])


def in_order(made: list[Component]) -> list[Component]:
    """Return components sorted by name."""
    return sorted(made, key=lambda component: (component.name.casefold(), component.version))


def sbom(made: list[Component], version: str, seconds: int, identity: str) -> str:
    """Return the SBOM as JSON. identity: a hash of the payload, from which its serial number comes. Raises Trouble."""
    if not AUDIT_PYTHON.exists():
        raise Trouble("The list of components is written by a tool that `make installers` installs first: use that.")
    order = {"version": version, "seconds": seconds, "identity": identity, "components": msgspec.to_builtins(made)}
    done = subprocess.run(
        [str(AUDIT_PYTHON), "-P", str(WRITER)], input=json.dumps(order), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Trouble(f"The list of components could not be written: {done.stderr.strip()[-300:]}")
    return done.stdout


def license_list(made: list[Component]) -> str:
    """Return the list of components with their licenses, and where the texts lie."""
    head = (
        "Poolhouse is shipped with the following works of others. Each is under its own license, whose text is in\n"
        "the folder named last, below the folder of this file.\n\n"
    )
    gcc = any(component.name == "libgomp1" for component in made)  # not on Windows
    works = "Qt (in PySide6), zeroconf and libgomp" if gcc else "Qt (in PySide6) and zeroconf"
    sources = "code.qt.io, zeroconf in the Python package index" + (", and gcc-12 in Debian" if gcc else "")
    head += (
        f"{works} are unchanged, separate files, which you can replace with your own.\nTheir sources: {sources}.\n\n"
    )
    return head + "".join(
        f"{component.name} {component.version}\n    {component.license}\n    {component.texts}\n" for component in made
    )


def python_packages(layers: dict[str, Path]) -> Iterator[Component]:
    """Yield the installed packages of the layers, by name of layer."""
    for layer in PACKAGE_LAYERS:
        for distribution in metadata.distributions(path=[str(layers[layer])]):
            name = distribution.metadata["Name"]
            key = re.sub(r"[-_.]+", "-", name).lower()
            folder = next(layers[layer].glob(f"{key.replace('-', '[-_.]')}-*.dist-info"), None)
            texts = f"{layer}/{folder.name}" if folder else layer
            purl = f"pkg:pypi/{key}@{distribution.version}"
            yield Component(name, distribution.version, license_of(distribution), purl, texts)


def engine(layer: Path) -> Iterator[Component]:
    """Yield the engine in a folder."""
    (distribution,) = metadata.distributions(path=[str(layer)])
    (sha256,) = _HASH.findall(ENGINE_LOCK.read_text("utf-8"))
    texts = next(path.name for path in layer.glob("*.dist-info"))
    version = distribution.version
    yield Component(
        "llama.cpp", f"as in llama-cpp-python {version}", "MIT", f"pkg:pypi/llama-cpp-python@{version}",
        f"engine/{texts}", sha256=sha256,
    )  # fmt: skip


def _debian() -> Iterator[Component]:
    for name, file in debian_files().items():
        purl = f"pkg:deb/debian/{name}@{file.version}?arch=amd64&distro=bookworm"
        yield Component(name, file.version, file.license, purl, "python/licenses", sha256=file.sha256)


def inside_packages(libraries: Path, core: Path, rust: Path) -> Iterator[Component]:
    """Yield what Python packages contain without saying so in their metadata.

    core: Qt's first library. rust: the library of the package cryptography.
    """
    if match := _QT.search(core.read_bytes()):
        version = match[1].decode()
        yield Component("Qt", version, "LGPL-3.0-only", f"pkg:generic/qt@{version}", "app/resources/licenses")
    if match := re.search(rb"OpenSSL (\d+\.\d+\.\d+) \d", rust.read_bytes()):
        version = match[1].decode()
        folder = next(libraries.glob("cryptography-*.dist-info")).name
        yield Component("OpenSSL (in cryptography)", version, "Apache-2.0", f"pkg:generic/openssl@{version}",
                        f"libraries/{folder}")  # fmt: skip
