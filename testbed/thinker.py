"""A tiny model that thinks: its template opens a thought, and it always produces the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed import tiny

TEMPLATE = (  # includes earlier thoughts, and the thought of an answer that is continued
    "{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]<think>{% endif %}"
)
OPENS, ENDS = "<think>", "</think>"
HMM = ("Hmm,", " so", " be", " it.")
ANSWER = ("\n\nYes,", " it", " is.")


def thinker(path: Path, thought: tuple[str, ...] = HMM, **changes: Any) -> Path:
    """Write the model file. All words of the thought must be different, because each word determines the next."""
    words = (OPENS, *thought, ENDS, *ANSWER)
    return tiny.llama(path, vocab=300 + len(words), template=TEMPLATE, says=words, **changes)
