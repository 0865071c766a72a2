"""The types of recipes for tiny models. The recipes are in dense.py, windows.py, experts.py and hybrids.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VOCABULARY = 272  # 256 bytes, 3 control tokens, a few merges
WIDTH = 32  # with more, seventy models of up to twelve layers would not fit into 12 MB
PROMPT_TOKENS, NEW_TOKENS = 24, 16

# Sizes with the same names in most configurations. A recipe adds those of its family.
SIZES: Mapping[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": None,
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """Instructions for creating the model of a family."""

    name: str  # of the file
    model: str  # class in transformers
    why: str  # reason for this shape
    config: Mapping[str, Any] = field(default_factory=dict)  # overrides SIZES; DROP removes a size
    seed: int = 0
    mtp: str = ""  # how to add a block for multi-token prediction, which transformers omits
    note: str = ""  # where and why llama.cpp's results differ from those of transformers
    converter_config: Mapping[str, Any] = field(default_factory=dict)  # for the converter only
    renamed: tuple[str, str] | None = None  # pattern and replacement for names that transformers saves wrongly
    sees: Mapping[str, Any] | None = None  # `vision_config`; SIZES then belong to `text_config`

    def sizes(self) -> dict[str, Any]:
        """Return the complete configuration: SIZES with the overrides of the recipe."""
        values = {**SIZES, **self.config}
        return {key: value for key, value in values.items() if value is not DROP}


DROP: Any = object()  # removes a size that a configuration does not have


def every(n_layers: int, period: int, ordinary: str, last: str) -> list[str]:
    """Return the types of all layers: `last` for the last layer of each period, `ordinary` for the others."""
    return [last if (index + 1) % period == 0 else ordinary for index in range(n_layers)]
