"""Trains the Guide. The weights are saved regularly, so a run can be interrupted."""

import argparse
import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from guide import tokenizer as bpe
from guide.dataset import Turn, Writer, checks, load_topics, load_words
from guide.model import Llama, Shape
from guide.tokenizer import SEED, Example

BATCH_TOKENS = 2048
POOL = 24  # batches made at a time and sorted by length, to waste little on padding
PEAK_RATE = 1.5e-3
WARMUP_STEPS = 100
WEIGHT_DECAY = 0.1
DROPOUT = 0.1
QUESTION_WEIGHT = 0.15  # loss weight of a question token; that of an answer token is 1
TOKEN_NOISE = 0.04  # share of question tokens replaced by random ones
CUT_SHARE = 0.85  # share of examples that end a few tokens into the answer, where the topic is decided
CUT_AFTER = (6, 14)
SAVE_EVERY = 100


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded examples: tokens and loss weights, both [batch, n_tokens]."""

    tokens: Tensor
    weights: Tensor


def shorten(example: Example, rng: random.Random) -> Example:
    """Cut most examples soon after the beginning of the last answer, and replace a few question tokens."""
    tokens, kinds = list(example.tokens), example.kinds
    for at, kind in enumerate(kinds):
        if kind == 1 and rng.random() < TOKEN_NOISE:
            tokens[at] = rng.randrange(len(bpe.SPECIAL), bpe.VOCAB_SIZE)
    if rng.random() < CUT_SHARE:
        begin = max(at for at, kind in enumerate(kinds) if kind == 2 and kinds[at - 1] == 0)
        end = begin + rng.randint(*CUT_AFTER)
        return Example(tokens[:end], kinds[:end])
    return Example(tokens, kinds)


def collate(examples: list[Example]) -> Batch:
    """Pad the examples on the right. The weight of a token applies to predicting it."""
    width = max(len(example.tokens) for example in examples)
    tokens = torch.full((len(examples), width), bpe.PAD)
    weights = torch.zeros(len(examples), width)
    value = {0: 0.0, 1: QUESTION_WEIGHT, 2: 1.0}
    for row, example in enumerate(examples):
        size = len(example.tokens)
        tokens[row, :size] = torch.tensor(example.tokens)
        weights[row, :size] = torch.tensor([value[kind] for kind in example.kinds])
    return Batch(tokens, weights)


def batches(tokenizer: Tokenizer, seed: int) -> Iterator[Batch]:
    """Yield batches of about BATCH_TOKENS tokens indefinitely. The examples of a batch have similar lengths."""
    rng = random.Random(seed)
    writer = iter(Writer(load_topics(), load_words(), seed))
    while True:
        pool: list[Example] = []
        while sum(len(example.tokens) for example in pool) < POOL * BATCH_TOKENS:
            pool.append(shorten(bpe.encode(tokenizer, next(writer)), rng))
        pool.sort(key=lambda example: len(example.tokens))
        groups: list[list[Example]] = [[]]
        for example in pool:
            if (len(groups[-1]) + 1) * len(example.tokens) > BATCH_TOKENS:
                groups.append([])
            groups[-1].append(example)
        rng.shuffle(groups)
        yield from (collate(group) for group in groups if group)


def loss_of(model: Llama, batch: Batch) -> Tensor:
    """Return the weighted mean cross-entropy. The head is applied only to tokens with a weight."""
    targets, weights = batch.tokens[:, 1:], batch.weights[:, 1:]
    is_target = weights > 0
    with torch.autocast("cpu", torch.bfloat16):  # for matrices only; everything else stays f32
        logits = model.head(model.hidden(batch.tokens[:, :-1])[is_target])
    losses = functional.cross_entropy(logits.float(), targets[is_target], reduction="none")
    return (losses * weights[is_target]).sum() / weights.sum()


def rate(step: int, steps: int, peak: float, warm_up: int) -> float:
    """Return the learning rate of a step: a short warm-up, then a cosine decay to a hundredth."""
    if step < warm_up:
        return peak * (step + 1) / warm_up
    done = (step - warm_up) / max(1, steps - warm_up)
    return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


@torch.no_grad()
def validate(model: Llama, tokenizer: Tokenizer, turns: list[tuple[str, Turn]]) -> tuple[float, list[str]]:
    """Return the fraction of validation wordings that are answered word for word, and the topics of the others."""
    model.eval()
    missed = []
    for name, turn in turns:
        prompt = tokenizer.encode(bpe.prompt([("user", turn.question)])).ids
        answer = [*tokenizer.encode(turn.answer).ids, bpe.END]
        said = model(torch.tensor([prompt + answer]))[0, len(prompt) - 1 : -1].argmax(-1).tolist()
        if said != answer:
            missed.append(name)
    model.train()
    return 1 - len(missed) / len(turns), missed


def optimizer_for(model: Llama) -> torch.optim.AdamW:
    """Return an AdamW optimizer without weight decay for norms."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.95), fused=True)


