"""Phi 3, 3.5 and 4: Llama with one matrix for queries, keys and values, and rotation factors for long contexts."""

from __future__ import annotations

from typing import Any

from backends.apple.families.llama import Llama
from backends.gguf_weights.rotation import Frequencies, scaled
from backends.gguf_weights.sizes import Pairs


class Phi3(Llama):
    """Llama that rotates halves, with other frequencies if the context exceeds the original training context."""

    pairs = Pairs.HALVES

    def frequencies(self) -> Frequencies:
        file, sizes, config = self.file, self.sizes, self.config
        context = config.kv_cells // config.slots if config.apart else config.kv_cells
        trained = file.integer("rope.scaling.original_context_length", file.integer("context_length"))
        name = f"rope_factors_{'long' if context > trained else 'short'}.weight"
        factors: Any = file.tensor(name, (sizes.n_rot // 2,)).unpack() if file.has_tensor(name) else None
        return scaled(file, sizes.base, sizes.n_rot, factors)
