"""`python -m scripts.layer_estimates`: compares measured layers with estimates derived from a plain layer."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.catalog.families.effort_reader import effort_of, stand_in_effort, stand_in_shape
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_shape_reader import uniform_runs
from app.catalog.stages import synthetic_stage
from app.core.model import LayerKind, ModelShape, Setting, Tensor
from app.core.planner.speed_estimates import MeasuredLayer, Speed, estimate_speed
from app.inference.worker.layer_benchmark import BenchmarkSettings, measure
from app.machine.hardware.cores import Threads
from backends.contract import Role

ROWS = 64
GIB = 1 << 30
CODES = {name: code for code, (name, _, _) in tensor_types.TENSORS.items()}
SHAPES = {  # width, feed-forward width, number of experts, experts used per row, number type
    "dense, narrow, Q8_0": (1024, 3072, 0, 0, "Q8_0"),
    "dense, wide, Q4_K": (3072, 8192, 0, 0, "Q4_K"),
    "dense, narrow, Q4_K": (1024, 3072, 0, 0, "Q4_K"),
    "experts, 4 of 32, Q4_K": (1024, 768, 32, 4, "Q4_K"),
    "experts, 8 of 64, Q8_0": (1024, 512, 64, 8, "Q8_0"),
    "experts, 2 of 8, Q4_K": (2048, 3072, 8, 2, "Q4_K"),
}


def shape_of(width: int, ffn: int, n: int, used: int, kind: str) -> ModelShape:
    """Return the shape of a qwen3 or qwen3moe model with 16 such layers and a head size of 128."""
    name, code, kv = ("qwen3moe" if n else "qwen3"), CODES[kind], width // 4
    sizes: dict[str, tuple[int, ...]] = {
        "attn_q": (width, width), "attn_k": (width, kv), "attn_v": (width, kv),
        "attn_output": (width, width),
    }  # fmt: skip
    end, last = ("_exps", (n,)) if n else ("", ())
    for part, dims in {"gate": (width, ffn), "up": (width, ffn), "down": (ffn, width)}.items():
        sizes[f"ffn_{part}{end}"] = (*dims, *last)
    norms = {"attn_norm": width, "ffn_norm": width, "attn_q_norm": 128, "attn_k_norm": 128}
    layer = [Tensor(f"{weight}.weight", tensor_types.F32, (size,)) for weight, size in norms.items()]
    layer += [Tensor(f"{weight}.weight", code, dims) for weight, dims in sizes.items()]
    if n:
        layer.append(Tensor("ffn_gate_inp.weight", tensor_types.F32, (width, n)))
    values = {
        "context_length": 4096, "embedding_length": width, "feed_forward_length": ffn,
        "attention.head_count": width // 128, "attention.head_count_kv": kv // 128,
        "attention.key_length": 128, "attention.value_length": 128,
    }  # fmt: skip
    if n:
        values |= {"expert_count": n, "expert_used_count": used, "expert_feed_forward_length": ffn}
    settings = [Setting(f"{name}.{key}", tensor_types.U32, (value,), is_list=False) for key, value in values.items()]
    rms = f"{name}.attention.layer_norm_rms_epsilon"
    settings.append(Setting(rms, tensor_types.F32_VALUE, (2**-16,), is_list=False))
    norm = Tensor("output_norm.weight", tensor_types.F32, (width,))
    head = Tensor("token_embd.weight", CODES["Q6_K"], (width, 32000))
    layer_kind = LayerKind(tuple(layer))
    return ModelShape(name, width, tuple(settings), (layer_kind,), uniform_runs(layer_kind, 16), (norm,), head)


async def compared(
    shape: ModelShape, folder: Path, gauge: BenchmarkSettings, like: MeasuredLayer
) -> tuple[Speed, Speed]:
    """Return the measured and the estimated speed of a layer."""
    path = folder / "one.gguf"
    model = await asyncio.to_thread(synthetic_stage.write, path, shape, shape.runs[0], Role.MIDDLE)
    guess = estimate_speed(like, effort_of(read_header(path), model))
    return await measure(shape, folder / "trial", gauge), guess


async def run(names: list[str], threads: int) -> list[dict[str, Any]]:
    """Return a result for each shape."""
    gauge = BenchmarkSettings(Threads(threads), ROWS, 4 * GIB, head=False, low_priority=False)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in names:
            shape, plain = shape_of(*SHAPES[name]), stand_in_shape(SHAPES[name][4])
            # measured again each time, since the computer's other load changes within a minute
            speed = await measure(plain, folder / "trial", gauge)
            like = MeasuredLayer(speed, stand_in_effort(plain), ROWS)
            measured, guess = await compared(shape, folder, gauge, like)
            ratios = {key: round(getattr(guess, key) / getattr(measured, key), 2)
                      for key in ("layer_s", "layer_row_s", "chunk_s") if getattr(measured, key)}  # fmt: skip
            row: dict[str, Any] = {"layer": name, "estimate_over_measured": ratios}
            rows.append(row | {"measured": asdict(measured), "estimated": asdict(guess)})
            print(json.dumps(row), file=sys.stderr)
    return rows


def main() -> int:
    """Run the command line. The results are printed as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=list(SHAPES), action="append")
    options = parser.parse_args()
    print(json.dumps(asyncio.run(run(options.only or list(SHAPES), options.threads)), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
