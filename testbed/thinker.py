"""A tiny model that thinks: its template opens the thought, and it writes the same words each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed import tiny

TEMPLATE = (  # it tells earlier thoughts, and those of an answer that goes on
    "{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]<think>{% endif %}"
)
OPENS, ENDS = "<think>", "</think>"
HMM = ("Hmm,", " so", " be", " it.")
ANSWER = ("\n\nYes,", " it", " is.")


def thinker(path: Path, thought: tuple[str, ...] = HMM, **changes: Any) -> Path:
    """Write the model; each word of the thought must stand in it once, as the one before decides the next."""
    words = (OPENS, *thought, ENDS, *ANSWER)
    return tiny.llama(path, vocab=300 + len(words), template=TEMPLATE, says=words, **changes)
