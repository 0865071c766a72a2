"""Creates the GGUF file of a recipe's model, and the entry of the table that describes it."""

from __future__ import annotations

import base64
import hashlib
import re
import struct
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file

from scripts.families import converter, mtp
from scripts.families.recipe import WIDTH, Recipe
from scripts.families.reference import Reference, prompt, reference
from scripts.families.weights import randomize


def make(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """Write `folder/NAME.gguf`. Return its table entry with the float32 results of transformers."""
    model = build(recipe)
    said = reference(model, prompt(recipe.seed))
    target = folder / f"{recipe.name}.gguf"
    with tempfile.TemporaryDirectory() as work:
        source = Path(work)
        model.save_pretrained(source)
        complete(recipe, source / "model.safetensors")
        metadata = {**mtp.metadata(recipe), **recipe.converter_config}
        architecture = converter.convert(source, target, metadata, mtp=bool(recipe.mtp))
    return entry(recipe, model, architecture, target, said)


def build(recipe: Recipe) -> Any:
    """Return the random model in evaluation mode."""
    torch.manual_seed(recipe.seed)
    torch.set_num_threads(1)
    kind = getattr(transformers, recipe.model)
    if recipe.sees is None:
        config = kind.config_class(**recipe.sizes())
    else:
        config = kind.config_class(text_config=recipe.sizes(), vision_config=dict(recipe.sees))
    for part in (config, config.get_text_config()):
        part._attn_implementation = "eager"
        part._experts_implementation = "eager"
    model = kind(config).float().eval()
    randomize(model, recipe.seed)
    return model


def complete(recipe: Recipe, path: Path) -> None:
    """Rename saved tensors, and add the block for multi-token prediction, as in published models of the family."""
    tensors = load_file(path)
    if recipe.renamed:
        tensors = {re.sub(*recipe.renamed, name): value for name, value in tensors.items()}
    if recipe.mtp:
        tensors |= mtp.block(recipe, tensors)
    save_file(tensors, path, metadata={"format": "pt"})


def entry(recipe: Recipe, model: Any, architecture: str, target: Path, said: Reference) -> dict[str, Any]:
    """Return the table entry of a model."""
    data = target.read_bytes()
    return {
        "architecture": architecture,
        "transformers": recipe.model,
        "layers": model.config.get_text_config().num_hidden_layers,
        "mtp_layers": int(bool(recipe.mtp)),
        "width": WIDTH,
        "why": recipe.why,
        "note": recipe.note,
        "seed": recipe.seed,
        "n_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "prompt": said.prompt,
        "tokens": said.tokens,
        "margins": [round(margin, 4) for margin in said.margins],
        "logits": base64.b64encode(struct.pack(f"<{len(said.logits)}f", *said.logits)).decode(),
    }
