"""Lets the large model answer questions, and stores its answers with its likeliest tokens at each position."""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from torch.nn import functional

from guide.model import rotate, rotation
from scripts.drafts.files import LlamaFile
from scripts.drafts.prompts import questions

SEED = 20261201
PROMPT = "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"  # as its chat template says
END = "<|im_end|>"
TOP = 8  # likeliest tokens stored at each position
WARM = 0.7  # temperature of every second answer; the others are greedy


def read_tokenizer(reader: GGUFReader) -> Tokenizer:
    """Return the tokenizer of SmolLM2."""
    tokens, merges = (reader.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE({token: at for at, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = reader.fields["tokenizer.ggml.token_type"].contents()
    tokenizer.add_special_tokens([token for token, kind in zip(tokens, kinds, strict=True) if kind == 3])
    return tokenizer


class Teacher:
    """The large model, which answers many questions at once. Matrices are bf16."""

    def __init__(self, file: LlamaFile) -> None:
        self.shape = file.shape()
        self._file = file
        self._weights: dict[str, Tensor] = {}
        self._cos, self._sin = (part.to(torch.float32) for part in rotation(self.shape))

    def _matrix(self, name: str) -> Tensor:
        if name not in self._weights:
            self._weights[name] = self._file.weight(name).to(torch.bfloat16)
        return self._weights[name]

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight = self._matrix(name).float()
        return functional.rms_norm(x, weight.shape, weight, self.shape.rms_norm_eps).to(torch.bfloat16)

    def forward(self, tokens: Tensor, places: Tensor, begins: Tensor, cache: Tensor, start: int) -> Tensor:
        """Return the logits of the last position, [batch, n_vocab].

        tokens, places: token ids and positions, [batch, n]. begins: the cell in which each answer's prompt begins,
        [batch]. cache: keys and values, [layers, 2, batch, heads, cells, head_dim], filled up to `start`.
        """
        shape, (batch, n) = self.shape, tokens.shape
        x = functional.embedding(tokens, self._matrix("token_embd.weight")).float()
        cos, sin = self._cos[places].unsqueeze(1), self._sin[places].unsqueeze(1)
        cells = torch.arange(start + n)
        seen = (cells >= begins[:, None])[:, None, None] & (cells <= torch.arange(start, start + n)[:, None])
        seen = seen | (cells == torch.arange(start, start + n)[:, None])  # padding sees itself
        seen = seen.repeat(1, 1, shape.n_heads // shape.n_kv_heads, 1)
        for layer in range(shape.n_layers):
            at = f"blk.{layer}."
            h = self._norm(x, at + "attn_norm.weight")
            q, k, v = (
                functional.linear(h, self._matrix(f"{at}attn_{part}.weight"))
                .view(batch, n, -1, shape.head_dim)
                .transpose(1, 2)
                for part in "qkv"
            )
            cache[layer, 0, :, :, start : start + n] = rotate(k.float(), cos, sin).to(torch.bfloat16)
            cache[layer, 1, :, :, start : start + n] = v
            keys, values = (cache[layer, i, :, :, : start + n] for i in (0, 1))
            # the query heads of a group become rows of their key/value head, so that no key is copied
            q = rotate(q.float(), cos, sin).to(torch.bfloat16).reshape(batch, shape.n_kv_heads, -1, shape.head_dim)
            mixed = functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen)
            mixed = mixed.reshape(batch, shape.n_heads, n, -1).transpose(1, 2).reshape(batch, n, -1)
            x = x + functional.linear(mixed, self._matrix(at + "attn_output.weight")).float()
            h = self._norm(x, at + "ffn_norm.weight")
            inner = functional.silu(functional.linear(h, self._matrix(at + "ffn_gate.weight")))
            inner = inner * functional.linear(h, self._matrix(at + "ffn_up.weight"))
            x = x + functional.linear(inner, self._matrix(at + "ffn_down.weight")).float()
        return functional.linear(self._norm(x[:, -1], "output_norm.weight"), self._matrix("token_embd.weight")).float()


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of equal length, padded. `begins`: where each answer begins; `ends`: behind its last token."""

    tokens: np.ndarray  # int32 [batch, cells]
    begins: np.ndarray
    ends: np.ndarray
    top_ids: np.ndarray  # int32 [batch, cells, TOP]: the likeliest tokens at each cell, given all cells before
    top_logits: np.ndarray  # float16, relative to the logarithm of the sum over all tokens


@torch.no_grad()
def answer(teacher: Teacher, prompts: Sequence[Sequence[int]], n_most: int, end: int, seed: int) -> Answers:
    """Answer all prompts at once, every second one with random tokens."""
    generator = torch.Generator().manual_seed(seed)
    shape, batch, width = teacher.shape, len(prompts), max(map(len, prompts))
    cells = width + n_most
    cache = torch.zeros((shape.n_layers, 2, batch, shape.n_kv_heads, cells, shape.head_dim), dtype=torch.bfloat16)
    tokens = torch.zeros((batch, cells), dtype=torch.int64)
    begins = torch.tensor([width - len(prompt) for prompt in prompts])
    for row, prompt in enumerate(prompts):
        tokens[row, width - len(prompt) : width] = torch.tensor(prompt)
    ids = torch.zeros((batch, cells, TOP), dtype=torch.int32)
    logits = torch.zeros((batch, cells, TOP), dtype=torch.float16)
    ends = torch.full((batch,), cells)
    places = (torch.arange(width) - begins[:, None]).clamp(min=0)
    scores = teacher.forward(tokens[:, :width], places, begins, cache, 0)
    for cell in range(width, cells):
        best = (scores - scores.logsumexp(-1, keepdim=True)).topk(TOP)
        ids[:, cell], logits[:, cell] = best.indices.int(), best.values.half()
        drawn = torch.multinomial((best.values / WARM).softmax(-1), 1, generator=generator)[:, 0]
        drawn[::2] = 0
        tokens[:, cell] = best.indices.gather(1, drawn[:, None])[:, 0]
        ends = torch.where((tokens[:, cell] == end) & (ends == cells), cell + 1, ends)
        if cell + 1 == cells or (ends <= cell + 1).all():
            break
        scores = teacher.forward(tokens[:, cell : cell + 1], (cell - begins)[:, None], begins, cache, cell)
    return Answers(tokens.int().numpy(), begins.int().numpy(), ends.int().numpy(), ids.numpy(), logits.numpy())


def save(answers: Answers, n_prompts: Sequence[int], path: Path) -> int:
    """Append the answers one after the other, without padding, to a new file. Return their number of tokens."""
    rows = [
        (answers.tokens[i, b:e], answers.top_ids[i, b:e], answers.top_logits[i, b:e])
        for i, (b, e) in enumerate(zip(answers.begins, answers.ends, strict=True))
    ]
    part = path.with_suffix(".part.npz")
    np.savez(
        part,
        tokens=np.concatenate([row[0] for row in rows]),
        top_ids=np.concatenate([row[1] for row in rows]),
        top_logits=np.concatenate([row[2] for row in rows]),
        lengths=np.array([len(row[0]) for row in rows], dtype=np.int32),
        prompts=np.array(n_prompts, dtype=np.int32),
    )
    part.replace(path)
    return sum(len(row[0]) for row in rows) - sum(n_prompts)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="the GGUF file of SmolLM2")
    parser.add_argument("--build", type=Path, default=Path("build/drafts"))
    parser.add_argument("--files", type=int, default=8, help="each with the answers to `--batch` questions")
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--tokens", type=int, default=224, help="the longest answer")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    (options.build / "answers").mkdir(parents=True, exist_ok=True)
    teacher = Teacher(LlamaFile(options.model))
    tokenizer = read_tokenizer(GGUFReader(options.model))
    end = tokenizer.token_to_id(END)
    waiting = questions(SEED)
    for number in range(options.files):
        chosen = list(islice(waiting, options.batch))
        path = options.build / "answers" / f"{number:03}.npz"
        if path.exists():
            continue
        began = time.monotonic()
        texts = [PROMPT.format(system=SYSTEM, question=question) for _, question in chosen]
        prompts = [tokenizer.encode(text).ids for text in texts]
        n = save(answer(teacher, prompts, options.tokens, end, SEED + number), [len(p) for p in prompts], path)
        print(f"{path.name}: {n} tokens, {n / (time.monotonic() - began):.0f} tok/s", flush=True)


if __name__ == "__main__":
    main()
