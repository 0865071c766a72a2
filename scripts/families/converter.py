"""llama.cpp's own converter, taken from the hashed source of its binding: model folder -> GGUF."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
import torch

from scripts.families.recipe import DROP, VOCABULARY

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


def convert(folder: Path, target: Path, told: Mapping[str, Any], *, mtp: bool) -> str:
    """Write `target` in F16; `told` goes over the model's configuration. Returns GGUF's name of the architecture."""
    conversion = load()
    import gguf

    from tests import tiny

    def set_vocab(self: Any) -> None:
        tiny.vocabulary(self.gguf_writer, VOCABULARY)

    settings = conversion.ModelBase.load_hparams(folder, False) | dict(told)
    settings = {key: value for key, value in settings.items() if value is not DROP}
    name = conversion.get_model_architecture(settings, conversion.ModelType.TEXT)
    known = conversion.get_model_class(name)
    # The vocabulary is not what is proved: every model gets the same small one.
    changes = {"model_arch": known.model_arch, "set_vocab": set_vocab, "no_mtp": not mtp}
    for inner in vars(known).values():  # some choose a class of their own by the configuration
        if isinstance(inner, type):
            inner.set_vocab = set_vocab  # type: ignore[attr-defined]
    kind = type("Tiny", (known,), changes)
    words = {
        f"<{index}>": index for index in range(VOCABULARY)
    }  # some families' parts look into it
    tokenizers.Tokenizer(tokenizers.models.BPE(words, [])).save(str(folder / "tokenizer.json"))
    with torch.inference_mode():
        half = gguf.LlamaFileType.MOSTLY_F16
        writer = kind(folder, half, target, hparams=settings, model_name="tiny")
        writer.write()
    return str(gguf.MODEL_ARCH_NAMES[getattr(writer, "impl", writer).model_arch])
