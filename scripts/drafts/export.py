"""Exports the trained draft as GGUF, with the tokens of the large model that its head proposes."""

import argparse
import os
from pathlib import Path

import gguf
import numpy as np

from backends.llamacpp.draft_model import IDS_KEY, TOKENIZER_KEY, tokenizer_hash

NAME = "SmolLM2 draft"
MATRICES = {"q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_1": gguf.GGMLQuantizationType.Q4_1}
COPIED = (  # facts that a draft shares with the large model
    "context_length", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv",
    "rope.dimension_count", "rope.freq_base", "attention.layer_norm_rms_epsilon",
)  # fmt: skip


def add_facts(writer: gguf.GGUFWriter, model: gguf.GGUFReader, n_layers: int, n_ids: int) -> None:
    """Write the draft's name, license and sizes."""
    writer.add_name(NAME)
    writer.add_license("Apache-2.0")
    for key in COPIED:
        value = model.fields[f"llama.{key}"].contents()
        add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        add(f"llama.{key}", value)
    writer.add_block_count(n_layers)
    writer.add_vocab_size(n_ids)
    writer.add_tokenizer_model("none")


def export(model: Path, build: Path, out: Path, kind: gguf.GGMLQuantizationType) -> None:
    """Write the GGUF to a temporary file, then rename it to `out`."""
    with np.load(build / "weights.npz") as saved:
        weights = {name: saved[name] for name in saved.files}
    ids = weights.pop("ids")
    n_layers = len({name.split(".")[1] for name in weights if name.startswith("blk.")})
    part = out.with_suffix(".part")
    writer = gguf.GGUFWriter(str(part), "llama")
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    add_facts(writer, gguf.GGUFReader(model), n_layers, len(ids))
    writer.add_array(IDS_KEY, ids.tolist())
    writer.add_string(TOKENIZER_KEY, tokenizer_hash(str(model)))
    for name, values in weights.items():
        if values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(part, out)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="the GGUF file of SmolLM2")
    parser.add_argument("--build", type=Path, default=Path("build/drafts"))
    parser.add_argument("--out", type=Path, default=Path("build/drafts/smollm2-draft.gguf"))
    parser.add_argument("--matrices", choices=MATRICES, default="q4_1")
    options = parser.parse_args()
    export(options.model, options.build, options.out, MATRICES[options.matrices])
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
