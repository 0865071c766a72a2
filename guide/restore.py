"""Reads the weights and the tokenizer back from an exported Guide, so that its training can go on."""

import argparse
from pathlib import Path

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from guide import tokenizer as bpe
from guide.export import gguf_name
from guide.model import Llama, Shape
from guide.train import save


def read_tokenizer(reader: gguf.GGUFReader) -> Tokenizer:
    """Return the tokenizer in a GGUF file."""
    tokens, merges = (reader.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges"))
    pairs = [tuple(merge.split(" ")) for merge in merges]
    tokenizer = Tokenizer(models.BPE({token: at for at, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(bpe.SPECIAL)
    return tokenizer


def read_model(reader: gguf.GGUFReader) -> Llama:
    """Return the model in a GGUF file."""
    stored = {tensor.name: tensor for tensor in reader.tensors}
    model = Llama(Shape())
    weights = {}
    for name, like in model.state_dict().items():
        tensor = stored[gguf_name(name)]
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        weights[name] = torch.from_numpy(values).reshape(like.shape)
    model.load_state_dict(weights)
    return model


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build/guide"))
    parser.add_argument("model", type=Path, nargs="?", default=Path("resources/guide.gguf"))
    options = parser.parse_args()
    options.build.mkdir(parents=True, exist_ok=True)
    reader = gguf.GGUFReader(options.model)
    read_tokenizer(reader).save(str(options.build / "tokenizer.json"))
    save(read_model(reader), options.build / "weights.npz")


if __name__ == "__main__":
    main()
