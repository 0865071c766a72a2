"""The environment of a measurement, for the report: processor, engine, commit and model file."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from backends.llamacpp.binding import load as llama
from bench.children import ROOT


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The properties of a model that the benchmark needs before it measures."""

    file: str
    file_bytes: int
    sha256: str
    n_vocab: int
    n_layers: int
    layer_bytes: tuple[int, ...]


def model_facts(path: Path) -> ModelFacts:
    """Read the header of a model file with the gguf package, and hash the file."""
    from gguf import GGUFReader

    reader = GGUFReader(path)
    family = bytes(reader.fields["general.architecture"].parts[-1]).decode()
    n_layers = int(reader.fields[f"{family}.block_count"].parts[-1][0])
    layers = [0] * n_layers
    for tensor in reader.tensors:
        if tensor.name.startswith("blk."):
            layers[int(tensor.name.split(".")[1])] += int(tensor.n_bytes)
    n_vocab = len(reader.fields["tokenizer.ggml.tokens"].data)
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    return ModelFacts(path.name, path.stat().st_size, digest, n_vocab, n_layers, tuple(layers))


def surroundings(model: ModelFacts) -> dict[str, Any]:
    """Return all facts about the environment of this run as JSON values."""
    about = asdict(model) | {"layer_bytes": sum(model.layer_bytes)}
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "processor": processor(),
        "cores": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "engine": f"llama-cpp-python {metadata.version('llama-cpp-python')}",
        "engine_flags": llama().llama_print_system_info().decode(),
        "load_before": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "model": about,
    }


def commit() -> str:
    """Return the commit of the checkout, with `+` if there are uncommitted changes, or `unknown` outside a checkout."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def processor() -> str:
    """Return the name of the processor, with its model number if the name is ambiguous."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    pairs = [line.split(":", 1) for line in lines if ":" in line]
    fields = {pair[0].strip(): pair[1].strip() for pair in pairs}
    name = fields.get("model name") or fields.get("Model") or platform.processor()
    number = f", model {fields['model']}" if "model" in fields else ""
    return f"{name or platform.machine()}{number}"
