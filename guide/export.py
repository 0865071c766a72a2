"""Exports the trained Guide as GGUF: Q8_0 matrices (or f32, for comparison), tokenizer and chat template."""

import argparse
import json
import os
from pathlib import Path

import gguf
import numpy as np
import torch

from guide import tokenizer as bpe
from guide.model import Llama, Shape

NAME = "Poolhouse Guide"
LAYER_NAMES = {
    "attention_norm": "attn_norm",
    "attention.q": "attn_q",
    "attention.k": "attn_k",
    "attention.v": "attn_v",
    "attention.o": "attn_output",
    "ffn_norm": "ffn_norm",
    "ffn.gate": "ffn_gate",
    "ffn.up": "ffn_up",
    "ffn.down": "ffn_down",
}


def gguf_name(name: str) -> str:
    """Return the GGUF name of a weight. The head has none, because it shares the matrix of the embedding."""
    match name.split("."):
        case ["embedding", "weight"]:
            return "token_embd.weight"
        case ["norm", "weight"]:
            return "output_norm.weight"
        case ["layers", number, *parts, "weight"]:
            return f"blk.{number}.{LAYER_NAMES['.'.join(parts)]}.weight"
    raise ValueError(f"no GGUF name for {name}")


def add_facts(writer: gguf.GGUFWriter, shape: Shape) -> None:
    """Write the model's name, license and sizes."""
    writer.add_name(NAME)
    writer.add_description("Answers questions about using Poolhouse. Trained by the project on its own text.")
    writer.add_license("Apache-2.0")
    writer.add_languages(["en"])
    writer.add_context_length(shape.context_length)
    writer.add_embedding_length(shape.hidden_size)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.intermediate_size)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_layer_norm_rms_eps(shape.rms_norm_eps)
    writer.add_vocab_size(shape.vocab_size)


def add_tokenizer(writer: gguf.GGUFWriter, path: Path) -> None:
    """Write the byte-level BPE tokenizer, its special tokens and the chat template."""
    model = json.loads(path.read_text("utf-8"))["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    special = set(bpe.SPECIAL)
    kinds = [gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(bpe.PAD)
    writer.add_eos_token_id(bpe.END)
    writer.add_eot_token_id(bpe.END)
    writer.add_pad_token_id(bpe.PAD)
    writer.add_add_bos_token(False)
    writer.add_chat_template(bpe.TEMPLATE)


def add_weights(writer: gguf.GGUFWriter, weights: dict[str, torch.Tensor], whole: bool) -> None:
    """Write all weights: matrices as Q8_0, or as f32 if `whole`, and norms as f32."""
    for name, weight in weights.items():
        values = weight.detach().to(torch.float32).numpy()
        if values.ndim == 1 or whole:
            writer.add_tensor(gguf_name(name), values.astype(np.float32))
        else:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, kind), raw_dtype=kind)


def export(build: Path, out: Path, whole: bool = False) -> None:
    """Write the GGUF to a temporary file, then rename it to `out`."""
    shape = Shape()
    with np.load(build / "weights.npz") as saved:
        weights = {name: torch.from_numpy(saved[name]) for name in saved.files}
    Llama(shape).load_state_dict(weights)  # raises an error for weights of another shape
    part = out.with_suffix(".part")
    writer = gguf.GGUFWriter(str(part), "llama")
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32 if whole else gguf.LlamaFileType.MOSTLY_Q8_0)
    add_facts(writer, shape)
    add_tokenizer(writer, build / "tokenizer.json")
    add_weights(writer, weights, whole)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(part, out)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build/guide"))
    parser.add_argument("--out", type=Path, default=Path("resources/guide.gguf"))
    parser.add_argument("--f32", action="store_true")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    export(options.build, options.out, options.f32)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
