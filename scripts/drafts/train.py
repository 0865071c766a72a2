"""Trains the draft model on the large model's answers, starting from some of the large model's own layers."""

import argparse
import math
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from guide.export import gguf_name
from guide.model import Layer, Norm, Shape, rotation
from scripts.drafts.files import LlamaFile
from scripts.drafts.teacher import SEED

LAYERS = (0, 1, 29)  # of the large model: the first ones read its embedding, the last one writes for its head
N_IDS = 8192  # tokens that the draft can propose, the most frequent ones of the answers
BATCH_TOKENS = 2048
PEAK_RATE = 6e-4
WARMUP_STEPS = 50
WEIGHT_DECAY = 0.05
HELD_FILES, HELD_ANSWERS = 1, 48  # the first files of answers are only for validation


@dataclass(frozen=True, slots=True)
class Example:
    """One question and its answer, with the large model's likeliest tokens at each position."""

    tokens: np.ndarray
    n_prompt: int
    top_ids: np.ndarray
    top_logits: np.ndarray


def read_answers(path: Path) -> list[Example]:
    """Read a file written by drafts.teacher."""
    with np.load(path) as saved:
        arrays = {name: saved[name] for name in saved.files}
    examples, first = [], 0
    for length, n_prompt in zip(arrays["lengths"], arrays["prompts"], strict=True):
        part = slice(first, first := first + int(length))
        examples.append(
            Example(
                arrays["tokens"][part].astype(np.int64),
                int(n_prompt),
                arrays["top_ids"][part].astype(np.int64),
                arrays["top_logits"][part].astype(np.float32),
            )
        )
    return examples


def frequent_ids(examples: Sequence[Example], n: int) -> np.ndarray:
    """Return the ids of the `n` most frequent tokens, in ascending order."""
    counts = Counter[int]()
    for example in examples:
        counts.update(example.tokens.tolist())
        counts.update(example.top_ids[example.n_prompt :, :2].ravel().tolist())
    return np.array(sorted(token for token, _ in counts.most_common(n)), dtype=np.int32)


class Draft(nn.Module):
    """A few layers and a head for part of the vocabulary. Inputs are rows of the large model's embedding."""

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: Shape, embedding: Tensor) -> None:
        """shape: its vocabulary is that of the head. embedding: of the large model, [n_vocab, hidden_size]; fixed."""
        super().__init__()
        self.shape = shape
        self.register_buffer("rows", embedding, persistent=False)
        self.layers = nn.ModuleList(Layer(shape, 0.0) for _ in range(shape.n_layers))
        self.norm = Norm(shape.hidden_size, shape.rms_norm_eps)
        self.embedding = nn.Embedding(shape.vocab_size, shape.hidden_size)  # the head; GGUF calls it so
        cos, sin = rotation(shape)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def hidden(self, tokens: Tensor) -> Tensor:
        """Return the normalized hidden states, [batch, n, hidden_size]. tokens: ids of the large model, [batch, n]."""
        rows: Tensor = self.get_buffer("rows")
        x = functional.embedding(tokens, rows)
        for layer in self.layers:
            x = layer(x, self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]])
        out: Tensor = self.norm(x)
        return out

    def head(self, states: Tensor) -> Tensor:
        """Return the logits for hidden states, [..., N_IDS]."""
        return functional.linear(states, self.embedding.weight)


def new_draft(file: LlamaFile, ids: np.ndarray, layers: Sequence[int]) -> Draft:
    """Return a draft that begins with these layers of the large model."""
    shape = replace(file.shape(), n_layers=len(layers), vocab_size=len(ids))
    rows = file.weight("token_embd.weight")
    draft = Draft(shape, rows)
    weights = {}
    for name, like in draft.state_dict().items():
        match name.split("."):
            case ["embedding", "weight"]:
                weights[name] = rows[torch.from_numpy(ids.astype(np.int64))]
            case ["layers", number, *rest]:
                weights[name] = file.weight(gguf_name(".".join(["layers", str(layers[int(number)]), *rest])))
            case _:
                weights[name] = file.weight(gguf_name(name))
        weights[name] = weights[name].reshape(like.shape)
    draft.load_state_dict(weights)
    return draft


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded examples. `top` counts in the draft's own ids; a weight of 0 marks what it cannot propose."""

    tokens: Tensor  # [batch, n]
    is_answer: Tensor  # [batch, n - 1]: whether the next token belongs to an answer
    top: Tensor  # [n_answer_tokens, TOP]
    chances: Tensor  # the same shape: the large model's probabilities
    best: Tensor  # [n_answer_tokens]: the large model's likeliest token, in its own ids