def save(model: Llama, path: Path) -> None:
    """Write the weights to a temporary file, which then replaces the old ones."""
    part = path.with_suffix(".part.npz")
    np.savez(part, **{name: weight.numpy() for name, weight in model.state_dict().items()})
    part.replace(path)


def load(model: Llama, path: Path) -> None:
    """Set the weights of a model to those in a file that `save` has written."""
    with np.load(path) as saved:
        model.load_state_dict({name: torch.from_numpy(saved[name]) for name in saved.files})


def train(
    build: Path,
    steps: int,
    minutes: float,
    check_every: int,
    peak: float,
    warm_up: int = WARMUP_STEPS,
    start: Path | None = None,
) -> None:
    """Train for a number of steps or of minutes, whichever ends first.

    The learning rate follows whichever is closer to its end.

    start: weights to continue from, such as those of a text that has changed since. None starts from nothing.
    """
    torch.manual_seed(SEED)
    tokenizer = bpe.load(build / "tokenizer.json")
    model = Llama(Shape(), DROPOUT)
    if start is not None:
        load(model, start)
    optimizer = optimizer_for(model)
    turns = checks(load_topics())
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(turns)} validation wordings", flush=True)
    begin, mean = time.monotonic(), 0.0
    for step, batch in enumerate(batches(tokenizer, SEED)):
        passed = (time.monotonic() - begin) / 60
        done = max(step / steps, passed / minutes if minutes else 0.0)
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = min(
                rate(step, steps, peak, warm_up), rate(max(step, int(done * steps)), steps, peak, warm_up)
            )
        loss = loss_of(model, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean = loss.item() if step == 0 else 0.98 * mean + 0.02 * loss.item()
        if step % 20 == 0:
            print(f"step {step} loss {mean:.3f} done {done:.3f} {passed:.1f} min", flush=True)
        if step % SAVE_EVERY == SAVE_EVERY - 1:
            save(model, build / "weights.npz")
        if step % check_every == check_every - 1:
            share, missed = validate(model, tokenizer, turns)
            print(f"step {step} validation {share:.3f} missed {' '.join(missed)}", flush=True)
    save(model, build / "weights.npz")
    share, missed = validate(model, tokenizer, turns)
    print(f"end: validation {share:.3f} missed {' '.join(missed)}", flush=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build/guide"))
    parser.add_argument("--steps", type=int, default=4200)
    parser.add_argument("--minutes", type=float, default=0, help="end by the clock; not reproducible")
    parser.add_argument("--rate", type=float, default=PEAK_RATE, help="the peak of the learning rate")
    parser.add_argument("--warm-up", type=int, default=WARMUP_STEPS, help="steps until the peak")
    parser.add_argument("--start", type=Path, help="weights to continue from, made with the same tokenizer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check-every", type=int, default=300)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    train(
        options.build, options.steps, options.minutes, options.check_every, options.rate, options.warm_up, options.start
    )


if __name__ == "__main__":
    main()
