"""`python -m tests.cards.real_case guide`, `smollm2` or `gemma3`: a real model in three stages, two on the device.

The Guide runs in real, confined workers. It is asked its own questions, eight at once, and the answers are compared
with those of the same pipeline on the processor. The others run in one process and read eight texts token by token; the
probabilities of the next tokens are compared by their Kullback–Leibler divergence. With --float32, the weights are
converted to float32 first, because the processor rounds hidden states only where it multiplies quantized weights. With
--exact, device and processor are both compared with the processor in float32, which shows whose rounding it is.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from app.catalog.shelf import Entry
from app.inference.worker.tokenizer import TextWorker
from backends.contract import Segment
from backends.llamacpp import binding
from backends.llamacpp.stage import LlamaStage
from scripts.real_models import GEMMA3, SMOLLM2, folder
from tests.cards.device import PROJECT, VULKAN0, environment, library, on_device
from tests.cards.worker_pipeline import placed
from tests.families import proof
from tests.families.home import Home
from tests.families.line import Line
from tests.inference.pool import answer, request

GUIDE, GUIDE_QUESTIONS = PROJECT / "resources" / "guide.gguf", PROJECT / "guide" / "prompts.txt"
GUIDE_CUTS = (2, 5)
CPU = ""
PROCESSOR, DEVICE = (CPU, CPU, CPU), (CPU, VULKAN0, VULKAN0)
ONE_OF_THREE = (CPU, VULKAN0, CPU)
ALL_THREE = (VULKAN0, VULKAN0, VULKAN0)
AT_ONCE = 8
MAX_TOKENS = 32
N_POSITIONS = 25  # of each text
Answers = list[list[int]]


async def answers(home: Home, entry: Entry, devices: Sequence[str], prompts: Answers, ends: Sequence[int]) -> Answers:
    """Return the greedy answers, AT_ONCE at a time."""
    async with placed(home, entry, GUIDE_CUTS, devices, slots=AT_ONCE) as made:
        left = asyncio.Semaphore(AT_ONCE)

        async def ask(prompt: list[int]) -> list[int]:
            async with left:
                ids, _ = await answer(made.pipeline, request(prompt, MAX_TOKENS, end=ends))
                return ids

        return list(await asyncio.gather(*map(ask, prompts)))


async def guide(home: Home, n_questions: int, devices: Sequence[str] = DEVICE) -> dict[str, Any]:
    """Return how many of the Guide's answers are the same, token for token."""
    entry = home.shelf.import_file(GUIDE)
    questions = [json.loads(line) for line in GUIDE_QUESTIONS.read_text("utf-8").splitlines() if line][:n_questions]
    async with await TextWorker.open(str(GUIDE)) as text:
        prompts = [list((await text.prompt([{"role": "user", "content": each}])).ids) for each in questions]
        ends = text.vocabulary.end_tokens
    expected = await answers(home, entry, PROCESSOR, prompts, ends)
    began = time.monotonic()
    computed = await answers(home, entry, devices, prompts, ends)
    pairs = list(zip(expected, computed, strict=True))
    return {
        "answers": len(pairs),
        "same": sum(ours == other for ours, other in pairs),
        "tokens": sum(map(len, expected)),
        "seconds": round(time.monotonic() - began, 1),
    }


def divergences(
    home: Home, file: Path, texts: Answers, devices: Sequence[str] = DEVICE, reference: Path | None = None
) -> dict[str, Any]:
    """Return the mean and the largest divergence over N_POSITIONS of each text.

    reference: the file that the processor computes, if it is another one.
    """
    entries = [home.shelf.import_file(each) for each in (reference or file, file)]
    began = time.monotonic()
    expected, computed = (
        logits(home, entry, each, texts) for entry, each in zip(entries, (PROCESSOR, devices), strict=True)
    )
    kl = [divergence(row, computed[key]) for key, row in expected.items()]
    return {
        "positions": len(kl),
        "mean_kl": float(np.mean(kl)),
        "largest_kl": float(np.max(kl)),
        "same_tokens": sum(int(row.argmax()) == int(computed[key].argmax()) for key, row in expected.items()),
        "seconds": round(time.monotonic() - began, 1),
    }


