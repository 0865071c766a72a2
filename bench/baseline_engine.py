"""The process for the baselines: runs a whole model with llama.cpp directly, locally or on RPC servers.

It reads one JSON line: {"prompts": [[id, ...], ...], "n_out": n, "n_ubatch": n, "unified": bool}, and writes one
JSON line: {"times": [[seconds, ...], ...], "ids": [[id, ...], ...]}.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from backends.llamacpp.binding import load as llama
from backends.llamacpp.binding import should_repack
from bench.rpc import remote_devices

lib = llama()

N_BATCH = 512
Row = tuple[int, int, int, bool]  # token, position, sequence, whether logits are wanted


class Engine:
    """A loaded model. Each request uses a new context, which is created before the clock starts."""

    def __init__(self, path: str, servers: Sequence[str], shares: Sequence[float]) -> None:
        params = lib.llama_model_default_params()
        params.n_gpu_layers = 0
        params.load_mode = lib.LLAMA_LOAD_MODE_NONE  # not memory-mapped, for huge pages as in our workers
        params.use_extra_bufts = should_repack(lib.llama_print_system_info().decode())  # as in our workers
        if servers:
            self.devices = remote_devices(servers)
            params.devices = ctypes.cast(self.devices, ctypes.c_void_p)
            params.n_gpu_layers = 10_000
            self.shares = (ctypes.c_float * lib.llama_max_devices())(*shares)
            params.tensor_split = self.shares
        model = lib.llama_model_load_from_file(path.encode(), params)
        if model is None:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        self.model = model
        self.n_vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))

    def context(self, n_seq: int, positions: int, n_ubatch: int, unified: bool) -> Any:
        params = lib.llama_context_default_params()
        each = -(-positions // 256) * 256  # rounded as llama.cpp does
        params.n_ctx, params.n_seq_max = n_seq * each, n_seq
        params.n_batch, params.n_ubatch = N_BATCH, n_ubatch
        params.n_threads = params.n_threads_batch = 1
        params.kv_unified = unified
        context = lib.llama_init_from_model(self.model, params)
        if context is None:
            raise RuntimeError("llama.cpp cannot make a context of this size")
        return context

    def answer(self, prompts: Sequence[Sequence[int]], n_out: int, n_ubatch: int, unified: bool) -> dict[str, Any]:
        """Prefill the prompts one after another, then decode all streams in lockstep."""
        positions = max(map(len, prompts)) + n_out
        context = self.context(len(prompts), positions, n_ubatch, unified)
        try:
            return Answer(context, self.n_vocab, time.perf_counter).run(prompts, n_out)
        finally:
            lib.llama_free(context)


class Answer:
    """The greedy answers computed in one context, with the time of each token."""

    def __init__(self, context: Any, n_vocab: int, clock: Callable[[], float]) -> None:
        self.context, self.n_vocab, self.clock = context, n_vocab, clock
        self.batch = lib.llama_batch_init(N_BATCH, 0, 1)

    def run(self, prompts: Sequence[Sequence[int]], n_out: int) -> dict[str, Any]:
        started = self.clock()
        ids: list[list[int]] = [[] for _ in prompts]
        times: list[list[float]] = [[] for _ in prompts]

        def note(seq: int, token: int) -> None:
            ids[seq].append(token)
            times[seq].append(self.clock() - started)

        for seq, prompt in enumerate(prompts):
            note(seq, self.prefill(seq, prompt))
        for step in range(n_out - 1):
            rows = [(ids[s][-1], len(p) + step, s, True) for s, p in enumerate(prompts)]
            self.decode(rows)
            for seq in range(len(prompts)):
                note(seq, self.pick(seq))
        lib.llama_batch_free(self.batch)
        return {"times": times, "ids": ids}

    def prefill(self, seq: int, prompt: Sequence[int]) -> int:
        for start in range(0, len(prompt), N_BATCH):
            part = prompt[start : start + N_BATCH]
            last = len(prompt) - 1
            self.decode([(t, i, seq, i == last) for i, t in enumerate(part, start)])
        return self.pick(len(part) - 1)

    def decode(self, rows: Sequence[Row]) -> None:
        batch = self.batch
        batch.n_tokens = len(rows)
        for i, (token, position, seq, needs_logits) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, needs_logits
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, seq
        if lib.llama_decode(self.context, batch):
            raise RuntimeError("llama.cpp could not decode")

    def pick(self, row: int) -> int:
        logits = lib.llama_get_logits_ith(self.context, row)
        return int(np.argmax(np.ctypeslib.as_array(logits, shape=(self.n_vocab,))))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--servers", default="")
    parser.add_argument("--shares", default="")
    args = parser.parse_args()
    servers = args.servers.split(",") if args.servers else []
    shares = [float(share) for share in args.shares.split(",")] if args.shares else []
    lib.llama_backend_init()
    engine = Engine(args.model, servers, shares)
    print(json.dumps({"ready": True, "n_vocab": engine.n_vocab}), flush=True)
    for line in sys.stdin:
        print(json.dumps(engine.answer(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
