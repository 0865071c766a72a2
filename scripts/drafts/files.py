"""The sizes and weights of a llama model in a GGUF file."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor

from guide.model import Shape


class LlamaFile:
    """A GGUF file of architecture llama whose head shares the matrix of the embedding, such as SmolLM2's."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError if the model is of another kind."""
        self._reader = gguf.GGUFReader(path)
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        if self.value("general.architecture") != "llama" or "output.weight" in self._tensors:
            raise ValueError(f"{path.name} is not a llama whose head shares the matrix of its embedding")

    def value(self, key: str) -> Any:
        return self._reader.fields[key].contents()

    def shape(self) -> Shape:
        """Return the sizes of the whole model."""
        heads = int(self.value("llama.attention.head_count"))
        return Shape(
            vocab_size=int(self.value("llama.vocab_size")),
            n_layers=int(self.value("llama.block_count")),
            hidden_size=int(self.value("llama.embedding_length")),
            intermediate_size=int(self.value("llama.feed_forward_length")),
            n_heads=heads,
            n_kv_heads=int(self.value("llama.attention.head_count_kv")),
            head_dim=int(self.value("llama.embedding_length")) // heads,
            context_length=1024,
            rope_theta=float(self.value("llama.rope.freq_base")),
            rms_norm_eps=float(self.value("llama.attention.layer_norm_rms_epsilon")),
        )

    def weight(self, name: str) -> Tensor:
        """Return a weight in float32."""
        tensor = self._tensors[name]
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        return torch.from_numpy(np.array(values, dtype=np.float32))
