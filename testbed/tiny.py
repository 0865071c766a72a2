"""Small random Llama models as GGUF files. The same arguments always produce the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTROL = ("<|bos|>", "<|im_end|>", "<|im_start|>")  # IDs 0, 1 and 2; bytes begin at 3
FIRST_BYTE = len(CONTROL)
SIGN, END = FIRST_BYTE + ord("!"), 1
LOUD = 8  # gives the next token a logit of about 64, and all others about 1
MIN_VOCAB = FIRST_BYTE + 256 + 1
MAX_MERGES = 4096
MIXES = {"Q4_K_M": gguf.LlamaFileType.MOSTLY_Q4_K_M, "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}

# Standard deviation of d * scale * q - dmin * min for uniformly random bits, with dmin = 7.5 d, by enumeration.
Q4_K_STD, Q6_K_STD = 258.0, 342.0


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model. K-quants require `width` and `ffn` to be multiples of 256."""

    layers: int = 8
    width: int = 64
    heads: int = 4
    kv_heads: int = 2
    ffn: int = 128
    vocab: int = 300
    context: int = 2048
    quant: str = "F16"  # also F32, Q8_0, Q4_0, Q4_K, and Q4_K_M: Q4_K with some Q6_K
    tied: bool = False
    seed: int = 0
    template: str = TEMPLATE
    pooling: gguf.PoolingType | None = None  # how to turn a text into one vector
    architecture: str = "llama"  # or one with the same tensors, such as qwen2
    says: tuple[str, ...] = ()  # written after a "!", one token each; not for quants
    signs: tuple[str, ...] = ()  # further tokens, such as the control tokens of tool calls; `says` follow them

    @property
    def head_dim(self) -> int:
        return self.width // self.heads


def llama(path: Path, shape: Shape | None = None, **changes: Any) -> Path:
    """Write a random Llama model to `path`. `changes` override fields of the shape."""
    shape = shape or Shape(**changes)
    if shape.vocab < MIN_VOCAB:
        raise ValueError(f"a byte-level vocabulary needs {MIN_VOCAB} tokens")
    writer = gguf.GGUFWriter(str(path), shape.architecture)
    _describe(writer, shape)
    vocabulary(writer, shape.vocab, shape.template, (*shape.signs, *shape.says))
    chance = np.random.default_rng(shape.seed)
    matrices = {name: _matrix(chance, rows, columns, quant) for name, rows, columns, quant in _matrices(shape)}
    if shape.says:
        _teach(shape, matrices)
    for name, _, _, quant in _matrices(shape):
        _add(writer, name, quant, matrices[name])
    for name in _norms(shape):
        weights = 1 + 0.2 * chance.standard_normal(shape.width)
        writer.add_tensor(name, weights.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _describe(writer: gguf.GGUFWriter, shape: Shape) -> None:
    writer.add_name(f"tiny {shape.layers} x {shape.width}")
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape.vocab)
    if shape.pooling is not None:
        writer.add_pooling_type(shape.pooling)
    if shape.quant in MIXES:
        writer.add_file_type(MIXES[shape.quant])