def collate(examples: Sequence[Example], known: np.ndarray) -> Batch:
    """Pad the examples on the right. known: the draft's id of each token of the large model, or -1."""
    width = max(len(example.tokens) for example in examples)
    tokens = torch.zeros((len(examples), width), dtype=torch.int64)
    is_answer = torch.zeros((len(examples), width - 1), dtype=torch.bool)
    for row, example in enumerate(examples):
        tokens[row, : len(example.tokens)] = torch.from_numpy(example.tokens)
        is_answer[row, example.n_prompt - 1 : len(example.tokens) - 1] = True
    top_ids = np.concatenate([example.top_ids[example.n_prompt :] for example in examples])
    chances = np.exp(np.concatenate([example.top_logits[example.n_prompt :] for example in examples]))
    top = known[top_ids]
    chances[top < 0] = 0
    return Batch(
        tokens, is_answer, torch.from_numpy(np.maximum(top, 0)), torch.from_numpy(chances),
        torch.from_numpy(top_ids[:, 0]),
    )  # fmt: skip


def batches(examples: Sequence[Example], known: np.ndarray, rng: random.Random) -> Iterator[Batch]:
    """Yield batches of about BATCH_TOKENS tokens, of examples of similar length, once each."""
    order = sorted(examples, key=lambda example: len(example.tokens) + rng.random() * 20)
    groups: list[list[Example]] = [[]]
    for example in order:
        if (len(groups[-1]) + 1) * len(example.tokens) > BATCH_TOKENS:
            groups.append([])
        groups[-1].append(example)
    rng.shuffle(groups)
    for group in groups:
        if group:
            yield collate(group, known)


def loss_of(draft: Draft, batch: Batch) -> Tensor:
    """Return the mean cross-entropy to the large model's probabilities."""
    with torch.autocast("cpu", torch.bfloat16):
        logits = draft.head(draft.hidden(batch.tokens)[:, :-1][batch.is_answer])
    logs = logits.float().log_softmax(-1).gather(1, batch.top)
    return -(batch.chances * logs).sum() / batch.chances.sum()


@torch.no_grad()
def agreement(draft: Draft, examples: Sequence[Example], ids: np.ndarray, known: np.ndarray) -> tuple[float, float]:
    """Return how often the draft's likeliest token is the large model's, and the mean length of right runs."""
    right, runs = [], []
    mine = torch.from_numpy(ids.astype(np.int64))
    for example in examples:
        batch = collate([example], known)
        with torch.autocast("cpu", torch.bfloat16):
            logits = draft.head(draft.hidden(batch.tokens)[:, :-1][batch.is_answer])
        hits = (mine[logits.argmax(-1)] == batch.best).tolist()
        right += hits
        length = 0
        for hit in hits:
            if not hit:
                runs.append(length)
            length = length + 1 if hit else 0
    return sum(right) / max(1, len(right)), sum(runs) / max(1, len(runs))


def rate(step: int, steps: int, peak: float) -> float:
    """Return the learning rate of a step: a short warm-up, then a cosine decay to a twentieth."""
    if step < WARMUP_STEPS:
        return peak * (step + 1) / WARMUP_STEPS
    done = (step - WARMUP_STEPS) / max(1, steps - WARMUP_STEPS)
    return peak * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def save(draft: Draft, ids: np.ndarray, path: Path) -> None:
    """Write the weights, under their GGUF names, to a temporary file. Then rename it to `path`."""
    part = path.with_suffix(".part.npz")
    weights = {gguf_name(name): weight.detach().numpy() for name, weight in draft.state_dict().items()}
    np.savez(part, ids=ids, **weights)
    part.replace(path)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="the GGUF file of SmolLM2")
    parser.add_argument("--build", type=Path, default=Path("build/drafts"))
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--layers", type=int, nargs="+", default=LAYERS)
    parser.add_argument("--rate", type=float, default=PEAK_RATE)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    files = sorted((options.build / "answers").glob("[0-9]*.npz"))
    held = [example for path in files[:HELD_FILES] for example in read_answers(path)][:HELD_ANSWERS]
    examples = [example for path in files[HELD_FILES:] for example in read_answers(path)]
    ids = frequent_ids(examples, N_IDS)
    file = LlamaFile(options.model)
    known = np.full(file.shape().vocab_size, -1, dtype=np.int64)
    known[ids] = np.arange(len(ids))
    draft = new_draft(file, ids, options.layers)
    matrices = [p for p in draft.parameters() if p.ndim > 1]
    norms = [p for p in draft.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": norms, "weight_decay": 0.0}], betas=(0.9, 0.95)
    )
    step, began, recent = 0, time.monotonic(), 0.0
    while step < options.steps:
        for batch in batches(examples, known, rng):
            for group in optimizer.param_groups:
                group["lr"] = rate(step, options.steps, options.rate)
            loss = loss_of(draft, batch)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(draft.parameters(), 1.0)
            optimizer.step()
            recent = 0.98 * recent + 0.02 * loss.item() if step else loss.item()
            step += 1
            if step % 50 == 0 or step == options.steps:
                share, length = agreement(draft, held, ids, known)
                print(
                    f"step {step}: loss {recent:.3f}; agrees on {share:.1%} of {len(held)} held-back answers' tokens, "
                    f"right runs of {length:.2f}; {time.monotonic() - began:.0f} s",
                    flush=True,
                )
                save(draft, ids, options.build / "weights.npz")
            if step == options.steps:
                break


if __name__ == "__main__":
    main()
