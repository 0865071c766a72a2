"""Answers of a node as they are on the wire: a household of three machines with a split model."""

from __future__ import annotations

from typing import Any

from tests.cli.fake_node import Lines

Json = dict[str, Any]
GIB = 1 << 30
DEN, ATTIC, KITCHEN = "d" * 64, "a" * 64, "c" * 64

MACHINES: dict[str, Json] = {
    ATTIC: {
        "id": ATTIC, "name": "attic-pc", "this": False, "online": True, "state": "working",
        "reason": None, "device": "CPU, 4 threads", "total_bytes": 8 * GIB,
        "lent_bytes": 4 * GIB, "used_bytes": GIB, "roles": ["host", "lender"],
        "address": "192.168.1.21:4242", "layers": [[4, 8]],
    },
    DEN: {
        "id": DEN, "name": "den-pc", "this": True, "online": True, "state": "ready",
        "reason": None, "device": "CPU, 8 threads", "total_bytes": 16 * GIB,
        "lent_bytes": 8 * GIB, "used_bytes": 2 * GIB, "roles": ["admin", "host", "lender"],
        "address": None, "layers": [[0, 4], [8, 12]],
    },
    KITCHEN: {
        "id": KITCHEN, "name": "kitchen\x1b[31m-laptop\u202e", "this": False, "online": True,
        "state": "paused", "reason": "Paused: on battery (48%).", "device": None,
        "total_bytes": None, "lent_bytes": 0, "used_bytes": 0, "roles": ["lender"],
        "address": None, "layers": [],
    },
}  # fmt: skip

STAGES: list[Json] = [
    {"machine": "den-pc", "id": DEN, "role": "first", "first": 0, "last": 4,
     "weight_bytes": 3 << 20, "kv_bytes": 1 << 20, "work_bytes": 1 << 20},
    {"machine": "attic-pc", "id": ATTIC, "role": "middle", "first": 4, "last": 8,
     "weight_bytes": 3 << 20, "kv_bytes": 1 << 20, "work_bytes": 1 << 20},
    {"machine": "den-pc", "id": DEN, "role": "last", "first": 8, "last": 12,
     "weight_bytes": 4 << 20, "kv_bytes": 1 << 20, "work_bytes": 1 << 20},
]  # fmt: skip

PLAN: Json = {
    "model": "guide", "shape": "split", "context": 2048, "users": 8, "stages": STAGES,
    "machines": [
        {"machine": "den-pc", "id": DEN, "needs_bytes": 11 << 20, "lends_bytes": 8 * GIB},
        {"machine": "attic-pc", "id": ATTIC, "needs_bytes": 5 << 20, "lends_bytes": 4 * GIB},
    ],
    "reasons": ["Split as asked."], "fits": True,
}  # fmt: skip

LOADED: Json = {
    **PLAN, "state": "ready", "reason": None, "progress": {}, "number": "f16",
    "loaded_seconds": 1.42, "fetched_bytes": 3 << 20,
}  # fmt: skip

SNAPSHOT: Json = {
    "node": {
        "id": DEN, "name": "den-pc", "version": "0.1.0", "peer_address": "192.168.1.20:4242",
        "lending": {"state": "ready", "reason": None, "lent_bytes": 8 * GIB,
                    "used_bytes": 2 * GIB, "total_bytes": 16 * GIB, "free_bytes": 9 * GIB},
    },
    "machines": MACHINES,
    "links": {ATTIC: {"round_trip_seconds": 0.00042, "address": "192.168.1.21:4242"}},
    "loaded": LOADED,
    "pairing": None,
    "answers": {"running": 1, "waiting": 2},
}  # fmt: skip

MODELS: list[Json] = [
    {"name": "guide", "id": "1" * 64, "architecture": "llama", "quantization": "Q8_0",
     "n_layers": 12, "n_vocab": 4096, "width": 256, "context_length": 2048,
     "file_bytes": 11 << 20, "parameters": None, "path": "/x/guide.gguf", "splits": True,
     "whole_reason": None, "builtin": True},
    {"name": "[bold]odd", "id": "2" * 64, "architecture": "mamba", "quantization": "F16",
     "n_layers": 4, "width": 64, "context_length": 1024, "file_bytes": 3 << 30,
     "parameters": 7_000_000, "path": "/x/odd.gguf", "splits": False,
     "whole_reason": "mamba models run whole on one machine.", "builtin": False},
]  # fmt: skip

ANSWER: Json = {
    "text": "Open Pool and press Add.", "token_ids": [11, 12, 13, 14], "prompt_tokens": 21,
    "reused_tokens": 0, "ttft_s": 0.42, "decode_tok_s": 11.84, "finish_reason": "stop",
    "placement": STAGES, "predicted": None, "recoveries": 0,
    "stages": [
        {"machine": "den-pc", "first": 0, "last": 4, "busy_s": 0.1, "wait_s": 0.02,
         "bytes_in": 84, "bytes_out": 12288},
        {"machine": ATTIC, "first": 4, "last": 8, "busy_s": 0.12, "wait_s": 0.01,
         "bytes_in": 12288, "bytes_out": 12288, "steps": 3},
        {"machine": "den-pc", "first": 8, "last": 12, "busy_s": 0.11, "wait_s": 0.03,
         "bytes_in": 12288, "bytes_out": 16},
    ],
}  # fmt: skip


def progress(step: str, done: int, total: int, machine: str | None = None) -> Json:
    return {"progress": {"step": step, "machine": machine, "done": done, "total": total,
                         "unit": "bytes"}}  # fmt: skip


def streamed(*pieces: str, answer: Json = ANSWER) -> Lines:
    """An answer to /ask in so many pieces."""
    deltas = [{"delta": {"text": piece, "token_ids": [n]}} for n, piece in enumerate(pieces)]
    return Lines([*deltas, {"done": answer}])
