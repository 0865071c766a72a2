"""llama.cpp's own converter from a model folder to GGUF, extracted from the hashed source of its Python binding."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
import torch

from scripts.engine_source import fetch
from scripts.families.recipe import DROP, VOCABULARY

PROJECT = Path(__file__).resolve().parent.parent.parent
WORK = PROJECT / "build" / "families"
PARTS = ("convert_hf_to_gguf.py", "conversion/", "gguf-py/gguf/")


def load() -> Any:
    """Return the converter's module `conversion`, which requires the matching version of the gguf package."""
    folder = fetch(WORK, PARTS)
    for path in (folder, folder / "gguf-py"):
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))
    return importlib.import_module("conversion")


def convert(folder: Path, target: Path, metadata: Mapping[str, Any], *, mtp: bool) -> str:
    """Convert a model folder to a GGUF file in F16. Return its GGUF architecture name.

    metadata: overrides entries of the model's configuration.
    """
    conversion = load()
    import gguf

    from testbed import tiny

    def set_vocab(self: Any) -> None:
        tiny.vocabulary(self.gguf_writer, VOCABULARY)

    settings = conversion.ModelBase.load_hparams(folder, False) | dict(metadata)
    settings = {key: value for key, value in settings.items() if value is not DROP}
    name = conversion.get_model_architecture(settings, conversion.ModelType.TEXT)
    known = conversion.get_model_class(name)
    # The vocabulary is not what is tested, so every model gets the same small one.
    changes = {"model_arch": known.model_arch, "set_vocab": set_vocab, "no_mtp": not mtp}
    for inner in vars(known).values():  # some select a class of their own by the configuration
        if isinstance(inner, type):
            inner.set_vocab = set_vocab  # type: ignore[attr-defined]
    kind = type("Tiny", (known,), changes)
    words = {f"<{index}>": index for index in range(VOCABULARY)}  # parts of some families look into it
    tokenizers.Tokenizer(tokenizers.models.BPE(words, [])).save(str(folder / "tokenizer.json"))
    with torch.inference_mode():
        half = gguf.LlamaFileType.MOSTLY_F16
        writer = kind(folder, half, target, hparams=settings, model_name="tiny")
        writer.write()
    return str(gguf.MODEL_ARCH_NAMES[getattr(writer, "impl", writer).model_arch])
