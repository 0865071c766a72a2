"""Reference results of transformers in float32: greedy tokens after a prompt, their margins, and one row of logits."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from scripts.families.recipe import NEW_TOKENS, PROMPT_TOKENS, VOCABULARY

FIRST_ID = 3  # the tokens before it are control tokens


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference results of one model."""

    prompt: list[int]
    tokens: list[int]  # greedy
    margins: list[float]  # between the best and the second-best logit at each token
    logits: list[float]  # after the prompt


def prompt(seed: int) -> list[int]:
    """Return random token IDs without control tokens."""
    chance = torch.Generator().manual_seed(1000 + seed)
    return torch.randint(FIRST_ID, VOCABULARY, (PROMPT_TOKENS,), generator=chance).tolist()


def reference(model: torch.nn.Module, ids: list[int]) -> Reference:
    """Decode greedily without a KV cache. Each step computes the whole sequence, so no cache can cause an error."""
    seen, tokens, margins = list(ids), [], []
    first: list[float] = []
    with torch.inference_mode():
        for _ in range(NEW_TOKENS):
            row = model(input_ids=torch.tensor([seen]), use_cache=False).logits[0, -1].float()
            best = row.topk(2)
            first = first or row.tolist()
            tokens.append(int(best.indices[0]))
            margins.append(float(best.values[0] - best.values[1]))
            seen.append(tokens[-1])
    return Reference(ids, tokens, margins, first)