def vocabulary(writer: gguf.GGUFWriter, n_vocab: int, template: str = TEMPLATE, words: tuple[str, ...] = ()) -> None:
    """Write a GPT-2-style vocabulary of bytes, control tokens, a few merges and, at the end, `words`."""
    letters = [chr(code) for code in _byte_letters()]
    tokens, kinds = [*CONTROL, *letters], [gguf.TokenType.CONTROL] * FIRST_BYTE
    kinds += [gguf.TokenType.NORMAL] * len(letters)
    lower = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pairs = [(a, b) for b in lower for a in ["\u0120", *lower]]  # U+0120 is a space
    merges = pairs[: min(n_vocab - len(tokens) - len(words), MAX_MERGES)]
    tokens += [a + b for a, b in merges]
    kinds += [gguf.TokenType.NORMAL] * len(merges)
    unused = [f"<unused_{index}>" for index in range(n_vocab - len(tokens) - len(words))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*tokens, *unused, *words])
    kinds += [gguf.TokenType.UNUSED] * len(unused)
    writer.add_token_types(kinds + [gguf.TokenType.USER_DEFINED] * len(words))
    writer.add_token_merges([f"{a} {b}" for a, b in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(True)
    writer.add_chat_template(template)


def _byte_letters() -> list[int]:
    """Return the character that GPT-2 uses for each byte: the byte itself if printable, or one from U+0100 on."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [byte if byte in plain else next(spare) for byte in range(256)]


def _matrices(shape: Shape) -> list[tuple[str, int, int, str]]:
    """Return the name, rows, columns and type of each weight matrix."""
    base = "Q4_K" if shape.quant == "Q4_K_M" else shape.quant
    fine = "Q6_K" if shape.quant == "Q4_K_M" else base
    kv = shape.head_dim * shape.kv_heads
    matrices = [("token_embd.weight", shape.vocab, shape.width, fine if shape.tied else base)]
    if not shape.tied:
        matrices.append(("output.weight", shape.vocab, shape.width, fine))
    for layer in range(shape.layers):
        # llama.cpp's rule for Q4_K_M: the first and last eighth, and every third between
        edge = layer < shape.layers // 8 or layer >= 7 * shape.layers // 8
        better = fine if edge or (layer - shape.layers // 8) % 3 == 2 else base
        name = f"blk.{layer}."
        matrices += [
            (name + "attn_q.weight", shape.width, shape.width, base),
            (name + "attn_k.weight", kv, shape.width, base),
            (name + "attn_v.weight", kv, shape.width, better),
            (name + "attn_output.weight", shape.width, shape.width, base),
            (name + "ffn_gate.weight", shape.ffn, shape.width, base),
            (name + "ffn_up.weight", shape.ffn, shape.width, base),
            (name + "ffn_down.weight", shape.width, shape.ffn, better),
        ]
    return matrices


def _teach(shape: Shape, matrices: dict[str, NDArray[Any]]) -> None:
    """Make each token of `says` predict the next one.

    The layers contribute nothing, so the output depends only on the last token. Each pair of tokens has its own
    direction.
    """
    for name, matrix in matrices.items():
        if name.endswith(("attn_output.weight", "ffn_down.weight")):
            matrix[:] = 0
    known, output = matrices["token_embd.weight"], matrices["output.weight"]
    order = [SIGN, *range(shape.vocab - len(shape.says), shape.vocab), END]
    known[:, : len(order) - 1] = 0
    for direction, (before, after) in enumerate(pairwise(order)):
        known[before], output[after] = 0, 0
        known[before, direction], output[after, direction] = 1, LOUD


def _norms(shape: Shape) -> list[str]:
    layers = range(shape.layers)
    pairs = [f"blk.{layer}.{kind}_norm.weight" for layer in layers for kind in ("attn", "ffn")]
    return [*pairs, "output_norm.weight"]


def _matrix(chance: np.random.Generator, rows: int, columns: int, quant: str) -> NDArray[Any]:
    """Return a random matrix that preserves the magnitude of its inputs."""
    std = columns**-0.5
    if quant in ("Q4_K", "Q6_K"):
        return _k_quant(chance, rows, columns, quant, std)
    matrix: NDArray[Any] = std * chance.standard_normal((rows, columns), dtype=np.float32)
    if quant in ("F32", "F16"):
        return matrix.astype(np.float32 if quant == "F32" else np.float16)
    matrix = gguf.quants.quantize(matrix.astype(np.float32), gguf.GGMLQuantizationType[quant])
    return matrix


def _k_quant(chance: np.random.Generator, rows: int, columns: int, quant: str, std: float) -> NDArray[np.uint8]:
    """Return random quantized blocks. The gguf package can read K-quants but not write them."""
    if columns % 256:
        raise ValueError(f"{quant} needs rows of a multiple of 256 values, not {columns}")
    size = 144 if quant == "Q4_K" else 210
    blocks = chance.integers(0, 256, (rows * columns // 256, size), dtype=np.uint8)
    if quant == "Q4_K":  # d, dmin, 12 bytes of scales, 128 of quants
        scale = np.array([std / Q4_K_STD, 7.5 * std / Q4_K_STD], dtype=np.float16)
        blocks[:, :4] = scale.view(np.uint8)
    else:  # 128 + 64 bytes of quants, 16 signed scales, d
        blocks[:, 192:208] = (blocks[:, 192:208].view(np.int8) // 4).view(np.uint8)
        blocks[:, 208:] = np.array([std / Q6_K_STD], dtype=np.float16).view(np.uint8)
    matrix: NDArray[np.uint8] = blocks.reshape(rows, -1)
    return matrix


def _add(writer: gguf.GGUFWriter, name: str, quant: str, data: NDArray[Any]) -> None:
    kind = gguf.GGMLQuantizationType["Q4_K" if quant == "Q4_K_M" else quant]
    raw = kind if quant not in ("F32", "F16") else None
    writer.add_tensor(name, data, raw_dtype=raw)
