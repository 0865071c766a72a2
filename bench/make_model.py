"""Writes the model used by the benchmark: a Llama of about 0.75 B random parameters in the Q4_K_M mix."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from testbed.tiny import Shape, llama

BENCH = Shape(layers=16, width=2048, heads=32, kv_heads=8, ffn=4864, vocab=32_000, context=8192, quant="Q4_K_M")


def parameters(shape: Shape) -> int:
    """Return the number of weights: embedding, head, and each layer's attention, feed-forward network and norms."""
    kv = shape.head_dim * shape.kv_heads
    layer = 2 * shape.width * (shape.width + kv) + 3 * shape.width * shape.ffn + 2 * shape.width
    ends = shape.vocab * shape.width * (1 if shape.tied else 2) + shape.width
    return ends + shape.layers * layer


def make(path: Path, layers: int = BENCH.layers, seed: int = 1) -> int:
    """Write the model and return its number of parameters. The same arguments always produce the same bytes."""
    fields = {name: getattr(BENCH, name) for name in Shape.__slots__}
    shape = Shape(**{**fields, "layers": layers, "seed": seed})
    part = path.with_name(path.name + ".part")
    llama(part, shape)
    part.replace(path)  # so that the file is never incomplete
    return parameters(shape)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.make_model", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", type=int, default=BENCH.layers)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    made = make(options.out, options.layers, options.seed)
    size = options.out.stat().st_size
    print(f"{options.out}: {made / 1e9:.3f} B parameters, {size / (1 << 20):.0f} MiB")


if __name__ == "__main__":
    main()
