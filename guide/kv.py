"""Asks the Guide 200 questions with an f16 and a q8_0 KV cache, and counts the answers that are identical."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guide.dataset import HERE
from guide.score import MODEL

PROMPTS = HERE / "prompts.txt"
MAX_TOKENS = 96

Answer = list[int]


def questions(path: Path = PROMPTS) -> list[str]:
    """Return the questions in a file with one JSON string per line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def same_tokens(first: Answer, second: Answer) -> int:
    """Return the length of the common prefix of two answers in tokens."""
    for place, (ours, other) in enumerate(zip(first, second, strict=False)):
        if ours != other:
            return place
    return min(len(first), len(second))


def totals(exact: Sequence[Answer], near: Sequence[Answer]) -> dict[str, Any]:
    """Return the number of identical answers, and the number of tokens before the first difference."""
    pairs = list(zip(exact, near, strict=True))
    return {
        "answers": len(pairs),
        "same": sum(ours == other for ours, other in pairs),
        "tokens": sum(map(len, exact)),
        "tokens_before_parting": sum(same_tokens(ours, other) for ours, other in pairs),
    }


def ask(path: Path, prompts: Sequence[str], threads: int, kind: str) -> list[Answer]:
    """Return the greedy answers, each computed in a new context. `kind` is the ggml type of the KV cache."""
    from backends.llamacpp import binding
    from backends.templates.sandboxed_rendering import render

    number = getattr(binding.load(), f"GGML_TYPE_{kind}")
    llama = binding.llama_class()(
        str(path), n_ctx=512, n_threads=threads, n_threads_batch=threads, n_batch=64, n_ubatch=64,
        flash_attn=True, type_k=number, type_v=number, verbose=False,
    )  # fmt: skip
    template, answers = llama.metadata["tokenizer.chat_template"], []
    for question in prompts:
        llama.reset()
        text = render(template, [{"role": "user", "content": question}])
        prompt = llama.tokenize(text.encode(), add_bos=False, special=True)
        answer: Answer = []
        for token in llama.generate(prompt, temp=0.0):
            if token == llama.token_eos() or len(answer) == MAX_TOKENS:
                break
            answer.append(token)
        answers.append(answer)
    llama.close()
    return answers


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, nargs="?", default=MODEL)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--most", type=int, default=200)
    options = parser.parse_args()
    prompts = questions()[: options.most]
    exact, near = (ask(options.model, prompts, options.threads, kind) for kind in ("F16", "Q8_0"))
    print(json.dumps(totals(exact, near)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