def logits(home: Home, entry: Entry, devices: Sequence[str], texts: Answers) -> dict[tuple[int, int], Any]:
    """Return the logits after each position of the texts, by slot and position."""
    n_layers = entry.model.n_layers
    runs = proof.runs(n_layers, (n_layers // 3, 2 * n_layers // 3))
    configs = [
        replace(on_device(home.config(entry, *run, apart=False), device), slots=len(texts), kv_cells=len(texts) * 64)
        for run, device in zip(runs, devices, strict=True)
    ]
    seen: dict[tuple[int, int], Any] = {}
    with Line(configs) as line:
        for slot in range(len(texts)):
            line.begin(slot, 1)
        for pos in range(N_POSITIONS):
            segments = [Segment(slot, 1, pos) for slot in range(len(texts))]
            for slot, row in line.step(segments, [text[pos] for text in texts]).items():
                seen[slot, pos] = row.astype(np.float64)
    return seen


def divergence(expected: Any, computed: Any) -> float:
    """Return the Kullback–Leibler divergence of the probabilities, in nats."""
    p, q = (row - row.max() - np.log(np.exp(row - row.max()).sum()) for row in (expected, computed))
    return float((np.exp(p) * (p - q)).sum())


def in_float32(file: Path, copy: Path) -> Path:
    """Write a copy of a model whose weights are the same numbers in float32, and return its path."""
    llama = binding.load()
    options = llama.llama_model_quantize_default_params()
    options.ftype, options.allow_requantize = 0, True  # LLAMA_FTYPE_ALL_F32
    assert llama.llama_model_quantize(str(file).encode(), str(copy).encode(), ctypes.byref(options)) == 0
    return copy


async def passages(file: Path) -> Answers:
    """Return AT_ONCE passages of N_POSITIONS tokens."""
    from tests.real.words import PASSAGE, STORY

    async with await TextWorker.open(str(file)) as text:
        ids = [*await text.tokenize(PASSAGE), *await text.tokenize(STORY)]
    return [list(ids[at : at + N_POSITIONS]) for at in np.linspace(0, len(ids) - N_POSITIONS, AT_ONCE).astype(int)]


def compile_shaders(home: Home, file: str) -> dict[str, Any]:
    """Open a stage from the middle of a model on the device, with the steps that nodes use.

    On the software device, this can take longer than a node waits for a stage.
    """
    entry = home.shelf.import_file(folder() / file)
    _, middle, _ = proof.runs(entry.model.n_layers, (entry.model.n_layers // 3, 2 * entry.model.n_layers // 3))
    began = time.monotonic()
    config = home.config(entry, *middle, apart=False)
    LlamaStage(replace(config, device=VULKAN0, library=str(library()))).close()
    return {"seconds": round(time.monotonic() - began, 1)}


def main() -> int:
    """Print the figures of a model as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.cards.real_case", description=__doc__)
    parser.add_argument("model", choices=("guide", "smollm2", "gemma3", "shaders"))
    parser.add_argument("file", nargs="?", help="of the real model whose shaders are compiled")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--float32", action="store_true", help="convert the weights to float32 first")
    parser.add_argument("--exact", action="store_true", help="compare both with the processor in float32")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--one", action="store_true", help="only one of the three stages on the device")
    where.add_argument("--all", action="store_true", help="all three stages on the device")
    args = parser.parse_args()
    os.environ.update(environment())
    devices = ALL_THREE if args.all else ONE_OF_THREE if args.one else DEVICE
    with tempfile.TemporaryDirectory() as scratch:
        home = proof.home(Path(scratch))
        if args.model == "shaders":
            figures = compile_shaders(home, args.file)
        elif args.model == "guide":
            figures = asyncio.run(guide(home, args.questions, devices))
        else:
            file = folder() / (SMOLLM2 if args.model == "smollm2" else GEMMA3).file
            texts = asyncio.run(passages(file))
            plain = in_float32(file, Path(scratch) / "float32.gguf") if args.float32 or args.exact else file
            if args.exact:
                figures = {
                    name: divergences(home, file, texts, each, plain)
                    for name, each in (("device", devices), ("processor", PROCESSOR))
                }
            else:
                figures = divergences(home, plain, texts, devices)
    print(json.dumps(figures), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
