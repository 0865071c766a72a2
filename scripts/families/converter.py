"""llama.cpp's own converter, taken from the hashed source of its binding: model folder -> GGUF."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import torch

from scripts.families.recipe import VOCABULARY

PROJECT = Path(__file__).resolve().parent.parent.parent
WORK = PROJECT / "build" / "families"
LOCK = PROJECT / "requirements" / "engine.txt"
PARTS = ("convert_hf_to_gguf.py", "conversion/", "gguf-py/gguf/")


def fetch() -> Path:
    """The converter's folder below build/; downloaded and unpacked once for each version of the engine."""
    name = LOCK.read_text("utf-8").split(maxsplit=1)[0]  # llama-cpp-python==0.3.36
    folder = WORK / name / "llama.cpp"
    if not (folder / PARTS[0]).exists():
        download(folder.parent)
        (archive,) = folder.parent.glob("llama_cpp_python-*.tar.gz")
        unpack(archive, folder)
    return folder


def download(folder: Path) -> None:
    """The engine's source, checked by its hash. pip wants its metadata, so what builds it is there too."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--no-binary", ":all:", "--no-build-isolation", "-r", str(LOCK), "-d", str(folder)]
    subprocess.run(command, check=True)


def unpack(archive: Path, folder: Path) -> None:
    """Only the converter, out of some thousand files."""
    with tarfile.open(archive) as source:
        for member in source.getmembers():
            _, _, inside = member.name.partition("/vendor/llama.cpp/")
            if inside.startswith(PARTS) and member.isfile():
                member.name = inside
                source.extract(member, folder, filter="data")


def load() -> Any:
    """The converter's module `conversion`, with the gguf package that belongs to it."""
    folder = fetch()
    for path in (folder, folder / "gguf-py"):
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))
    return importlib.import_module("conversion")


def convert(folder: Path, target: Path) -> str:
    """Write `target` in F16. Returns GGUF's name of the architecture."""
    conversion = load()
    import gguf

    from tests import tiny

    def set_vocab(self: Any) -> None:
        tiny.vocabulary(self.gguf_writer, VOCABULARY)

    settings = conversion.ModelBase.load_hparams(folder, False)
    name = conversion.get_model_architecture(settings, conversion.ModelType.TEXT)
    known = conversion.get_model_class(name)
    # The vocabulary is not what is proved: every model gets the same small one.
    kind = type("Tiny", (known,), {"model_arch": known.model_arch, "set_vocab": set_vocab})
    words = {f"<{index}>": index for index in range(VOCABULARY)}  # Gemma's part counts them
    vocabulary = {"model": {"vocab": words}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary), "utf-8")
    with torch.inference_mode():
        kind(folder, gguf.LlamaFileType.MOSTLY_F16, target, model_name="tiny").write()
    return str(gguf.MODEL_ARCH_NAMES[known.model_arch])
